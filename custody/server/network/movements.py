"""Keeps the vaults' movements in step with their coins, in the same transaction.

A new block's movements are appended, so the cost is that of what is new. A reorganisation, or coins that a
rescan finds in old blocks, change the stored balances from the lowest such block on; no page sums balances.

Movements are ordered by height, and within a block parents come before children: so no balance is ever
negative, and a later confirmation comes after an earlier one. Pending movements have no balance; they come
last, in the order in which they were first seen.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate, islice
from typing import Any, NamedTuple

from sqlalchemy import bindparam, case, func, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from custody.schemas.history import MovementKind
from custody.schemas.proposals import TxType
from custody.server.network.deposits import ChainSnapshot
from custody.server.rules.ports import Clock
from custody.server.store.models import ChainCoinRow, MovementRow, ProposalRow, table_of
from custody.server.store.store import rows_in


class _Key(NamedTuple):
    vault_id: str
    txid: str


class _Sums(NamedTuple):
    received: int
    sent: int
    height: int | None

    @property
    def counted(self) -> tuple[int | None, int]:
        """The part on which later balances depend: the height and the amount."""
        return self.height, self.received - self.sent


class _Side(NamedTuple):
    """What a transaction adds to a vault, or takes from it: of all its coins, and of those in a block."""

    sats: int
    mined_sats: int
    height: int | None


_NO_SIDE = _Side(0, 0, None)


@dataclass(frozen=True)
class MovementWriter:
    """Writes one chain's movements."""

    chain: str
    clock: Clock

    def apply(self, db: Session, snapshot: ChainSnapshot, txids: Collection[str]) -> None:
        """Call it after the coins: ``txids`` are all transactions that create or spend a changed coin."""
        if not txids:
            return
        ours = select(MovementRow).where(MovementRow.chain == self.chain)
        rows = rows_in(db, ours, MovementRow.txid, txids)
        before = {_Key(row.vault_id, row.txid): row for (row,) in rows}
        sums = self._sums(db, txids)
        heights = defaultdict[str, list[int]](list)
        for key in before.keys() | sums.keys():
            old, new = before.get(key), sums.get(key)
            if old is not None and new is not None and (old.height, old.amount_sats) == new.counted:
                continue
            heights[key.vault_id] += [
                one.height for one in (old, new) if one is not None and one.height is not None
            ]
        self._write(db, before, sums, snapshot)
        for vault_id, changed in heights.items():
            if changed:
                self._carry_on(db, vault_id, min(changed))

    def _sums(self, db: Session, txids: Collection[str]) -> dict[_Key, _Sums]:
        """What each transaction adds to each vault and takes from it, by the stored coins.

        A backend that is queried by script may show a transaction in a block for some coins and in the
        mempool for others. The movement then counts only those in a block, so that balances remain the sums
        of the coins (`vaults.stored.balances_of`).
        """
        received = self._sides(db, ChainCoinRow.txid, ChainCoinRow.height, txids)
        sent = self._sides(db, ChainCoinRow.spent_by, ChainCoinRow.spent_height, txids)
        sums = {}
        for key in received.keys() | sent.keys():
            made, spent = received.get(key, _NO_SIDE), sent.get(key, _NO_SIDE)
            height = spent.height if made.height is None else made.height
            if height is None:
                sums[key] = _Sums(made.sats, spent.sats, None)
            else:
                sums[key] = _Sums(made.mined_sats, spent.mined_sats, height)
        return sums

    def _sides(
        self,
        db: Session,
        txid: InstrumentedAttribute[Any],
        height: InstrumentedAttribute[Any],
        txids: Collection[str],
    ) -> dict[_Key, _Side]:
        # A spend counts as mined only where its coin is mined too.
        is_mined = height.is_not(None) & ChainCoinRow.height.is_not(None)
        sats = ChainCoinRow.amount_sats
        query = select(
            ChainCoinRow.vault_id,
            txid,
            func.sum(sats),
            func.sum(case((is_mined, sats), else_=0)),
            func.max(case((is_mined, height))),
        ).group_by(ChainCoinRow.vault_id, txid)
        ours = query.where(ChainCoinRow.chain == self.chain, ChainCoinRow.vault_id.is_not(None))
        return {
            _Key(vault_id, one): _Side(int(all_sats), int(mined_sats), at)
            for vault_id, one, all_sats, mined_sats, at in rows_in(db, ours, txid, txids)
        }

    def _write(
        self,
        db: Session,
        before: Mapping[_Key, MovementRow],
        sums: Mapping[_Key, _Sums],
        snapshot: ChainSnapshot,
    ) -> None:
        for key in before.keys() - sums.keys():
            db.delete(before[key])
        rows = rows_in(db, select(ProposalRow), ProposalRow.txid_expected, {key.txid for key in sums})
        proposals = {proposal.txid_expected: proposal for (proposal,) in rows}
        for key, one in sums.items():
            proposal = proposals.get(key.txid)
            its_own = proposal if proposal is not None and proposal.vault_id == key.vault_id else None
            row, block = before.get(key), snapshot.block_at(one.height)
            if row is None:
                # What never changes: a transaction is proposed before it is on the chain.
                row = MovementRow(vault_id=key.vault_id, txid=key.txid, chain=self.chain)
                row.psbt_id, row.first_seen_at = None if its_own is None else its_own.id, self.clock()
                db.add(row)
            if block is not None or row.height != one.height:
                # Otherwise its block is an old one, and stands in its row.
                row.block_hash = None if block is None else block.hash
                row.mined_at = None if block is None else datetime.fromtimestamp(block.time, UTC)
            # A later rescan beyond the gap may find more coins, which can also change the kind.
            row.kind, row.height = _kind(one, its_own).value, one.height
            row.received_sats, row.sent_sats = one.received, one.sent
            row.amount_sats = one.received - one.sent
            if one.height is None:
                row.place = row.balance_sats = None
        db.flush()

    def _carry_on(self, db: Session, vault_id: str, height: int) -> None:
        """Updates places and balances from this block on."""
        rows = db.execute(_FROM, {"vault_id": vault_id, "height": height}).all()
        before = db.execute(_BEFORE, {"vault_id": vault_id, "height": height}).scalar_one_or_none() or 0
        by_height = defaultdict[int, dict[str, Any]](dict)
        for row in rows:
            by_height[row.height][row.txid] = row
        spends = _spends(
            db, self.chain, [txid for block in by_height.values() if len(block) > 1 for txid in block]
        )
        ordered = [
            (place, by_height[at][txid])
            for at in sorted(by_height)
            for place, txid in enumerate(in_order(by_height[at], spends))
        ]
        after = accumulate((row.amount_sats for _, row in ordered), initial=before)
        changed = [
            {"of_vault": vault_id, "of_txid": row.txid, "place": place, "balance_sats": balance}
            for (place, row), balance in zip(ordered, islice(after, 1, None), strict=True)
            if (row.place, row.balance_sats) != (place, balance)
        ]
        if changed:
            db.connection().execute(_PLACED, changed)


