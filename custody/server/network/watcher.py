"""Follows one chain: new blocks, reorganisations, deposits, and their effect on proposals."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from custody.server.audit.log import AuditLog
from custody.server.chain.backend import ChainBackend
from custody.server.errors import ChainUnavailable
from custody.server.jobs.leases import Held
from custody.server.network import asides
from custody.server.network.backends import Backends, Market, backend_of
from custody.server.network.deposits import KEPT_BLOCKS, ChainSnapshot, Coins, take_snapshot
from custody.server.network.movements import MovementWriter
from custody.server.network.sightings import Sightings, affected, spenders, without_final
from custody.server.proposals.lifecycle import Lifecycle
from custody.server.store import Store
from custody.server.store.models import ChainBlockRow, WatchedScriptRow
from custody.server.store.store import after_commit
from multisig import FeeRate, OutPoint

log = structlog.get_logger()

# Payments near the end of the gap extend it, which needs another read; one poll has at most this many.
MAX_ROUNDS = 50


@dataclass(eq=False)
class Watcher:
    """Polls one chain, one poll at a time. It remembers the last snapshot, to skip an equal one."""

    chain: str
    store: Store
    backends: Backends
    market: Market
    audit: AuditLog
    lifecycle: Lifecycle
    _scanned: frozenset[bytes] = frozenset()
    _seen: object = None
    _settled: bool = True
    _held: Held | None = None
    _stuck: bool = False
    _required_rate: FeeRate | None = None

    def __post_init__(self) -> None:
        self._coins = Coins(self.chain, self.lifecycle.clock, self.lifecycle.events)
        self._movements = MovementWriter(self.chain, self.lifecycle.clock)

    def look(self, held: Held | None = None) -> bool:
        """Reads the chain and writes what changed; returns whether anything did. ``held``: the lease under
        which this process follows the chain, checked in each transaction that writes.

        Raises ChainUnavailable, LeaseLost.
        """
        if held != self._held:
            # Another process has followed the chain since, perhaps through another node: an equal snapshot
            # does not mean that the stored state is equal.
            self._held, self._scanned, self._seen = held, frozenset(), None
        if not self._settled:
            # Proposals that wait for the index of tokens are settled later, on an unchanged chain.
            self._seen = None
        self._required_rate = self.market.refresh(self.chain).rates["low"]
        try:
            changed = self._read_on()
        except ChainUnavailable as error:
            self._tell_stuck(error.detail)
            raise
        self._tell_stuck(None)
        return changed

    def _read_on(self) -> bool:
        backend = backend_of(self.backends, self.chain)
        changed = False
        for _ in range(MAX_ROUNDS):
            blocks, scripts, waiting = self._known()
            new = frozenset() if scripts is self._scanned else scripts - self._scanned
            snapshot = take_snapshot(backend, blocks, self._scanned, new, waiting)
            seen = _essence(snapshot)
            if seen == self._seen and not new:
                return changed
            there, raws = self._fetch(backend, snapshot)
            self._write(blocks, there, raws)
            self._scanned, self._seen, changed = scripts, seen, True
            if there is not snapshot:
                # A transaction that left may be back at the next poll, which would then look equal.
                self._seen = None
                return changed
        raise ChainUnavailable(f"The watched scripts of {self.chain} grow with each read.")

    def _tell_stuck(self, reason: str | None) -> None:
        """Logs once when the chain cannot be read although the backend answers, and once when it can
        again.
        """
        was, self._stuck = self._stuck, reason is not None
        if self._stuck and not was:
            log.warning("watcher stuck", chain=self.chain, reason=reason)
        elif was and not self._stuck:
            log.info("watcher goes on", chain=self.chain)

    def _known(self) -> tuple[Mapping[int, str], frozenset[bytes], Mapping[OutPoint, bytes]]:
        """The stored blocks, the watched scripts, and the scripts of the coins that wait."""
        blocks = select(ChainBlockRow.height, ChainBlockRow.block_hash)
        ours = WatchedScriptRow.chain == self.chain
        with self.store.read() as db:
            known = dict(db.execute(blocks.where(ChainBlockRow.chain == self.chain)).all())
            scripts = self._scanned
            # Scripts are never removed: an equal count means equal scripts.
            if db.scalar(select(func.count()).where(ours)) != len(scripts):
                scripts = frozenset(db.scalars(select(WatchedScriptRow.script_pubkey).where(ours)))
            return known, scripts, self._coins.waiting(db)

    def _fetch(
        self, backend: ChainBackend, snapshot: ChainSnapshot
    ) -> tuple[ChainSnapshot, dict[str, bytes]]:
        """By txid, the bytes that are not stored yet, of transactions that create coins, and of proposals
        that signers finalised without the platform. What has left the mempool since is removed from the
        snapshot: somebody who keeps replacing a deposit must not block everything else.
        """
        with self.store.read() as db:
            missing = self._coins.missing_transactions(db, snapshot.outputs)
            finals = without_final(db, self.chain, spenders(snapshot))
        there = {txid: backend.transaction(txid) for txid in sorted(missing | finals)}
        transactions = {
            txid: known.transaction.serialize() for txid, known in there.items() if known is not None
        }
        gone = missing - transactions.keys()
        if not gone:
            return snapshot, transactions
        if any(each.block is not None and each.outpoint.txid in gone for each in snapshot.outputs):
            raise ChainUnavailable("A transaction left the chain while it was read.")
        outputs = tuple(each for each in snapshot.outputs if each.outpoint.txid not in gone)
        return replace(snapshot, outputs=outputs), transactions

    def _write(self, known: Mapping[int, str], snapshot: ChainSnapshot, raws: Mapping[str, bytes]) -> None:
        reorganised = bool(known) and snapshot.fork < max(known)
        with self.store.write() as db:
            if self._held is not None:
                self._held.require(db)
            touched = self._coins.apply(db, snapshot, raws)
            self._movements.apply(db, snapshot, touched)
            asides.carry_on(db, self.audit, self.chain, touched)
            self._store_blocks(db, snapshot)
            sightings = Sightings(
                db, self.audit, self.lifecycle, self.chain, snapshot, raws, self._required_rate
            )
            settled = sightings.settle(affected(db, self.chain, snapshot, reorganised=reorganised))
            if snapshot.blocks or reorganised:
                self.lifecycle.changes.moved_by_block(db, self.chain)
            after_commit(db, self.lifecycle.changes.announce)
        self._settled = settled
        if reorganised:
            depth = max(known) - snapshot.fork
            self.store.meters.reorganisation_depth.labels(self.chain).observe(depth)
            log.warning("chain reorganised", chain=self.chain, fork=snapshot.fork, depth=depth)
        if snapshot.blocks:
            tip = snapshot.tip
            log.info("tip moved", chain=self.chain, height=tip.height, block=tip.hash)

    def _store_blocks(self, db: Session, snapshot: ChainSnapshot) -> None:
        ours = ChainBlockRow.chain == self.chain
        oldest = snapshot.tip.height - KEPT_BLOCKS + 1
        is_kept = ChainBlockRow.height.between(oldest, snapshot.fork)
        db.execute(delete(ChainBlockRow).where(ours, ~is_kept))
        db.add_all(
            ChainBlockRow(
                chain=self.chain,
                height=block.height,
                block_hash=block.hash,
                mined_at=datetime.fromtimestamp(block.time, UTC),
                seen_at=self.lifecycle.clock(),
            )
            for block in snapshot.blocks
        )
        db.flush()


def _essence(snapshot: ChainSnapshot) -> object:
    """The part that shows whether anything changed: the tip decides what is confirmed; the rest is in the
    mempool.
    """
    waiting = (
        output
        for output in snapshot.outputs
        if output.block is None or (output.spent is not None and output.spent.block is None)
    )
    return snapshot.tip, frozenset(waiting)
