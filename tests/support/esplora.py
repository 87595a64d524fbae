"""Esplora's HTTP API over an embedded chain, with an explorer's behaviour and the faults that a test sets.

The shapes are those of Esplora's API.md and of electrs' rest.rs: newest first in pages, 50 of the mempool,
bytes that stay known after their block was lost, `{"confirmed": false}` for anything unknown,
a node's errors as text with 400.
"""

import json
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from custody.common.exchange import HttpRequest, Outcome
from custody.server.chain.backend import (
    Accepted,
    AlreadyKnown,
    BlockRef,
    ChainBackend,
    ChainTransaction,
)
from custody.server.chain.embedded import EmbeddedChain
from custody.server.chain.esplora import EsploraBackend
from custody.server.chain.esplora.wire import RequestPace
from custody.server.chain.raw_blocks import BlockHeader, read_block
from multisig.errors import InvalidTransaction
from multisig.hashes import sha256d
from multisig.network import Network
from multisig.transaction import OutPoint, Transaction
from tests.support.background import answering
from tests.support.chains import REASONS, EmbeddedRig
from tests.support.sdk import through

URL = "https://explorer.example.org/api"
# Without a cache, and without a pause before a retry.
AT_ONCE = RequestPace(tip_seconds=0, scripts_seconds=0, fees_seconds=0, first_pause=0)
PAGE, MEMPOOL_PAGE = 25, 50
GENESIS_HEADER = bytes.fromhex(
    "01000000" + "00" * 32 + "3ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a"
    "dae5494dffff7f2002000000"
)
ESTIMATES = {"1": 12.345, "2": 12.345, "3": 8.0, "6": 4.0, "25": 2.001, "144": 1.0, "1008": 1.0}


# A miss is searched for in every block each time.
@cache
def _transactions(raw: bytes):
    return [each.parse() for each in read_block(raw, BlockHeader.parse(raw).hash).transactions]


Twist = Callable[[httpx.Response], httpx.Response]


def plain(text: str, status: int = 200) -> httpx.Response:
    return httpx.Response(status, headers={"Content-Type": "text/plain"}, content=text.encode())


def as_json(value: object) -> httpx.Response:
    return httpx.Response(
        200, headers={"Content-Type": "application/json"}, content=json.dumps(value).encode()
    )


def edited(change: Callable[[object], object]) -> Twist:
    """An answer with its JSON changed."""
    return lambda response: as_json(change(json.loads(response.content)))


def merkle_branch(txids: Sequence[str], position: int) -> list[str]:
    """The siblings from the leaf up, in display order."""
    level, branch = [bytes.fromhex(txid)[::-1] for txid in txids], []
    while len(level) > 1:
        level += level[-1:] * (len(level) % 2)
        branch.append(level[position ^ 1][::-1].hex())
        level = [sha256d(left + right) for left, right in zip(level[::2], level[1::2], strict=True)]
        position //= 2
    return branch


def in_block(block: BlockRef) -> dict:
    """A transaction's status."""
    place = {"block_height": block.height, "block_hash": block.hash, "block_time": block.time}
    return {"confirmed": True} | place