def _kind(one: _Sums, proposal: ProposalRow | None) -> MovementKind:
    """``proposal``: the vault's own one, or a forward to it."""
    if proposal is None:
        return MovementKind.OUTSIDE if one.sent else MovementKind.DEPOSIT
    if proposal.profile_key_id is not None:
        return MovementKind.FORWARD
    if proposal.tx_type in {TxType.DEPLOY.value, TxType.CALL.value}:
        return MovementKind.TOKEN
    pays_itself = one.sent - one.received == proposal.fee_sats and proposal.op_return_hex is None
    return MovementKind.CONSOLIDATION if pays_itself else MovementKind.PAYMENT


def _spends(db: Session, chain: str, txids: Collection[str]) -> dict[str, set[str]]:
    """By txid, the transactions whose coins it spends."""
    query = select(ChainCoinRow.spent_by, ChainCoinRow.txid).where(ChainCoinRow.chain == chain)
    spends = defaultdict[str, set[str]](set)
    for spender, spent in rows_in(db, query, ChainCoinRow.spent_by, txids):
        if spender is not None:
            spends[spender].add(spent)
    return spends


_FROM = select(
    MovementRow.txid, MovementRow.height, MovementRow.place, MovementRow.amount_sats, MovementRow.balance_sats
).where(MovementRow.vault_id == bindparam("vault_id"), MovementRow.height >= bindparam("height"))
_BEFORE = (
    select(MovementRow.balance_sats)
    .where(MovementRow.vault_id == bindparam("vault_id"), MovementRow.height < bindparam("height"))
    .order_by(MovementRow.height.desc(), MovementRow.place.desc())
    .limit(1)
)
_TABLE = table_of(MovementRow)
_PLACED = update(_TABLE).where(
    _TABLE.c.vault_id == bindparam("of_vault"), _TABLE.c.txid == bindparam("of_txid")
)


def in_order(txids: Iterable[str], spends: Mapping[str, Collection[str]]) -> list[str]:
    """One block's transactions: parents first, and by txid among those that do not depend on each other.

    ``spends``: by txid, the transactions whose coins it spends, in this block or before. A faulty
    explorer may report two transactions that spend each other, which no block can hold: then the order is
    by txid.
    """
    block = sorted(txids)
    within = set(block)
    sorter = TopologicalSorter({txid: within.intersection(spends.get(txid, ())) for txid in block})
    try:
        sorter.prepare()
    except CycleError:
        return block
    ordered: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        ordered += ready
        sorter.done(*ready)
    return ordered
