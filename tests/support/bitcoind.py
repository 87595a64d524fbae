"""A real bitcoind on regtest, started on ports of its own and killed at the end.

`CUSTODY_TEST_BITCOIND` names the program: Bitcoin Core 25 or later, or a derivative. Without it, the one that
tools/bitcoind put into the checkout's cache is used; without that, the tests that need it are skipped.
"""

import os
import shutil
import socket
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from custody.server.chain.backend import BlockRef
from custody.server.chain.core import CookieFile, CoreBackend
from multisig.network import Network
from multisig.transaction import OutPoint, Transaction, TxIn, TxOut
from multisig.units import Sats
from tests.support.regtest import open_output, open_script

NAMED = "CUSTODY_TEST_BITCOIND"
CACHED = Path(__file__).parents[2] / ".cache" / "bitcoind" / "bitcoind"
MISSING = f"there is no bitcoind: run tools/bitcoind .cache/bitcoind, or name one in {NAMED}"

START_SECONDS = 300
# Fee of a payment by the rig: above any node's relay minimum, for one input and two outputs.
FEE = 1_000
# Numbers of the open scripts that hold the rig's own money; tests use smaller ones.
OWN = 0x8000
MATURITY = 100
# Core's -mempoolexpiry, in seconds.
EXPIRY_SECONDS = 336 * 3_600
SPARE_COINS = 20
VERBOSE = (True,)


def find_bitcoind() -> Path | None:
    named = os.environ.get(NAMED)
    if named:
        return Path(named)
    return CACHED if os.access(CACHED, os.X_OK) else None


