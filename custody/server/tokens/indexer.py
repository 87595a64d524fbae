"""Indexes the tokens of one chain: forward block by block, and back effect by effect after a
reorganisation.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import structlog
from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from custody.server.chain.backend import ChainBackend, DataBlock, DataTransaction
from custody.server.errors import ChainUnavailable
from custody.server.jobs.leases import Held
from custody.server.network.backends import Backends, backend_of, fork_of
from custody.server.store import Store
from custody.server.store.models import (
    ChainBlockRow,
    ContractRow,
    ProposalRow,
    TokenBlockRow,
    TokenEffectRow,
    TokenTransactionRow,
)
from custody.server.store.models.base import table_of
from custody.server.store.store import rows_in
from custody.server.tokens.state import Cells, Published, joined, published_bytecode, split
from multisig.errors import InvalidToken
from multisig.script import ScriptKind, classify, parse_op_return
from multisig.tokens import Deploy, TokenCall, decode_payload
from multisig.tokens.machine import (
    GENESIS_STATE,
    Cell,
    Effect,
    TokenBlock,
    TokenOutcome,
    TokenTransaction,
    judge_block,
)
from multisig.tokens.payload import MAGIC

log = structlog.get_logger()

# This many blocks are read first and then written in one short transaction.
BATCH = 100
# A full block has thousands of calls: a batch ends with as many as are written in some tenths of a second.
CALLS_A_BATCH = 200


def token_block(block: DataBlock) -> TokenBlock:
    """Its transactions with a token's data, in order (docs/understand/tokens.md, "What calls do")."""
    transactions = tuple(_transaction(carrier) for carrier in block.transactions)
    return TokenBlock(block.ref.height, bytes.fromhex(block.ref.hash)[::-1], transactions)


def _deploys(carrier: DataTransaction) -> bool:
    data = _transaction(carrier).data
    try:
        return data is not None and isinstance(decode_payload(data), Deploy)
    except InvalidToken:
        return False


def _transaction(carrier: DataTransaction) -> TokenTransaction:
    """Its data is that of its one OP_RETURN output of no value; with a second such output it has none."""
    outputs = [
        output
        for output in carrier.transaction.outputs
        if classify(output.script_pubkey) is ScriptKind.OP_RETURN
    ]
    data = parse_op_return(outputs[0].script_pubkey) if len(outputs) == 1 else None
    whole = data is not None and data.startswith(MAGIC) and outputs[0].amount == 0
    return TokenTransaction(carrier.transaction.txid, carrier.caller, data if whole else None)


# Those of the txids on one chain that count, within one transaction.
Proposed = Callable[[Session, str, Collection[str]], Collection[str]]


def proposed_deployments(db: Session, chain: str, txids: Collection[str]) -> frozenset[str]:
    """Those that a member of this platform proposed, in any version, whatever became of the proposal: what
    was signed may be mined.

    Only these count. The row of a proposal is there before its transaction can be signed, so that whether a
    deployment counts is known when its block is read, and never changes: no one makes the index read a block
    again by publishing the bytecode of a deployment that others have mined.
    """
    query = (
        select(ProposalRow.txid_expected)
        .join(ContractRow, ContractRow.deploy_family_id == ProposalRow.family_id)
        .where(ContractRow.chain == chain)
    )
    return frozenset(txid for (txid,) in rows_in(db, query, ProposalRow.txid_expected, txids))


