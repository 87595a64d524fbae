"""A bitcoind in this process: JSON-RPC over real HTTP on the embedded chain, with faults as a test sets.

The embedded chain validates, so that answers are true; Faults changes how they are sent.
"""

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from custody.server.chain.backend import Accepted, AlreadyKnown, RefusalCode
from custody.server.chain.core import CoreBackend, Password
from custody.server.chain.embedded import EmbeddedChain
from multisig.errors import InvalidTransaction
from multisig.network import Network
from multisig.transaction import OutPoint, Transaction
from tests.support.chains import REASONS, EmbeddedRig

USER, PASSWORD = "platform", "correct horse"
# Regtest's genesis block (Bitcoin Core, kernel/chainparams.cpp), which the embedded chain does not store.
GENESIS = bytes.fromhex(
    "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc8"
    "1bc3888a51323a9fb8aa4b1e5e4adae5494dffff7f20020000000101000000010000000000000000000000000000000000000000000000"
    "000000000000000000ffffffff4d04ffff001d0104455468652054696d65732030332f4a616e2f32303039204368616e63656c6c6f7220"
    "6f6e206272696e6b206f66207365636f6e64206261696c6f757420666f722062616e6b73ffffffff0100f2052a01000000434104678afd"
    "b0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c"
    "702b6bf11d5fac00000000"
)


