"""``custody chain``, which asks the server that has the embedded chain."""

import json
import socket
import time
from contextlib import closing, contextmanager

import pytest
from click.testing import CliRunner

from custody.cli.program import app
from custody.common.terminal import Exit
from custody.server.chain.embedded import EmbeddedChain
from custody.server.mining import mining_served
from custody.server.settings import Settings
from multisig import Network, Sats, decode_address
from tests.support.regtest import FakeClock, open_address

ADDRESS = open_address(1)
ELSEWHERE = "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"


@pytest.fixture
def state(tmp_path):
    """With a name that no socket's address has room for."""
    return tmp_path / ("s" * 100) / ("t" * 100)


@pytest.fixture
def chain(state):
    with served(state) as found:
        yield found


@contextmanager
def served(state):
    folder = Settings(state=state).chain_folder
    with closing(EmbeddedChain(folder, clock=FakeClock())) as chain, mining_served(folder, chain):
        yield chain


def custody(state, *words):
    return CliRunner().invoke(app, ["chain", *words, "--state", str(state)])


def test_blocks_are_mined_and_payments_made(chain, state):
    mined = json.loads(custody(state, "mine", "101", "--json").stdout)
    assert mined == {"height": 101, "block_hash": chain.tip().hash}
    paid = custody(state, "fund", ADDRESS, "0.5BTC").stdout.strip()
    assert custody(state, "mine", "1").stdout == f"Block 102: {chain.tip().hash}\n"
    (output,) = chain.outputs_to([decode_address(ADDRESS, Network.REGTEST)])
    assert (output.outpoint.txid, output.amount) == (paid, Sats(50_000_000))


@pytest.mark.parametrize(
    ("address", "amount", "sentence"),
    [
        (ELSEWHERE, "1BTC", "another network"),
        (ADDRESS, "0.5", "with its unit"),
        (ADDRESS, "1sat", "dust"),
        (ADDRESS, "21000001BTC", "more than the 21,000,000 bitcoin"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_done(chain, state, address, amount, sentence):
    refused = custody(state, "fund", address, amount)
    assert (refused.exit_code, sentence in refused.stderr) == (Exit.USAGE, True), refused.stderr
    assert chain.tip().height == 0


def test_its_user_alone_may_ask_and_a_client_that_hangs_up_stops_no_other(chain, state):
    (path,) = Settings(state=state).chain_folder.glob("*.sock")
    assert path.stat().st_mode & 0o777 == 0o600
    with socket.socket(socket.AF_UNIX) as caller, pytest.MonkeyPatch.context() as patched:
        patched.chdir(path.parent)
        caller.connect(path.name)
    assert custody(state, "mine", "1").exit_code == 0


def test_without_a_server_a_command_says_so_at_once(state):
    started = time.monotonic()
    never = custody(state, "mine", "1")
    with served(state):
        pass
    stopped = custody(state, "fund", ADDRESS, "1BTC")
    with socket.socket(socket.AF_UNIX) as left, pytest.MonkeyPatch.context() as patched:
        patched.chdir(Settings(state=state).chain_folder)
        left.bind("commands.sock")
    killed = custody(state, "mine", "1")
    for answer in (never, stopped, killed):
        assert answer.exit_code == Exit.NOT_RUNNING
        assert "No server with an embedded chain is running" in answer.stderr
    assert time.monotonic() - started < 150
    with served(state):
        assert custody(state, "mine", "1").exit_code == 0