class Explorer(httpx.BaseTransport):
    """`before` is called with the path of each request."""

    def __init__(self, chain: Callable[[], EmbeddedChain]) -> None:
        self._chain_now = chain
        self._twists: list[tuple[re.Pattern[str], Twist]] = []
        self.asked: list[str] = []
        self.sent: list[str] = []
        self.last_kind: str | None = None
        self.before: Callable[[str], None] = lambda path: None
        self._through = through(self)

    def __call__(self, request: HttpRequest) -> Outcome:
        """As the transport of a backend."""
        return self._through(request)

    @property
    def _chain(self) -> EmbeddedChain:
        return self._chain_now()

    @contextmanager
    def answering(self, pattern: str, twist: Twist) -> Iterator[None]:
        """Inside the context, `twist` changes the answers of matching paths, or raises."""
        mine = (re.compile(pattern), twist)
        self._twists.append(mine)
        try:
            yield
        finally:
            self._twists.remove(mine)

    @contextmanager
    def lying(self, transaction: Transaction, status: dict) -> Iterator[None]:
        """A transaction of its own is in every history or mempool, and wherever it is asked of it."""
        entry = {"txid": transaction.txid, "status": status}
        is_mined = status["confirmed"]
        pages, kind = ("chain", "chain_stats") if is_mined else ("mempool", "mempool_stats")

        def count(stats: dict) -> dict:
            return stats | {kind: {"tx_count": stats[kind]["tx_count"] + 1}}

        raw = httpx.Response(200, content=transaction.serialize())
        with (
            self.answering(f"/scripthash/[^/]*/txs/{pages}", edited(lambda page: [entry, *page])),
            self.answering("/scripthash/[0-9a-f]*", edited(count)),
            self.answering(f"/tx/{transaction.txid}/raw", lambda _: raw),
            self.answering(f"/tx/{transaction.txid}/status", lambda _: as_json(status)),
        ):
            yield

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.last_kind = request.headers.get("Content-Type")
        path = request.url.path.removeprefix("/api")
        self.asked.append(path)
        self.before(path)
        response = self._route(request.method, path, request.content)
        for pattern, twist in self._twists:
            if pattern.fullmatch(path):
                response = twist(response)
        return response

    def _route(self, method: str, path: str, body: bytes) -> httpx.Response:
        with self._chain._lock:
            for pattern, handler in ROUTES:
                match = re.fullmatch(pattern, f"{method} {path}")
                if match:
                    return handler(self, *match.groups(), **({"body": body} if method == "POST" else {}))
        return plain(f'endpoint does not exist "{path}"', 404)

    # Blocks

    def tip_hash(self) -> httpx.Response:
        return plain(self._chain.tip().hash)

    def hash_at(self, height: str) -> httpx.Response:
        block = self._chain.block_at(int(height))
        return plain("Block not found", 404) if block is None else plain(block.hash)

    def header_bytes(self, block_hash: str) -> bytes:
        if block_hash == self._chain.block_at(0).hash:
            return GENESIS_HEADER
        return self._chain._store.raw(bytes.fromhex(block_hash)[::-1])[:80]

    def block(self, block_hash: str) -> httpx.Response:
        ref = next((each.ref for each in self._blocks() if each.ref.hash == block_hash), None)
        if ref is None:
            return plain("Block not found", 404)
        return as_json(self.block_value(ref.height, self.header_bytes(ref.hash)))

    def block_bytes(self, block_hash: str) -> httpx.Response:
        if all(each.ref.hash != block_hash for each in self._blocks()):
            return plain("Block not found", 404)
        raw = self._chain._store.raw(bytes.fromhex(block_hash)[::-1])
        return httpx.Response(200, headers={"Content-Type": "application/octet-stream"}, content=raw)

    def block_list(self, first: str) -> httpx.Response:
        """Ten blocks from that height down."""
        top = int(first)
        if self._chain.block_at(top) is None:
            return plain("Block not found", 404)
        refs = [each.ref for each in self._blocks()[max(0, top - 9) : top + 1]]
        return as_json([self.block_value(ref.height, self.header_bytes(ref.hash)) for ref in reversed(refs)])

    @staticmethod
    def block_value(height: int, header: bytes) -> dict:
        version, previous, root, time, bits, nonce = struct.unpack("<I32s32sIII", header)
        return {
            "id": sha256d(header)[::-1].hex(),
            "height": height,
            "version": version,
            "timestamp": time,
            "merkle_root": root[::-1].hex(),
            "previousblockhash": previous[::-1].hex() if any(previous) else None,
            "nonce": nonce,
            "bits": bits,
        }

    def _blocks(self):
        return self._chain._index._blocks

    # Transactions

    def raw(self, txid: str) -> httpx.Response:
        transaction = self._ever(txid)
        if transaction is None:
            return plain("Transaction not found", 404)
        headers = {"Content-Type": "application/octet-stream"}
        return httpx.Response(200, headers=headers, content=transaction.serialize())

    def _ever(self, txid: str) -> Transaction | None:
        known = self._chain.transaction(txid)
        if known is not None:
            return known.transaction
        stored = (each for raw in self._chain._store.blocks() for each in _transactions(raw))
        return next((each for each in stored if each.txid == txid), None)

    def status(self, txid: str) -> httpx.Response:
        return as_json(self._status(self._chain.transaction(txid)))

    def _status(self, known: ChainTransaction | None) -> dict:
        if known is None or known.block is None:
            return {"confirmed": False}
        return in_block(self._chain.block_at(known.block.height))

    def proof(self, txid: str) -> httpx.Response:
        known = self._chain.transaction(txid)
        if known is None or known.block is None:
            return plain("Transaction not found or is unconfirmed", 404)
        txids = [each.txid for each in self._blocks()[known.block.height].transactions]
        position = txids.index(txid)
        return as_json(
            {"block_height": known.block.height, "merkle": merkle_branch(txids, position), "pos": position}
        )

    def outspend(self, txid: str, vout: str) -> httpx.Response:
        spend = self._chain.spender(OutPoint(txid, int(vout)))
        if spend is None:
            return as_json({"spent": False})
        status = self._status(self._chain.transaction(spend.txid))
        return as_json({"spent": True, "txid": spend.txid, "vin": 0, "status": status})

    def send(self, body: bytes) -> httpx.Response:
        try:
            transaction = Transaction.parse(bytes.fromhex(body.decode()))
        except (ValueError, InvalidTransaction):
            return _rpc_error(-22, "TX decode failed. Make sure the tx has at least one input.")
        self.sent.append(transaction.txid)
        outcome = self._chain.broadcast(transaction)
        if isinstance(outcome, AlreadyKnown) and outcome.confirmed:
            return _rpc_error(-27, "Transaction outputs already in utxo set")
        if isinstance(outcome, Accepted | AlreadyKnown):
            return plain(transaction.txid)
        return _rpc_error(-26, REASONS[outcome.code])

    def estimates(self) -> httpx.Response:
        return as_json(ESTIMATES)

    # Scripts

    def stats(self, scripthash: str) -> httpx.Response:
        found = {"chain_stats": self._mined(scripthash), "mempool_stats": self._waiting(scripthash)}
        return as_json({name: {"tx_count": len(some)} for name, some in found.items()})

    def history(self, scripthash: str, last_seen: str | None) -> httpx.Response:
        entries = list(reversed(self._mined(scripthash)))
        if last_seen is not None:
            txids = [transaction.txid for _, transaction in entries]
            entries = entries[txids.index(last_seen) + 1 :] if last_seen in txids else []
        return as_json([self._entry(transaction) for _, transaction in entries[:PAGE]])

    def mempool(self, scripthash: str) -> httpx.Response:
        return as_json([self._entry(each) for each in self._waiting(scripthash)[:MEMPOOL_PAGE]])

    def _mined(self, scripthash: str) -> list[tuple[BlockRef, Transaction]]:
        found = ((block.ref, each) for block in self._blocks() for each in block.transactions)
        return [(ref, each) for ref, each in found if self._touches(scripthash, each)]

    def _waiting(self, scripthash: str) -> list[Transaction]:
        entries = (entry.transaction for entry in self._chain._mempool)
        return [each for each in entries if self._touches(scripthash, each)]

    def _touches(self, scripthash: str, transaction: Transaction) -> bool:
        return any(_is(scripthash, out) for out in (*transaction.outputs, *self._spent(transaction)))

    def _spent(self, transaction: Transaction):
        for txin in transaction.inputs:
            made_by = self._chain.transaction(txin.outpoint.txid)
            if made_by is not None:
                yield made_by.transaction.outputs[txin.outpoint.vout]

    def _entry(self, transaction: Transaction) -> dict:
        """What else an explorer says of it is never read: `test_lies.py` puts lies there."""
        status = self._status(self._chain.transaction(transaction.txid))
        return {"txid": transaction.txid, "status": status}