class Refusal(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Faults:
    """No fault is set at first."""

    chain: str = "regtest"
    fetching: bool = False
    headers_ahead: int = 0
    pruned: bool = False
    # Whether it is synced, by the name of each index of the node.
    indexes: dict[str, bool] = field(
        default_factory=lambda: {"txindex": True, "basic block filter index": True}
    )
    index_behind: int = 0
    starting: bool = False
    unknown: set[str] = field(default_factory=set)
    # The connection is closed without an answer.
    hangs_up: bool = False
    # An HTTP answer instead of the true one.
    status: int = 200
    body: bytes | None = None
    # The connection is closed after this many bytes of the answer.
    cut_at: int | None = None
    # Answers wait until it is set.
    held: threading.Event | None = None
    # Called once, before the method runs.
    before: dict[str, Callable[[], object]] = field(default_factory=dict)
    # Called instead of the method.
    instead: dict[str, Callable[..., Any]] = field(default_factory=dict)


class FakeBitcoind:
    """Serves until it is closed."""

    def __init__(self, chain: Callable[[], EmbeddedChain]) -> None:
        self._chain = chain
        self.faults = Faults()
        self.secret = (USER, PASSWORD)
        self.asked: list[str] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.node = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def connect(self, network: Network = Network.REGTEST, **options: Any) -> CoreBackend:
        return CoreBackend(
            network, self.url, Password(USER, SecretStr(PASSWORD)), **{"answer_seconds": 20.0} | options
        )

    def close(self) -> None:
        if self.faults.held is not None:
            self.faults.held.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def authorised(self, header: str | None) -> bool:
        return header == "Basic " + b64encode(":".join(self.secret).encode()).decode()

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        method, params = request["method"], request.get("params", [])
        self.asked.append(method)
        try:
            result = self._carry_out(method, params)
        except Refusal as refusal:
            error = {"code": refusal.code, "message": str(refusal)}
            return {"result": None, "error": error, "id": request["id"]}
        return {"result": result, "error": None, "id": request["id"]}

    def _carry_out(self, method: str, params: list[Any]) -> Any:
        if self.faults.starting:
            raise Refusal(-28, "Loading block index…")
        known = getattr(self, f"do_{method}", None)
        if known is None or method in self.faults.unknown:
            raise Refusal(-32601, "Method not found")
        self.faults.before.pop(method, lambda: None)()
        return self.faults.instead.get(method, known)(*params)

    # The methods

    def do_getblockchaininfo(self) -> dict[str, Any]:
        tip = self._chain().tip()
        return {
            "chain": self.faults.chain,
            "blocks": tip.height,
            "headers": tip.height + self.faults.headers_ahead,
            "bestblockhash": tip.hash,
            "time": tip.time,
            "initialblockdownload": self.faults.fetching,
            "pruned": self.faults.pruned,
        }

    def do_getindexinfo(self) -> dict[str, Any]:
        height = self._chain().tip().height - self.faults.index_behind
        return {
            name: {"synced": synced, "best_block_height": height}
            for name, synced in self.faults.indexes.items()
        }

    def do_getblockhash(self, height: int) -> str:
        block = self._chain().block_at(height)
        if block is None:
            raise Refusal(-8, "Block height out of range")
        return block.hash

    def do_getblockheader(self, block_hash: str) -> dict[str, Any]:
        for height in range(self._chain().tip().height + 1):
            block = self._chain().block_at(height)
            if block is not None and block.hash == block_hash:
                return {"hash": block_hash, "height": height, "time": block.time, "confirmations": 1}
        raise Refusal(-5, "Block not found")

    def do_getblock(self, block_hash: str, verbosity: int) -> str:
        assert verbosity == 0
        if block_hash == self.do_getblockhash(0):
            return GENESIS.hex()
        return self._chain()._store.raw(bytes.fromhex(block_hash)[::-1]).hex()

    def do_getrawtransaction(self, txid: str, verbosity: int = 0, block_hash: str | None = None) -> Any:
        known = self._chain().transaction(txid)
        block = None if known is None else known.block
        if known is None or (block_hash is not None and (block is None or block.hash != block_hash)):
            raise Refusal(
                -5, "No such mempool or blockchain transaction. Use gettransaction for wallet ones."
            )
        raw = known.transaction.serialize().hex()
        if verbosity == 0:
            return raw
        found = {"hex": raw, "txid": txid}
        if block is not None:
            found |= {"blockhash": block.hash, "confirmations": 1}
        return found | ({} if block_hash is None else {"in_active_chain": True})

    def do_getrawmempool(self) -> list[str]:
        return [entry.transaction.txid for entry in self._chain()._mempool]

    def do_gettxspendingprevout(self, outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        mempool = self._chain()._mempool
        spends = (mempool.spender(OutPoint(each["txid"], each["vout"])) for each in outputs)
        return [
            each | ({} if spend is None else {"spendingtxid": spend.txid})
            for each, spend in zip(outputs, spends, strict=True)
        ]

    def do_scanblocks(
        self, action: str, scripts: list[str], start: int, stop: int, kind: str
    ) -> dict[str, Any]:
        """Filters have false positives: one block in seven here."""
        assert (action, kind) == ("start", "basic")
        index = self._chain()._index
        wanted = {bytes.fromhex(script.removeprefix("raw(").removesuffix(")")) for script in scripts}
        covered = range(start, min(stop, index.tip.height - self.faults.index_behind) + 1)
        found = [height for height in covered if height % 7 == 0 or wanted & set(self._touched(height))]
        return {
            "from_height": start,
            "to_height": stop,
            "relevant_blocks": [self.do_getblockhash(height) for height in found],
            "completed": True,
        }

    def _touched(self, height: int) -> Iterator[bytes]:
        index = self._chain()._index
        for transaction in index._blocks[height].transactions:
            yield from (out.script_pubkey for out in transaction.outputs)
            coins = (index.coin(txin.outpoint) for txin in transaction.inputs)
            yield from (coin.script_pubkey for coin in coins if coin is not None)

    def do_sendrawtransaction(self, raw: str, maxfeerate: str, maxburnamount: str) -> str:
        assert (maxfeerate, maxburnamount) == ("0.10", "0")
        transaction = _parse(raw)
        outcome = self._chain().broadcast(transaction)
        match outcome:
            case Accepted() | AlreadyKnown(confirmed=False):
                return transaction.txid
            case AlreadyKnown():
                raise Refusal(-27, "Transaction outputs already in utxo set")
            case _:
                code = -25 if outcome.code is RefusalCode.MISSING_INPUTS else -26
                raise Refusal(code, f"{REASONS[outcome.code]}, {outcome.reason}")

    def do_estimatesmartfee(self, target: int, mode: str) -> dict[str, Any]:
        assert 1 <= target <= 1_008
        return {"errors": ["Insufficient data or no feerate found"], "blocks": target}

    def do_getmempoolinfo(self) -> dict[str, Any]:
        return {"loaded": True, "mempoolminfee": 0.000001, "minrelaytxfee": 0.000001}


def _parse(raw: str) -> Transaction:
    try:
        return Transaction.parse(bytes.fromhex(raw))
    except InvalidTransaction as error:
        raise Refusal(-22, "TX decode failed. Make sure the tx has at least one input.") from error


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    node: FakeBitcoind


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one segment: otherwise Nagle's algorithm delays each answer by 40 ms.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_args: Any) -> None:
        """Keeps standard error empty."""

    def do_POST(self) -> None:
        node, faults = self.server.node, self.server.node.faults
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if faults.held is not None:
            faults.held.wait(60)
        if faults.hangs_up:
            self.close_connection = True
            return
        if not node.authorised(self.headers["Authorization"]):
            self._answer(401, b"")
            return
        body = json.dumps([node.reply(each) for each in json.loads(content)]).encode()
        self._answer(faults.status, body if faults.body is None else faults.body)

    def _answer(self, status: int, body: bytes) -> None:
        cut = self.server.node.faults.cut_at
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])
        if cut is not None:
            self.close_connection = True


class FakeNodeRig(EmbeddedRig):
    """The Core backend with a simulated node."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.node = FakeBitcoind(lambda: self.chain)
        self.core = self.node.connect()

    @property
    def backend(self) -> CoreBackend:
        return self.core

    def close(self) -> None:
        self.core.close()
        self.node.close()
        super().close()

    @contextmanager
    def down(self) -> Iterator[None]:
        self.node.faults.hangs_up = True
        try:
            yield
        finally:
            self.node.faults.hangs_up = False