@dataclass(frozen=True)
class Indexer:
    """Runs in one process at a time for each chain. ``first_height``: where to begin; None begins at the tip,
    for a new platform has no older tokens.
    """

    chain: str
    store: Store
    backends: Backends
    first_height: int | None
    published: Published = published_bytecode
    proposed: Proposed = proposed_deployments

    def look(self, held: Held | None = None) -> bool:
        """Reads up to the tip, batch by batch; returns whether anything was read. Raises ChainUnavailable,
        LeaseLost.
        """
        with self.store.read() as db:
            last = self._last(db)
            newest = db.scalar(
                select(ChainBlockRow.block_hash)
                .where(ChainBlockRow.chain == self.chain)
                .order_by(ChainBlockRow.height.desc())
                .limit(1)
            )
        if last is not None and last.block_hash == newest:
            # The watcher has no newer block: the backend need not be asked.
            return False
        backend = backend_of(self.backends, self.chain)
        changed = last is not None and self._rewind(backend, last, held)
        while self._read_on(backend, held):
            changed = True
        return changed

    def _last(self, db: Session) -> TokenBlockRow | None:
        """The last block that was read."""
        ours = select(TokenBlockRow).where(TokenBlockRow.chain == self.chain)
        return db.scalars(ours.order_by(TokenBlockRow.height.desc()).limit(1)).first()

    # --- forward --------------------------------------------------------------------------------------------

    def _read_on(self, backend: ChainBackend, held: Held | None) -> bool:
        with self.store.read() as db:
            last = self._last(db)
        blocks = list(self._next_blocks(backend, last))
        if not blocks:
            return False
        with self.store.write() as db:
            if held is not None:
                held.require(db)
            self._apply(db, GENESIS_STATE if last is None else last.state, self._counted(db, blocks))
        return True

    def _next_blocks(self, backend: ChainBackend, last: TokenBlockRow | None) -> Iterator[DataBlock]:
        """The next blocks, each the child of the one before. Another block ends the batch: the next poll
        finds the fork.
        """
        height = self._start(backend) if last is None else last.height + 1
        before = None if last is None else last.block_hash
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
        if self.first_height is not None and tip < self.first_height:
            raise ChainUnavailable(
                f"Tokens are read from block {self.first_height} on, but the chain's tip is {tip}."
            )
        return tip if self.first_height is None else self.first_height

    def _counted(self, db: Session, blocks: Sequence[DataBlock]) -> Sequence[DataBlock]:
        """Without deployments that no member of this platform proposed (`proposed_deployments`). The other
        transactions keep their positions.
        """
        deployed = {
            each.transaction.txid for block in blocks for each in block.transactions if _deploys(each)
        }
        foreign = deployed.difference(self.proposed(db, self.chain, deployed))
        return [
            replace(
                block,
                transactions=tuple(
                    each for each in block.transactions if each.transaction.txid not in foreign
                ),
            )
            for block in blocks
        ]

    def _apply(self, db: Session, state: bytes, blocks: Sequence[DataBlock]) -> None:
        """``state``: the hash after the block before."""
        cells, bytecode_of = Cells(db, self.chain), self.published(db, self.chain)
        read, transactions, effects = [], [], []
        for block in blocks:
            judged = judge_block(token_block(block), cells, bytecode_of, state)
            cells.apply(judged.effects)
            state = judged.state
            place = {"chain": self.chain, "height": block.ref.height}
            mined_at = datetime.fromtimestamp(block.ref.time, UTC)
            read.append(place | {"block_hash": block.ref.hash, "mined_at": mined_at, "state": state})
            for carrier, outcome in zip(block.transactions, judged.outcomes, strict=True):
                assert outcome.known, "the bytecode of a token that was proposed here is here"
                failure = None if outcome.failure is None else outcome.failure.value
                transactions.append(
                    place
                    | {
                        "position": carrier.position,
                        "txid": outcome.txid,
                        "contract_id": outcome.contract_id,
                        "failure": failure,
                    }
                )
            caused = ((outcome, effect) for outcome in judged.outcomes for effect in outcome.effects)
            effects += [
                place | {"sequence": sequence} | _effect_columns(outcome, effect)
                for sequence, (outcome, effect) in enumerate(caused)
            ]
        cells.write()
        for table, rows in (
            (TokenBlockRow, read),
            (TokenTransactionRow, transactions),
            (TokenEffectRow, effects),
        ):
            if rows:
                db.execute(insert(table_of(table)), rows)

    # --- back -----------------------------------------------------------------------------------------------

    def _rewind(self, backend: ChainBackend, last: TokenBlockRow, held: Held | None) -> bool:
        """Undoes blocks down to the last one on the best chain; returns whether there were any."""
        tip = backend.tip()
        fork = fork_of(backend, self._blocks_down_from(last, tip.height), tip)
        if fork == last.height:
            return False
        before = self._before(backend) if fork < 0 else None
        with self.store.write() as db:
            if held is not None:
                held.require(db)
            self._undo(db, fork)
            if before is not None:
                db.add(before)
        log.info("tokens turned back", chain=self.chain, height=fork)
        return True

    def _before(self, backend: ChainBackend) -> TokenBlockRow | None:
        """The block below the first that was read, as one without tokens: an index that began at a tip begins
        at the same height again, not at a later tip, which could skip deployments. Raises ChainUnavailable.
        """
        with self.store.read() as db:
            first = db.scalar(select(func.min(TokenBlockRow.height)).where(TokenBlockRow.chain == self.chain))
        if self.first_height is not None or not first:
            return None
        block = backend.block_at(first - 1)
        if block is None:
            raise ChainUnavailable(f"The chain backend is behind: it lacks block {first - 1}.")
        return TokenBlockRow(
            chain=self.chain,
            height=block.height,
            block_hash=block.hash,
            mined_at=datetime.fromtimestamp(block.time, UTC),
            state=GENESIS_STATE,
        )

    def _blocks_down_from(self, last: TokenBlockRow, tip_height: int) -> Iterator[tuple[int, str]]:
        """The last one, and those below it as far as the backend may have them."""
        columns = select(TokenBlockRow.height, TokenBlockRow.block_hash)
        ours = columns.where(TokenBlockRow.chain == self.chain).order_by(TokenBlockRow.height.desc())
        blocks: Sequence[tuple[int, str]] = [(last.height, last.block_hash)]
        while blocks:
            yield from blocks
            below = TokenBlockRow.height < min(blocks[-1][0], tip_height + 1)
            with self.store.read() as db:
                blocks = db.execute(ours.where(below).limit(BATCH)).all()

    def _undo(self, db: Session, height: int) -> None:
        cells = Cells(db, self.chain)
        rows = db.execute(
            _EFFECTS.where(_EFFECT.chain == self.chain, _EFFECT.height > height).order_by(
                _EFFECT.height.desc(), _EFFECT.sequence.desc()
            )
        )
        cells.apply(
            Effect(contract_id, Cell(cell), holder, joined(*values[:2]), joined(*values[2:])).undone
            for contract_id, cell, holder, *values in rows
        )
        cells.write()
        for table in (TokenEffectRow, TokenTransactionRow, TokenBlockRow):
            db.execute(delete(table).where(table.chain == self.chain, table.height > height))


def _effect_columns(outcome: TokenOutcome, effect: Effect) -> dict[str, Any]:
    function = outcome.payload.function.name.lower() if isinstance(outcome.payload, TokenCall) else "deploy"
    values = effect.contract_id, int(effect.cell), effect.holder, *split(effect.before), *split(effect.after)
    columns = (column.name for column in _CHANGE)
    return {"txid": outcome.txid, "function": function} | dict(zip(columns, values, strict=True))


# As columns: a reorganisation has thousands of rows, and the session would track each.
_EFFECT = table_of(TokenEffectRow).c
_CELL = _EFFECT.contract_id, _EFFECT.cell, _EFFECT.holder
_CHANGE = *_CELL, _EFFECT.number_before, _EFFECT.data_before, _EFFECT.number_after, _EFFECT.data_after
_EFFECTS = select(*_CHANGE)
