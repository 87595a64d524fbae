"""Indexes the tokens of one chain: forward block by block, and back effect by effect after a
reorganisation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from custody.server.chain.backend import ChainBackend, DataBlock
from custody.server.errors import ChainUnavailable
from custody.server.jobs.leases import Held
from custody.server.network.backends import Backends, backend_of
from custody.server.store import Store
from custody.server.store.models import (
    ChainBlockRow,
    TokenBlockRow,
    TokenEffectRow,
    TokenTransactionRow,
)
from custody.server.store.models.base import table_of
from custody.server.tokens.blocks import (
    Proposed,
    deployments_in,
    proposed_deployments,
    token_block,
    without,
)
from custody.server.tokens.state import Cells, Published, joined, published_bytecode, split
from multisig.tokens import TokenCall
from multisig.tokens.machine import (
    GENESIS_STATE,
    BlockOutcome,
    Cell,
    Effect,
    TokenOutcome,
    judge_block,
)
from multisig.tokens.payload import MAGIC

log = structlog.get_logger()

# This many blocks are read first and then written in one short transaction.
BATCH = 100
# A full block has thousands of calls: a batch ends with as many as are written in some tenths of a second.
CALLS_A_BATCH = 200


@dataclass(frozen=True)
class _Place:
    """The last block that was read. ``state`` is the hash after it."""

    height: int
    block_hash: str
    state: bytes


class Indexer:
    """Runs in one process at a time for each chain. ``first_height``: where to begin; None begins at the tip,
    for a new platform has no older tokens.
    """

    def __init__(
        self,
        chain: str,
        store: Store,
        backends: Backends,
        first_height: int | None,
        published: Published = published_bytecode,
        proposed: Proposed = proposed_deployments,
    ) -> None:
        self._chain = chain
        self._store = store
        self._backends = backends
        self._first_height = first_height
        self._published = published
        self._proposed = proposed

    @property
    def chain(self) -> str:
        return self._chain

    def look(self, held: Held | None = None) -> bool:
        """Reads up to the tip, batch by batch; returns whether anything was read. Raises ChainUnavailable,
        LeaseLost.
        """
        if self._is_current():
            return False
        backend = backend_of(self._backends, self._chain)
        changed = self._rewind(backend, held)
        while self._read_on(backend, held):
            changed = True
        return changed

    # --- forward --------------------------------------------------------------------------------------------

    def _read_on(self, backend: ChainBackend, held: Held | None) -> bool:
        place = self._place()
        blocks = list(self._next_blocks(backend, place))
        if not blocks:
            return False
        with self._store.write() as db:
            _require(db, held)
            self._apply(db, place, blocks)
        return True

    def _next_blocks(self, backend: ChainBackend, place: _Place | None) -> Iterator[DataBlock]:
        """The next blocks, each the child of the one before. Another block ends the batch: the next poll
        finds the fork.
        """
        height = self._start(backend) if place is None else place.height + 1
        before = None if place is None else place.block_hash
        calls = 0
        for at in range(height, height + BATCH):
            block = backend.data_at(at, MAGIC)
            if block is None or before not in {None, block.previous}:
                return
            yield block
            before = block.ref.hash
            calls += len(block.transactions)
            if calls >= CALLS_A_BATCH:
                return

    def _start(self, backend: ChainBackend) -> int:
        """The first block to be read. Raises ChainUnavailable where the chain has no such block yet."""
        tip = backend.tip().height
        if self._first_height is not None and tip < self._first_height:
            raise ChainUnavailable(
                f"Tokens are read from block {self._first_height} on, but the chain's tip is {tip}."
            )
        return tip if self._first_height is None else self._first_height

    def _apply(self, db: Session, place: _Place | None, blocks: Sequence[DataBlock]) -> None:
        blocks = self._without_foreign(db, blocks)
        given = [token_block(block) for block in blocks]
        cells, bytecode_of = Cells(db, self._chain), self._published(db, self._chain)
        state = GENESIS_STATE if place is None else place.state
        done = []
        for block in given:
            outcome = judge_block(block, cells, bytecode_of, state)
            cells.apply(outcome.effects)
            state = outcome.state
            done.append(outcome)
        cells.write()
        self._store_blocks(db, blocks, done)

    def _without_foreign(self, db: Session, blocks: Sequence[DataBlock]) -> Sequence[DataBlock]:
        """Without deployments that no member of this platform proposed (`proposed_deployments`)."""
        deployed = deployments_in(blocks)
        foreign = deployed.difference(self._proposed(db, self._chain, deployed))
        return [without(block, foreign) for block in blocks] if foreign else blocks

    def _store_blocks(self, db: Session, blocks: Sequence[DataBlock], done: Sequence[BlockOutcome]) -> None:
        rows = [
            {
                "chain": self._chain,
                "height": outcome.height,
                "block_hash": block.ref.hash,
                "mined_at": datetime.fromtimestamp(block.ref.time, UTC),
                "state": outcome.state,
            }
            for block, outcome in zip(blocks, done, strict=True)
        ]
        transactions = [
            self._transaction(block, position, outcome)
            for block, judged in zip(blocks, done, strict=True)
            for position, outcome in zip(
                (one.position for one in block.transactions), judged.outcomes, strict=True
            )
        ]
        effects = [
            self._effect(judged.height, sequence, outcome, effect)
            for judged in done
            for sequence, (outcome, effect) in enumerate(
                (outcome, effect) for outcome in judged.outcomes for effect in outcome.effects
            )
        ]
        for table, given in (
            (TokenBlockRow, rows),
            (TokenTransactionRow, transactions),
            (TokenEffectRow, effects),
        ):
            if given:
                db.execute(insert(table_of(table)), given)

    def _transaction(self, block: DataBlock, position: int, outcome: TokenOutcome) -> dict[str, Any]:
        assert outcome.known, "the bytecode of a token that was proposed here is here"
        return {
            "chain": self._chain,
            "height": block.ref.height,
            "position": position,
            "txid": outcome.txid,
            "contract_id": outcome.contract_id,
            "failure": None if outcome.failure is None else outcome.failure.value,
        }

    def _effect(self, height: int, sequence: int, outcome: TokenOutcome, effect: Effect) -> dict[str, Any]:
        number_before, data_before = split(effect.before)
        number_after, data_after = split(effect.after)
        return {
            "chain": self._chain,
            "height": height,
            "sequence": sequence,
            "txid": outcome.txid,
            "function": outcome.payload.function.name.lower()
            if isinstance(outcome.payload, TokenCall)
            else "deploy",
            "contract_id": effect.contract_id,
            "cell": int(effect.cell),
            "holder": effect.holder,
            "number_before": number_before,
            "data_before": data_before,
            "number_after": number_after,
            "data_after": data_after,
        }

    # --- back -----------------------------------------------------------------------------------------------

    def _rewind(self, backend: ChainBackend, held: Held | None) -> bool:
        """Undoes blocks down to the last one on the best chain; returns whether there were any."""
        fork = self._fork(backend)
        if fork is None:
            return False
        first = self._first_read()
        keep = max(fork, first - 1)
        before = self._before(backend, first) if keep < first else None
        with self._store.write() as db:
            _require(db, held)
            self._undo(db, keep)
            if before is not None:
                db.add(before)
        log.info("tokens turned back", chain=self._chain, height=keep)
        return True

    def _before(self, backend: ChainBackend, first: int) -> TokenBlockRow | None:
        """The block below the first that was read, as one without tokens: an index that began at a tip begins
        at the same height again, not at a later tip, which could skip deployments. Raises ChainUnavailable.
        """
        if self._first_height is not None or first == 0:
            return None
        block = backend.block_at(first - 1)
        if block is None:
            raise ChainUnavailable(f"The chain backend is behind: it lacks block {first - 1}.")
        mined_at = datetime.fromtimestamp(block.time, UTC)
        return TokenBlockRow(
            chain=self._chain,
            height=block.height,
            block_hash=block.hash,
            mined_at=mined_at,
            state=GENESIS_STATE,
        )

    def _first_read(self) -> int:
        """The height of the first block that was read; 0 where none was."""
        with self._store.read() as db:
            found = db.scalar(
                select(func.min(TokenBlockRow.height)).where(TokenBlockRow.chain == self._chain)
            )
        return 0 if found is None else found

    def _is_current(self) -> bool:
        """Whether the watcher has no newer block: then the backend need not be asked."""
        with self._store.read() as db:
            newest = db.scalar(
                select(ChainBlockRow.block_hash)
                .where(ChainBlockRow.chain == self._chain)
                .order_by(ChainBlockRow.height.desc())
                .limit(1)
            )
        place = self._place()
        return place is not None and place.block_hash == newest

    def _fork(self, backend: ChainBackend) -> int | None:
        """The height of the last common block; None where that is the last block read, -1 where there is
        none.

        Only a different block at a height that was read shows a reorganisation. Raises ChainUnavailable where
        the backend has no block there: it is behind, and blocks that it lacks were not disconnected.
        """
        place = self._place()
        if place is None or _is_at(backend, place.height, place.block_hash):
            return None
        tip = backend.tip().height
        common, above = -1, None
        for height, block_hash in self._blocks_down_from(min(place.height, tip)):
            if _is_at(backend, height, block_hash):
                common = height
                break
            above = height
        if above is None or backend.block_at(above) is None:
            raise ChainUnavailable(
                f"The chain backend is behind: its last block is {tip}, and {place.height} were read."
            )
        return common

    def _blocks_down_from(self, height: int) -> Iterator[tuple[int, str]]:
        while True:
            with self._store.read() as db:
                found = db.execute(
                    select(TokenBlockRow.height, TokenBlockRow.block_hash)
                    .where(TokenBlockRow.chain == self._chain, TokenBlockRow.height <= height)
                    .order_by(TokenBlockRow.height.desc())
                    .limit(BATCH)
                ).all()
            if not found:
                return
            yield from ((at, block_hash) for at, block_hash in found)
            height = found[-1][0] - 1

    def _undo(self, db: Session, height: int) -> None:
        cells = Cells(db, self._chain)
        rows = db.execute(
            _EFFECTS.where(_EFFECT.chain == self._chain, _EFFECT.height > height).order_by(
                _EFFECT.height.desc(), _EFFECT.sequence.desc()
            )
        )
        cells.apply(_read_effect(row).undone for row in rows)
        cells.write()
        for table in (TokenEffectRow, TokenTransactionRow, TokenBlockRow):
            db.execute(delete(table).where(table.chain == self._chain, table.height > height))

    def _place(self) -> _Place | None:
        with self._store.read() as db:
            row = db.scalars(
                select(TokenBlockRow)
                .where(TokenBlockRow.chain == self._chain)
                .order_by(TokenBlockRow.height.desc())
                .limit(1)
            ).first()
            return None if row is None else _Place(row.height, row.block_hash, row.state)


def _require(db: Session, held: Held | None) -> None:
    if held is not None:
        held.require(db)


def _is_at(backend: ChainBackend, height: int, block_hash: str) -> bool:
    block = backend.block_at(height)
    return block is not None and block.hash == block_hash


# As columns: a reorganisation has thousands of rows, and the session would track each.
_EFFECT = table_of(TokenEffectRow).c
_EFFECTS = select(
    _EFFECT.contract_id,
    _EFFECT.cell,
    _EFFECT.holder,
    _EFFECT.number_before,
    _EFFECT.data_before,
    _EFFECT.number_after,
    _EFFECT.data_after,
)


def _read_effect(row: Any) -> Effect:
    contract_id, cell, holder, number_before, data_before, number_after, data_after = row
    return Effect(
        contract_id,
        Cell(cell),
        holder,
        joined(number_before, data_before),
        joined(number_after, data_after),
    )
