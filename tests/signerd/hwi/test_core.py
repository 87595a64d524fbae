"""A real node with ``-signer=signerd-hwi``, as two pages have it: a wallet of one's own account
(docs/build/hwi.md), then a vault of three signers (docs/sign/core.md). The pages' own lines are typed.

The three signers share one node, and each has a wallet of their own there. The node asks the daemon of who
types.
"""

import asyncio
import json
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge import Family
from multisig import Network, Transaction, encode_address
from signerd.core.audit import Note
from signerd.core.values import Pin, VaultClaim
from tests.conformance.rigs import Rig, make_rig, plugged_in, short_folder
from tests.support.bitcoind import MISSING, NodeRig, find_bitcoind, running_node
from tests.support.hwi_parity import signerd_at
from tests.support.pages import DOCS, shell_lines
from tests.support.regtest import open_output
from tests.support.virtual import Record, holder, seed, vault

pytestmark = pytest.mark.slow("a real node with three wallets, and two dozen programs")

NETWORK = Network.REGTEST
OWN_ACCOUNT, WITH_A_VAULT = DOCS / "build" / "hwi.md", DOCS / "sign" / "core.md"
MAKES = (Family.TREZOR, Family.COLDCARD, Family.LEDGER)
VAULT, COIN = vault(), 1_000_000
ELSEWHERE = encode_address(open_output(1), NETWORK)
# What asks a device to sign.
ASKS = re.compile(r" (?:send|sendall|walletprocesspsbt) ")


@dataclass
class Desk:
    """A signer's. ``named``: the checks that they named."""

    number: int
    state: Path
    rig: Rig
    record: Record
    named: set[str] = field(default_factory=set)

    @property
    def fingerprint(self) -> str:
        return str(self.rig.seed.fingerprint)


@asynccontextmanager
async def desk_of(number: int, folder: Path) -> AsyncIterator[Desk]:
    """Registered, the vault pinned and enrolled; the person says yes to all."""
    signer, rig = holder(number), make_rig(MAKES[number], folder, seed=seed(number))
    desk = Desk(number, folder / f"s{number}", rig, Record(rig.panel))
    async with (
        plugged_in(rig) as endpoint,
        signerd_at(endpoint, desk.state, signer, NETWORK, desk.named) as daemon,
    ):
        journal = daemon.journal
        journal.learn(VaultClaim("vault-1", 1, "Treasury", VAULT.descriptor, 2, 3, VAULT.address(0, 0)))
        journal.add_pin(Pin("vault-1", 1, "Treasury", VAULT, signer.vault_key()), Note("pinned", "vault-1"))
        (device,) = await daemon.devices()
        await daemon.bridge_devices.enrol(device.id, VAULT, "Treasury", lambda _progress: None)
        yield desk


def script(path: Path, command: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o700)


def commands(page: Path) -> list[str]:
    return [line for line in shell_lines(page) if line.startswith("bitcoin-cli ")]


