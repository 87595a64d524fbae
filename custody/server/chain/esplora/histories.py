"""The history of each watched script and the coins that follow from it; an unchanged one costs one small
request.
"""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from custody.server.chain.backend import BlockRef, FoundOutput, SpendingTransaction
from custody.server.chain.esplora.blocks import BestChain, ChainInconsistent
from custody.server.chain.esplora.shapes import ScriptHistoryEntry, ScriptStats, read
from custody.server.chain.esplora.transactions import Transactions, is_coinbase
from custody.server.chain.esplora.wire import Wire
from custody.server.errors import ChainUnavailable
from multisig.transaction import OutPoint, Transaction


@dataclass(frozen=True)
class ScriptTx:
    """A transaction that pays a script or spends from it. `block` is None while it waits in the mempool."""

    transaction: Transaction
    block: BlockRef | None


@dataclass(frozen=True)
class ScriptHistory:
    """What happened to a script: `confirmed` from the oldest on, and the coins that follow from all of it.

    `tip` is the hash of the tip at which it was asked, `asked_at` the clock's time.
    """

    confirmed: tuple[ScriptTx, ...]
    outputs: tuple[FoundOutput, ...]
    tip: str
    asked_at: float


def outputs_of(script: bytes, sightings: Sequence[ScriptTx]) -> tuple[FoundOutput, ...]:
    """Every output that pays the script, with its spender. Raises ChainInconsistent where one is
    spent twice.
    """
    paid = {outpoint: sighting for sighting in sightings for outpoint in _paid(script, sighting)}
    spends: dict[OutPoint, SpendingTransaction] = {}
    for sighting, outpoint in _spends(sightings, paid):
        if outpoint in spends:
            raise ChainInconsistent("The explorer shows two spends of one coin.")
        height = None if sighting.block is None else sighting.block.height
        spends[outpoint] = SpendingTransaction(sighting.transaction.txid, height)
    return tuple(_found(outpoint, sighting, spends.get(outpoint)) for outpoint, sighting in paid.items())


def spenders_in(script: bytes, sightings: Sequence[ScriptTx]) -> tuple[Transaction, ...]:
    """The transactions that spend the script's coins."""
    paid = {outpoint for sighting in sightings for outpoint in _paid(script, sighting)}
    found = {sighting.transaction.txid: sighting.transaction for sighting, _ in _spends(sightings, paid)}
    return tuple(found.values())


def _paid(script: bytes, sighting: ScriptTx) -> Iterator[OutPoint]:
    for vout, output in enumerate(sighting.transaction.outputs):
        if output.script_pubkey == script:
            yield OutPoint(sighting.transaction.txid, vout)


def _spends(sightings: Sequence[ScriptTx], coins: Iterable[OutPoint]) -> Iterator[tuple[ScriptTx, OutPoint]]:
    ours = frozenset(coins)
    for sighting in sightings:
        for txin in sighting.transaction.inputs:
            if txin.outpoint in ours:
                yield sighting, txin.outpoint


def _found(outpoint: OutPoint, sighting: ScriptTx, spent: SpendingTransaction | None) -> FoundOutput:
    output = sighting.transaction.outputs[outpoint.vout]
    return FoundOutput(
        outpoint=outpoint,
        amount=output.amount,
        script_pubkey=output.script_pubkey,
        height=None if sighting.block is None else sighting.block.height,
        block_hash=None if sighting.block is None else sighting.block.hash,
        coinbase=is_coinbase(sighting.transaction),
        spent=spent,
    )


# An attacker who wants to make a script unreadable has to pay for this many transactions to it.
MAX_HISTORY = 50_000


