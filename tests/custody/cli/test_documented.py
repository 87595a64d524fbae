"""``custody``, as ``signerd``: every command has JSON output, and none draws boxes; typed amounts: always
with a unit, never ambiguous.
"""

import json
import sys

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from custody.cli.common import parse_amount
from custody.cli.program import app
from custody.common.terminal import Exit
from custody.common.text import btc
from multisig import Sats, format_btc
from multisig.units import MAX_MONEY
from tests.custody.cli.conftest import PLATFORM
from tests.support.custody import SHOP, ok
from tests.support.processes import ended
from tests.support.service_accounts import issue, made

# Commands that run until they are stopped, or print lines, a document or a secret.
WITHOUT_JSON = {"serve", "worker", "openapi", "audit export", "proof download", "admin webhook-secret"}


def commands(group, before=""):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


ALL = dict(commands(app))


OPTIONS = {name: {option for one in command.params for option in one.opts} for name, command in ALL.items()}
# What the commands are given that ask nothing: a proposal's id, a proof's, a coin's, a day.
READS = {
    "audit tail": "--lines 3",
    "change list": "--all",
    "limit list": "",
    "mail": "",
    "member list": "",
    "proof list": "",
    "proof show": "{proof}",
    "proposal list": "--all",
    "proposal max": f"Treasury {SHOP}",
    "proposal show": "{psbt}",
    "service-account list": "",
    "vault coins": "Treasury",
    "vault history": "Treasury",
    "vault list": "",
    "vault release": "Treasury {coin}",
    "vault set-aside": "Treasury {coin} --reason Audit",
    "vault show": "Treasury",
    "vault statement": "Treasury {month}",
    "whoami": "",
}


def test_each_command_answers_with_one_json_value(desk, custody, account, tmp_path):
    """Those that ask nothing: as a person, and as a program where one may call it."""
    assert {name for name in ALL if "--json" not in OPTIONS[name]} == WITHOUT_JSON
    of_members = {name for name in ALL if "--workspace" in OPTIONS[name] and not name.startswith("admin ")}
    asks_nothing = {name for name in of_members if "--yes" not in OPTIONS[name]}
    # Of tokens: tests/custody/cli/test_histories.py.
    assert asks_nothing - WITHOUT_JSON - {"vault tokens"} == READS.keys() - {"mail", "whoami"}
    month = f"{desk.world.clock():%Y-%m}"
    found = ok(desk.admin.get("/api/v1/vault-coins", workspace_id=1, vault_id=desk.vault["id"]))["coins"]
    desk.later(days=32)
    desk.mine(11)
    given = {
        "psbt": ok(desk.propose(20_000))["psbt_id"],
        "proof": ok(desk.of_vault("create-proof", message="Audit"))["psbt_id"],
        "coin": f"{found[-1]['txid']}:{found[-1]['vout']}",
        "month": month,
    }
    secret = tmp_path / "secret"
    account_id, _ = made(desk.world, desk.admin, rights=["VIEW_BALANCES"])
    secret.touch(mode=0o600)
    secret.write_text(ok(issue(desk.admin, account_id))["secret"])
    program = {"CUSTODY_PLATFORM": PLATFORM, "CUSTODY_SECRET_FILE": str(secret)}
    # The coin is set aside before it is released.
    for name, words in sorted(READS.items(), reverse=True):
        command = (*name.split(), *words.format_map(given).split(), "--json")
        done = custody(*command, env=account)
        assert done.exit_code == Exit.OK, (command, done.output)
        json.loads(done.stdout)
        done = custody(*command, env=program)
        assert done.exit_code in {Exit.OK, Exit.PLATFORM}, (command, done.output)
        json.loads(done.stdout or done.stderr)


def test_p49_no_option_takes_a_secret():
    assert not set().union(*OPTIONS.values()) & {
        "--password",
        "--passphrase",
        "--code",
        "--otp",
        "--secret",
        "--token",
    }


def test_an_error_is_one_json_value_where_one_was_asked_for(tmp_path):
    refused = CliRunner().invoke(app, ["status", "--state", str(tmp_path / "typo"), "--json"])
    assert refused.exit_code == Exit.STATE
    assert refused.stderr.startswith('{"error": {"code": "state", "sentence": "There is no platform in')
    assert '"status": 10' in refused.stderr
    plain = CliRunner().invoke(app, ["status", "--state", str(tmp_path / "typo")]).stderr
    assert plain.startswith("custody: There is no platform in")
    assert plain.splitlines()[1].startswith("  Check --state")


@pytest.mark.parametrize(
    ("program", "words", "meant"),
    [
        ("custody", ("vault", "creat"), "create"),
        ("custody", ("proposal", "shwo"), "show"),
        ("custody", ("vault", "list", "--workspce", "1"), "--workspace"),
        ("signerd", ("aprove",), "approve"),
        ("signerd", ("device", "virtul"), "virtual"),
    ],
)
def test_a_mistyped_word_is_told_its_neighbour_as_json_where_that_was_asked_for(program, words, meant):
    start = f"import sys; from {program}.cli import main; sys.argv[0] = '{program}'; main()"
    for more in ([], ["--json"]):
        told = ended([sys.executable, "-c", start, *words, *more])
        assert (told.returncode, told.stdout) == (Exit.USAGE, "")
        assert f"Did you mean '{meant}'?" in told.stderr
    assert json.loads(told.stderr)["error"]["status"] == Exit.USAGE


def test_where_the_server_is_not_installed_an_operators_command_says_so(tmp_path):
    """As with the desktop's libraries alone; the help still works."""
    program = "import sys; sys.modules['structlog'] = None\nfrom custody.cli import main\nmain()"
    words = ["status", "--state", str(tmp_path)]
    told, helped = (ended([sys.executable, "-c", program, *words, *more]) for more in ([], ["--help"]))
    assert told.returncode == Exit.FAILED
    sentence = "the platform's server is not installed here (structlog is missing)"
    assert told.stderr.startswith(f"custody: {sentence}")
    assert helped.returncode == Exit.OK


@given(st.integers(0, MAX_MONEY))
def test_either_unit_means_the_same(sats):
    assert btc(sats) == format_btc(Sats(sats))
    for text in (f"{btc(sats)}BTC", f"{btc(sats)} btc", f"{sats}sats", f"{sats:,} sat", f" {sats} SATS "):
        assert parse_amount(text) == sats


@pytest.mark.parametrize(
    "text",
    ["", "1", "BTC", ".5BTC", "1.BTC", "1.123456789BTC", "01BTC", "1,5BTC", "1,00 sats", "1.5sats", "-1BTC",
     "1e3sats", "+1BTC", "1mBTC", "1 BTC 2", "٣BTC", "1_000sats", "NaNBTC"],
)  # fmt: skip
def test_an_ambiguous_amount_is_refused(text):
    with pytest.raises(ValueError, match="write it with its unit"):
        parse_amount(text)