@dataclass
class Terminal:
    """Where a page's lines are typed. Words in capitals are what a person reads off the answers before."""

    folder: Path
    rig: NodeRig
    last: Any = None
    sent: list[str] = field(default_factory=list)

    def of(self, page: Path, desk: Desk) -> None:
        """The node asks this desk's daemon from now on, with the page's options."""
        (started,) = [line for line in shell_lines(page) if line.startswith("bitcoind ")]
        program, *options = shlex.split(started)[1].removeprefix("-signer=").split()
        assert program == "signerd-hwi"
        ours = [
            sys.executable,
            "-m",
            "signerd.hwi",
            "--emulators",
            "--state",
            str(desk.state),
            "--wait",
            "120",
        ]
        script(self.folder / "signer", " ".join([*ours, *options]))

    def types(self, line: str, desk: Desk) -> Any:
        done = self.run(line, desk)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        text = done.stdout.strip()
        self.last = json.loads(text) if text.startswith(("{", "[")) else text
        if "sendrawtransaction" in line:
            self.sent.append(text)
        return self.last

    def run(self, line: str, desk: Desk) -> subprocess.CompletedProcess[str]:
        line = re.sub(r"\b(?:ADDRESS|PSBT|HEX|TXID)\b", lambda found: self._read_off(found[0], line), line)
        line = re.sub(r"(-rpcwallet|wallet_name)=(\w+)", rf"\1=\2-{desk.number}", line)
        return subprocess.run(
            ["bash", "-c", line],
            env={"PATH": f"{self.folder}/bin:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def _read_off(self, name: str, line: str) -> str:
        if name == "ADDRESS":
            return str(self.last) if "walletdisplayaddress" in line else str(ELSEWHERE)
        return self.sent[-1] if name == "TXID" else str(self.last[name.lower()])

    def is_paid(self, code: bytes, times: int = 1) -> None:
        for _ in range(times):
            self.rig.pay(code, COIN)
        self.rig.mine()


def own_account(terminal: Terminal, desk: Desk) -> dict[str, Any]:
    terminal.of(OWN_ACCOUNT, desk)
    seen: dict[str, Any] = {}
    for line in commands(OWN_ACCOUNT):
        if ASKS.search(line):
            terminal.is_paid(holder(desk.number).profile().script_pubkey(0, 0), 2)
        (name,) = re.findall(r"bitcoin-cli(?: -\S+)* (\w+)", line)
        seen[name] = terminal.types(line, desk)
    wallet = "bitcoin-cli -rpcwallet=hww"
    seen["descriptors"] = terminal.types(f"{wallet} listdescriptors", desk)["descriptors"]
    seen["legacy"] = terminal.run(f'{wallet} getnewaddress "" legacy', desk).stderr
    seen["mempool"] = terminal.rig.node.call("getrawmempool")
    return seen


def make_wallets(terminal: Terminal, desks: list[Desk], lines: list[str]) -> list[list[Any]]:
    """Each signer's steps 1 to 3, which begin with coins that came before."""
    terminal.is_paid(VAULT.script_pubkey(0, 0), 3)
    seen = []
    for desk in desks:
        terminal.of(WITH_A_VAULT, desk)
        seen.append([terminal.types(line, desk) for line in lines])
        seen[-1].append(terminal.types("bitcoin-cli -rpcwallet=vault listdescriptors", desk)["descriptors"])
    return seen


def spend(terminal: Terminal, desks: list[Desk], lines: list[str]) -> dict[str, Any]:
    """The lines from the first payment on. What asks a device to sign is typed at each desk in turn."""
    turns, who = cycle(desks), desks[0]
    seen: dict[str, Any] = {"made": [], "bumpfee": None}
    for line in lines:
        if " sendall " in line:
            terminal.is_paid(VAULT.script_pubkey(0, 0))
        if ASKS.search(line):
            who = next(turns)
            terminal.of(WITH_A_VAULT, who)
        said = terminal.types(line, who)
        if "complete" in said:
            seen["made"].append((line.split()[-2], said["complete"]))
        if "sendrawtransaction" in line and seen["bumpfee"] is None:
            seen["bumpfee"] = terminal.run(f"bitcoin-cli -rpcwallet=vault bumpfee {said}", who).stderr
    raw = [terminal.rig.node.call("getrawtransaction", txid) for txid in terminal.sent[1:]]
    seen["mempool"] = terminal.rig.node.call("getrawmempool")
    seen["sent"] = [Transaction.parse(bytes.fromhex(text)) for text in raw]
    terminal.rig.mine()
    seen["left"] = terminal.types("bitcoin-cli -rpcwallet=vault getbalance", who)
    return seen


def begin_from_the_same(terminal: Terminal, desks: list[Desk]) -> dict[str, Any]:
    """S33: two signers process the same PSBT, and then the second one what the first one's device signed."""
    terminal.is_paid(VAULT.script_pubkey(0, 0))
    wallet = "bitcoin-cli -rpcwallet=vault"
    made = terminal.types(f"{wallet} walletcreatefundedpsbt '[]' '{{\"ADDRESS\": 0.005}}'", desks[0])["psbt"]
    alone = []
    for desk in desks[:2]:
        terminal.of(WITH_A_VAULT, desk)
        alone.append(terminal.types(f"{wallet} walletprocesspsbt {made}", desk)["psbt"])
    seen = {"both": terminal.types(f"{wallet} walletprocesspsbt {alone[0]}", desks[1])}
    combined = terminal.types(f"bitcoin-cli combinepsbt '{json.dumps(alone)}'", desks[1])
    seen["combined"] = terminal.types(f"bitcoin-cli finalizepsbt {combined}", desks[1])
    return seen


async def whole_story(program: Path, folder: Path) -> dict[str, Any]:
    (folder / "bin").mkdir()
    script(folder / "signer", "false")
    options = (f"-signer={folder}/signer", "-disablewallet=0", "-fallbackfee=0.0001", "-txindex=1")
    async with AsyncExitStack() as stack:
        desks = [await stack.enter_async_context(desk_of(number, folder)) for number in range(3)]
        node = stack.enter_context(running_node(program, folder / "node", *options))
        node_options = f"-chain=regtest -datadir={node.folder} -rpcport={node.port} -rpcclienttimeout=300"
        script(folder / "bin" / "bitcoin-cli", f"{program.parent / 'bitcoin-cli'} {node_options}")
        rig = await asyncio.to_thread(NodeRig, node)
        stack.callback(rig.close)
        terminal = Terminal(folder, rig)
        seen: dict[str, Any] = {"desks": desks, "terminal": terminal}
        seen["own"] = await asyncio.to_thread(own_account, terminal, desks[0])
        lines = commands(WITH_A_VAULT)
        first = next(place for place, line in enumerate(lines) if ASKS.search(line))
        seen["wallets"] = await asyncio.to_thread(make_wallets, terminal, desks, lines[:first])
        for desk in desks:
            desk.record.events.clear()
        seen["spent"] = await asyncio.to_thread(spend, terminal, desks, lines[first:])
        seen["begun"] = await asyncio.to_thread(begin_from_the_same, terminal, desks)
        return seen


@pytest.fixture(scope="module")
def story():
    program = find_bitcoind()
    if program is None:
        pytest.skip(MISSING)
    if not (program.parent / "bitcoin-cli").exists():
        pytest.skip(f"there is no bitcoin-cli beside {program}: run tools/bitcoind again")
    told = subprocess.run([program, "-help"], capture_output=True, text=True, check=True).stdout
    if "-signer=" not in told:
        pytest.skip("this node was built without external signers")
    with short_folder() as name:
        return asyncio.run(whole_story(program, Path(name)))


def test_core_makes_a_wallet_of_ones_own_account_and_sends_from_it(story):
    own, (desk, *_) = story["own"], story["desks"]
    assert own["enumeratesigners"]["signers"] == [
        {"fingerprint": desk.fingerprint, "name": "trezor_1_simulator"}
    ]
    account = f"wpkh([{desk.fingerprint}/84h/1h/0h]{holder(0).profile().key.xpub}"
    texts = sorted(entry["desc"].partition("#")[0] for entry in own["descriptors"])
    assert texts == [f"{account}/{chain}/*)" for chain in (0, 1)]
    assert own["getnewaddress"] == holder(0).profile().address(0, 0)
    assert own["walletdisplayaddress"] == {"address": holder(0).profile().address(0, 0)}
    assert own["send"]["complete"] is True
    assert own["send"]["txid"] in own["mempool"]
    assert "No legacy addresses available" in own["legacy"]


def test_each_signers_core_has_the_vault_and_nothing_else_and_finds_its_coins(story):
    for desk, said in zip(story["desks"], story["wallets"], strict=True):
        (signers, _made, scanned, address, displayed, descriptors) = said
        assert [one["fingerprint"] for one in signers["signers"]] == [desk.fingerprint]
        assert scanned["start_height"] == 0
        assert address == VAULT.address(0, 1), "the first one is used"
        assert displayed == {"address": address}
        held = {(one["desc"], one["active"], one["internal"]) for one in descriptors}
        assert held == {(VAULT.chain_descriptor(chain), True, chain == 1) for chain in (0, 1)}


def test_two_of_three_makes_pay_from_several_coins_raise_the_fee_and_sweep(story):
    spent, first = story["spent"], story["terminal"].sent[0]
    bumped, swept = spent["sent"]
    assert [complete for _, complete in spent["made"]] == [False, True] * 3
    assert first not in spent["mempool"], "it was replaced"
    assert [len(one.inputs) for one in (bumped, swept)] == [3, 2]
    assert any(output.amount == 2_500_000 for output in bumped.outputs)
    assert [output.script_pubkey for output in swept.outputs] == [open_output(1)]
    assert float(spent["left"]) == 0
    signatures = [sum(kind.startswith("sign") for kind in desk.record.kinds) for desk in story["desks"]]
    assert min(signatures) == 2, "each make signed twice or more"
    assert "Transaction incomplete. Try psbtbumpfee instead." in " ".join(spent["bumpfee"].split())
    assert "conflict" in story["desks"][0].named


def test_s33_what_came_from_the_other_signer_is_given_to_core_as_core_combines_it(story):
    begun = story["begun"]
    assert begun["both"]["complete"] is True
    assert begun["both"]["hex"] == begun["combined"]["hex"]