class Histories:
    """Raises ChainUnavailable; ChainInconsistent where two answers cannot both be true."""

    def __init__(
        self, wire: Wire, chain: BestChain, transactions: Transactions, clock: Callable[[], float]
    ) -> None:
        self._wire = wire
        self._chain = chain
        self._transactions = transactions
        self._clock = clock
        self._known: dict[bytes, ScriptHistory] = {}
        self._expired_at = -math.inf
        self._lock = threading.Lock()

    def expire(self) -> None:
        """Called after a broadcast, so that the next query shows it."""
        with self._lock:
            self._expired_at = self._clock()

    def fresh(self, script: bytes, tip: BlockRef, period: float) -> ScriptHistory | None:
        """The history read at this tip, less than `period` seconds ago; else None."""
        with self._lock:
            known = self._known.get(script)
            expired = known is None or known.asked_at <= self._expired_at
        if known is None or expired or known.tip != tip.hash or self._clock() - known.asked_at >= period:
            return None
        return known

    def ask(self, script: bytes, tip: BlockRef) -> ScriptHistory:
        """The history as it is now."""
        with self._lock:
            known = self._known.get(script)
        try:
            history = self._read(script, tip, known)
        except ChainInconsistent:
            # The known half may be the wrong one: the next read begins from nothing.
            with self._lock:
                self._known.pop(script, None)
            raise
        with self._lock:
            self._known[script] = history
        return history

    def _read(self, script: bytes, tip: BlockRef, known: ScriptHistory | None) -> ScriptHistory:
        asked_at = self._clock()
        path = f"/scripthash/{sha256(script).hexdigest()}"
        stats = read(self._wire.get(path), ScriptStats)
        confirmed = self._confirmed(path, stats.chain_stats.tx_count, self._still_true(known))
        waiting = self._waiting(path, confirmed) if stats.mempool_stats.tx_count else ()
        sightings = (*confirmed, *waiting)
        for spender in spenders_in(script, sightings):
            self._transactions.require_valid(spender)
        return ScriptHistory(confirmed, outputs_of(script, sightings), tip.hash, asked_at)

    def _still_true(self, known: ScriptHistory | None) -> tuple[ScriptTx, ...]:
        """What was confirmed before, or nothing where a branch has replaced one of its blocks.

        A history only grows while its blocks stay, so that its length says whether there is more.
        """
        if known is None:
            return ()
        blocks = {sighting.block for sighting in known.confirmed if sighting.block is not None}
        stands = all(self._chain.block_at(block.height) == block for block in blocks)
        return known.confirmed if stands else ()

    def _confirmed(self, path: str, count: int, before: tuple[ScriptTx, ...]) -> tuple[ScriptTx, ...]:
        if count > MAX_HISTORY:
            raise ChainUnavailable(f"A watched script has more than {MAX_HISTORY} transactions.")
        seen = {sighting.transaction.txid for sighting in before}
        newer: dict[str, ScriptHistoryEntry] = {}
        while len(newer) + len(before) < count:
            page = self._page(path, last_seen=next(reversed(newer), None))
            fresh = {entry.txid: entry for entry in page if entry.txid not in seen}
            if not fresh or fresh.keys() & newer.keys():
                raise ChainInconsistent("The explorer's history of a script is shorter than it says.")
            newer |= fresh
        return (*before, *(self._sighting(entry) for entry in reversed(newer.values())))

    def _page(self, path: str, last_seen: str | None) -> tuple[ScriptHistoryEntry, ...]:
        """Newest first, 25 of them or as many as the explorer's operator sets."""
        after = "" if last_seen is None else f"/{last_seen}"
        return tuple(read(self._wire.get(f"{path}/txs/chain{after}"), list[ScriptHistoryEntry]))

    def _sighting(self, entry: ScriptHistoryEntry) -> ScriptTx:
        transaction = self._bytes(entry)
        block = self._transactions.prove(transaction, entry.status)
        if block is None:
            raise ChainInconsistent(
                "The explorer's history of what is confirmed holds something that is not."
            )
        return ScriptTx(transaction, block)

    def _waiting(self, path: str, confirmed: tuple[ScriptTx, ...]) -> tuple[ScriptTx, ...]:
        """The first 50 of the mempool, which is all that an Esplora shows."""
        entries = read(self._wire.get(f"{path}/txs/mempool"), list[ScriptHistoryEntry])
        mined = {sighting.transaction.txid for sighting in confirmed}
        return tuple(self._unmined(entries, mined))

    def _unmined(self, entries: list[ScriptHistoryEntry], mined: set[str]) -> Iterator[ScriptTx]:
        for entry in {entry.txid: entry for entry in entries}.values():
            if entry.status.confirmed:
                raise ChainInconsistent("The explorer's mempool holds something that is confirmed.")
            if entry.txid not in mined:
                yield ScriptTx(self._bytes(entry), None)

    def _bytes(self, entry: ScriptHistoryEntry) -> Transaction:
        transaction = self._transactions.by_id(entry.txid)
        if transaction is None:
            raise ChainInconsistent("The explorer lacks a transaction that it names.")
        return transaction