@dataclass
class RunningNode:
    """A node with its data folder: loopback only, no peers, no wallet."""

    program: Path
    folder: Path
    options: tuple[str, ...] = ("-txindex=1", "-blockfilterindex=1")
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def cookie(self) -> Path:
        return self.folder / "regtest" / ".cookie"

    def start(self) -> None:
        """Returns when it answers: on its previous port, or on another where that is taken."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for port in (self.port, 0, 0, 0, 0):
            self.port = port or free_port()
            self.cookie.unlink(missing_ok=True)
            self.process = self._launch()
            if self._answers():
                return
            self.stop()
        raise AssertionError(f"{self.program} does not start; see {self.folder / 'output'}")

    def stop(self) -> None:
        """Stops it cleanly; kills it where that takes too long."""
        if self.process is None:
            return
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(START_SECONDS)
        self.kill()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def call(self, method: str, *params: object) -> Any:
        """One call without the backend. Raises AssertionError where the node refuses it."""
        name, _, password = self.cookie.read_text().partition(":")
        body = {"id": 0, "method": method, "params": params}
        answer = httpx.post(
            self.url, json=body, auth=(name, password), timeout=START_SECONDS, trust_env=False
        )
        reply = answer.json()
        assert reply["error"] is None, (method, reply["error"])
        return reply["result"]

    def _launch(self) -> subprocess.Popen[bytes]:
        command = (
            str(self.program),
            "-regtest",
            f"-datadir={self.folder}",
            f"-rpcport={self.port}",
            "-listen=0",
            "-dnsseed=0",
            "-fixedseeds=0",
            "-connect=0",
            "-disablewallet",
            "-dbcache=16",
            "-rpcthreads=8",
            "-printtoconsole=0",
            *self.options,
        )
        with (self.folder / "output").open("ab") as output:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def _answers(self) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process is not None:
            with suppress(OSError, AssertionError, ValueError, httpx.TransportError):
                self.call("getblockchaininfo")
                return True
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.05)
                return False
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_node(program: Path, folder: Path, *options: str) -> Iterator[RunningNode]:
    node = RunningNode(program, folder, *((options,) if options else ()))
    node.start()
    try:
        yield node
    finally:
        node.kill()
        shutil.rmtree(folder, ignore_errors=True)


class NodeRig:
    """A real node, shared by all tests of one process. Each block pays an open script of its own."""

    def __init__(self, node: RunningNode, spare_coins: int = SPARE_COINS) -> None:
        self.node = node
        self.backend = self.connect()
        self._used = 0
        self._mined = OWN
        self._coinbases: dict[int, int] = {}
        self._money: deque[tuple[int, OutPoint, int, int]] = deque()
        self.mine(MATURITY + spare_coins)

    def connect(self) -> CoreBackend:
        return CoreBackend(Network.REGTEST, self.node.url, CookieFile(self.node.cookie), answer_seconds=20)

    def close(self) -> None:
        self.backend.close()

    def fresh(self) -> int:
        self._used += 1
        return self._used

    def mine(self, count: int = 1, *, empty: bool = False) -> tuple[BlockRef, ...]:
        waiting = [] if empty else self._waiting()
        return tuple(self._mine(waiting if first else []) for first in [True] + [False] * (count - 1))

    def mine_block(self, transactions: Sequence[Transaction]) -> BlockRef:
        return self._mine([transaction.serialize().hex() for transaction in transactions])

    def coinbase_script(self, height: int) -> bytes:
        return open_script(self._coinbases[height])

    def fund(self, number: int, amount: int) -> str:
        return self.pay(open_output(number), amount)

    def pay(self, script: bytes, amount: int) -> str:
        """Pays any script."""
        height, outpoint, behind, held = self._next_money(amount)
        change = TxOut(Sats(held - amount - FEE), open_output(behind))
        payment = Transaction(
            version=2,
            inputs=(TxIn(outpoint, 0xFFFFFFFD, b"", (open_script(behind),)),),
            outputs=(TxOut(Sats(amount), script), change),
            locktime=0,
        )
        self.send(payment)
        self._money.append((height, OutPoint(payment.txid, 1), behind, change.amount))
        return payment.txid

    def send(self, transaction: Transaction) -> None:
        self.node.call("sendrawtransaction", transaction.serialize().hex())

    def reorganise(
        self, depth: int, length: int, transactions: Sequence[Transaction] = ()
    ) -> tuple[BlockRef, ...]:
        tip = self.node.call("getblockcount")
        self.node.call("invalidateblock", self.node.call("getblockhash", tip - depth + 1))
        first = self.mine_block(transactions)
        return first, *self.mine(length - 1, empty=True)

    def forget(self) -> None:
        """Expires the mempool: the node drops old transactions when the next one arrives."""
        self.node.call("setmocktime", int(time.time()) + EXPIRY_SECONDS + 60)
        self.fund(self.fresh(), 10_000)
        self.node.call("setmocktime", 0)

    @contextmanager
    def down(self) -> Iterator[None]:
        self.node.stop()
        port = self.node.port
        try:
            yield
        finally:
            self.node.start()
        # The cookie changes, which the backend notices by itself;
        # the port only where another process took it.
        if self.node.port != port:
            self.backend.close()
            self.backend = self.connect()

    def _waiting(self) -> list[str]:
        """The mempool, parents first."""
        entries = self.node.call("getrawmempool", *VERBOSE)
        return sorted(entries, key=lambda txid: entries[txid]["ancestorcount"])

    def _mine(self, transactions: list[str]) -> BlockRef:
        """Exactly these, by txid or in hexadecimal. Blocks differ even on one parent in one second."""
        self._mined += 1
        script = open_output(self._mined)
        block_hash = self.node.call("generateblock", f"raw({script.hex()})", transactions)["hash"]
        block = self.node.call("getblock", block_hash, 2)
        self._note_coinbase(block)
        return BlockRef(block["height"], block_hash, block["time"])

    def _note_coinbase(self, block: dict[str, Any]) -> None:
        self._coinbases[block["height"]] = self._mined
        coinbase = block["tx"][0]
        amount = round(coinbase["vout"][0]["value"] * 100_000_000)
        self._money.append((block["height"], OutPoint(coinbase["txid"], 0), self._mined, amount))

    def _next_money(self, amount: int) -> tuple[int, OutPoint, int, int]:
        """The oldest mature, unspent coin that suffices; mines more where there is none."""
        while True:
            for coin in tuple(self._money):
                height, outpoint, _, held = coin
                if self.node.call("getblockcount") + 1 - height < MATURITY:
                    break
                if held < amount + FEE + 1_000:
                    continue
                self._money.remove(coin)
                if self.node.call("gettxout", outpoint.txid, outpoint.vout) is not None:
                    return coin
            self.mine(MATURITY, empty=True)