def _is(scripthash: str, output) -> bool:
    return sha256(output.script_pubkey).hexdigest() == scripthash


def _rpc_error(code: int, message: str) -> httpx.Response:
    error = json.dumps({"code": code, "message": message}, separators=(",", ":"))
    return plain(f"sendrawtransaction RPC error: {error}", 400)


HASH = "([0-9a-f]{64})"
ROUTES = (
    ("GET /blocks/tip/hash", Explorer.tip_hash),
    ("GET /block-height/([0-9]+)", Explorer.hash_at),
    (f"GET /block/{HASH}", Explorer.block),
    (f"GET /block/{HASH}/raw", Explorer.block_bytes),
    ("GET /blocks/([0-9]+)", Explorer.block_list),
    (f"GET /tx/{HASH}/raw", Explorer.raw),
    (f"GET /tx/{HASH}/status", Explorer.status),
    (f"GET /tx/{HASH}/merkle-proof", Explorer.proof),
    (f"GET /tx/{HASH}/outspend/([0-9]+)", Explorer.outspend),
    (f"GET /scripthash/{HASH}", Explorer.stats),
    (f"GET /scripthash/{HASH}/txs/chain(?:/{HASH})?", Explorer.history),
    (f"GET /scripthash/{HASH}/txs/mempool", Explorer.mempool),
    ("GET /fee-estimates", Explorer.estimates),
    ("POST /tx", Explorer.send),
)


@contextmanager
def served(explorer: Explorer) -> Iterator[str]:
    """Serves the explorer on a local port; yields the URL of its API."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            url = f"http://{self.headers['Host']}{self.path}"
            answer = explorer.handle_request(httpx.Request(self.command, url, content=body))
            self.send_response(answer.status_code)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_):
            pass

    Handler.do_POST = Handler.do_GET
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}/api"


class EsploraRig(EmbeddedRig):
    """The contract suite's rig of an Esplora over the embedded chain."""

    def __init__(self, folder) -> None:
        super().__init__(folder)
        self._connect()

    def _connect(self) -> None:
        self.explorer = Explorer(lambda: self.chain)
        self._backend = self.stranger()

    def stranger(self) -> EsploraBackend:
        """A backend that has seen nothing yet."""
        return EsploraBackend(URL, Network.REGTEST, pace=AT_ONCE, transport=self.explorer)

    def renew(self) -> None:
        """For the next test: a new explorer and backend, and an empty mempool."""
        self._backend.close()
        self.forget()
        self._connect()

    @property
    def backend(self) -> ChainBackend:
        return self._backend

    def close(self) -> None:
        self._backend.close()
        super().close()

    @contextmanager
    def down(self) -> Iterator[None]:
        with self.explorer.answering(".*", _nobody_answers):
            yield


def _nobody_answers(_response: httpx.Response) -> httpx.Response:
    raise httpx.ConnectError("Connection refused")
