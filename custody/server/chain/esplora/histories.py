"""The history of each watched script and the coins that follow from it; an unchanged one costs one small
request.
"""

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from custody.server.chain.backend import (
    BlockRef,
    ChainTransaction,
    FoundOutput,
    SpendingTransaction,
    outputs_of,
)
from custody.server.chain.esplora.blocks import BestChain, ChainInconsistent
from custody.server.chain.esplora.shapes import ScriptHistoryEntry, ScriptStats, read
from custody.server.chain.esplora.transactions import Transactions, is_coinbase
from custody.server.chain.esplora.wire import Wire
from custody.server.errors import ChainUnavailable
from multisig.transaction import Transaction


@dataclass(frozen=True)
class ScriptHistory:
    """What happened to a script: `confirmed` from the oldest on, and the coins that follow from all of it.

    `tip` is the hash of the tip at which it was asked, `asked_at` the clock's time.
    """

    confirmed: tuple[ChainTransaction, ...]
    outputs: tuple[FoundOutput, ...]
    tip: str
    asked_at: float


def coins_of(
    script: bytes, sightings: Sequence[ChainTransaction]
) -> tuple[tuple[FoundOutput, ...], tuple[Transaction, ...]]:
    """Every output that pays the script, with its spender; and the transactions that spend them. Raises
    ChainInconsistent where one is spent twice.
    """
    coins = {
        output.outpoint: output
        for each in sightings
        for output in outputs_of(
            each.transaction, each.block, {script}, coinbase=is_coinbase(each.transaction)
        )
    }
    spenders: dict[str, Transaction] = {}
    for each in sightings:
        txid = each.transaction.txid
        for txin in each.transaction.inputs:
            coin = coins.get(txin.outpoint)
            if coin is None:
                continue
            if coin.spent is not None:
                raise ChainInconsistent("The explorer shows two spends of one coin.")
            spent = SpendingTransaction(txid, each.block)
            coins[txin.outpoint], spenders[txid] = replace(coin, spent=spent), each.transaction
    return tuple(coins.values()), tuple(spenders.values())


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
        outputs, spenders = coins_of(script, sightings)
        for spender in spenders:
            self._transactions.require_valid(spender)
        return ScriptHistory(confirmed, outputs, tip.hash, asked_at)

    def _still_true(self, known: ScriptHistory | None) -> tuple[ChainTransaction, ...]:
        """What was confirmed before, or nothing where a branch has replaced one of its blocks.

        A history only grows while its blocks stay, so that its length says whether there is more.
        """
        if known is None:
            return ()
        blocks = {sighting.block for sighting in known.confirmed if sighting.block is not None}
        stands = all(self._chain.block_at(block.height) == block for block in blocks)
        return known.confirmed if stands else ()

    def _confirmed(
        self, path: str, count: int, before: tuple[ChainTransaction, ...]
    ) -> tuple[ChainTransaction, ...]:
        if count > MAX_HISTORY:
            raise ChainUnavailable(f"A watched script has more than {MAX_HISTORY} transactions.")
        seen = {sighting.transaction.txid for sighting in before}
        newer: dict[str, ScriptHistoryEntry] = {}
        while len(newer) + len(before) < count:
            after = f"/{next(reversed(newer))}" if newer else ""
            # Newest first, 25 of them or as many as the explorer's operator sets.
            page = read(self._wire.get(f"{path}/txs/chain{after}"), list[ScriptHistoryEntry])
            fresh = {entry.txid: entry for entry in page if entry.txid not in seen}
            if not fresh or fresh.keys() & newer.keys():
                raise ChainInconsistent("The explorer's history of a script is shorter than it says.")
            newer |= fresh
        return (*before, *(self._sighting(entry) for entry in reversed(newer.values())))

    def _sighting(self, entry: ScriptHistoryEntry) -> ChainTransaction:
        transaction = self._transactions.named(entry.txid)
        block = self._transactions.prove(transaction, entry.status)
        if block is None:
            raise ChainInconsistent(
                "The explorer's history of what is confirmed holds something that is not."
            )
        return ChainTransaction(transaction, block)

    def _waiting(self, path: str, confirmed: tuple[ChainTransaction, ...]) -> tuple[ChainTransaction, ...]:
        """The first 50 of the mempool, which is all that an Esplora shows."""
        entries = read(self._wire.get(f"{path}/txs/mempool"), list[ScriptHistoryEntry])
        if any(entry.status.confirmed for entry in entries):
            raise ChainInconsistent("The explorer's mempool holds something that is confirmed.")
        waiting = dict.fromkeys(entry.txid for entry in entries)
        for mined in confirmed:
            waiting.pop(mined.transaction.txid, None)
        return tuple(ChainTransaction(self._transactions.named(txid), None) for txid in waiting)
