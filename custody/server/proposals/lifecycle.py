"""Applies events to a proposal, with their side effects, and keeps its family's coins locked. Finds the
trouble of its transaction from its coins whenever the chain has changed, and stores it, so that long polls
return it.

A proposal and its replacements are one family, whose coins are locked once. Every member spends the coins of
those before it, so any two exclude each other and at most one is mined (ADR 15). The locks are computed anew
from all members whenever one ends or reopens: none frees a coin that another member needs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from sqlalchemy import ColumnElement, and_, bindparam, delete, exists, or_, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.proposals import TroubleKind, TxType
from custody.server.errors import StateConflict
from custody.server.requests.changes import Changes
from custody.server.rules import lifecycle
from custody.server.rules.ports import Clock
from custody.server.store.models import ChainCoinRow, CoinLockRow, ProposalInputRow, ProposalRow, VaultRow
from custody.server.store.store import after_commit
from custody.server.vaults.stored import note_held
from custody.server.webhooks.events import WebhookEvents, tell_status, tell_token, tell_trouble
from multisig import FeeRate

Coin = tuple[str, int]
# The condition, in a statement over coins, that a proposal has the coin as an input.
IS_INPUT = and_(ProposalInputRow.txid == ChainCoinRow.txid, ProposalInputRow.vout == ChainCoinRow.vout)
log = structlog.get_logger()

# By the vault's screening: no signer gets it.
HELD: Final = "held"
NOT_HELD = ProposalRow.screening.is_distinct_from(HELD)
IS_ENDED = ProposalRow.status.in_(sorted(status.value for status in lifecycle.ENDED))
# Those that a newer version may replace: not forwards, which spend no coin of a vault.
KINDS = frozenset({TxType.SEND, TxType.DEPLOY, TxType.CALL})
# Their first input identifies the caller, and their change always goes to the vault's first address (CPT-1).
TOKEN_KINDS = frozenset({TxType.DEPLOY, TxType.CALL})


@dataclass(frozen=True)
class Lifecycle:
    clock: Clock
    changes: Changes
    events: WebhookEvents

    def apply(self, db: Session, proposal: ProposalRow, event: lifecycle.LifecycleEvent) -> Status:
        """Applies the event and returns the new status. Where the proposal has ended, its coins are freed
        unless another member of its family needs them. Raises IllegalTransition.
        """
        before = Status(proposal.status)
        status = lifecycle.next_status(before, event)
        if proposal.screening == HELD:
            proposal.screening = "overtaken"
        if status not in lifecycle.ENDED or event is lifecycle.LifecycleEvent.RELEASED:
            proposal.keeps_coins = False
        proposal.status = status.value
        self.touch(db, proposal)
        if status is not before:
            tell_status(self.events, db, proposal)
            after_commit(db, self.changes.meters.proposals.labels(status.value).inc)
        if (before in lifecycle.ENDED) is not (
            status in lifecycle.ENDED
        ) or event is lifecycle.LifecycleEvent.RELEASED:
            settle_family(db, proposal)
        tell_token(self.events, db, proposal)
        return status

    def touch(self, db: Session, proposal: ProposalRow) -> None:
        """Marks the proposal as changed, and wakes long polls."""
        proposal.updated_at = self.clock()
        self.show(db, proposal)

    def show(self, db: Session, proposal: ProposalRow) -> None:
        """Wakes long polls after a change of the trouble that is shown; ``updated_at`` stays."""
        tell_trouble(self.events, db, proposal, trouble_of(proposal))
        self.changes.moved(db, proposal.workspace_id)


def trouble_of(proposal: ProposalRow) -> TroubleKind | None:
    """The watcher's finding, or else the node's refusal when the transaction was broadcast. A proposal
    that has ended has no trouble but a double spend.
    """
    kind = None if proposal.trouble is None else TroubleKind(proposal.trouble)
    if kind in {None, TroubleKind.NOT_IN_MEMPOOL} and proposal.failure_code == lifecycle.FEE_TOO_LOW:
        kind = TroubleKind.FEE_TOO_LOW
    is_under_way = Status(proposal.status) in lifecycle.REPLACEABLE
    return kind if is_under_way or kind is TroubleKind.DOUBLE_SPENT else None


def has_ended(proposal: ProposalRow) -> bool:
    return Status(proposal.status) in lifecycle.ENDED


def may_be_replaced(proposal: ProposalRow) -> bool:
    """By its own record only: its coins may have been spent."""
    waits = Status(proposal.status) in lifecycle.REPLACEABLE or proposal.keeps_coins
    return (
        waits
        and proposal.screening != HELD
        and TxType(proposal.tx_type) in KINDS
        and proposal.replaced_by_id is None
    )


def holds_coins(proposal: ProposalRow) -> bool:
    """Whether its coins are locked: it has not ended, or ended after signatures were given out (ADR 15). A
    proof locks none.
    """
    if proposal.tx_type == TxType.PROOF.value:
        return False
    return proposal.keeps_coins or not has_ended(proposal)


def holds_coins_clause() -> ColumnElement[bool]:
    """`holds_coins` as SQL."""
    return or_(~IS_ENDED, ProposalRow.keeps_coins)


def members_of(db: Session, family_id: str) -> list[ProposalRow]:
    """All members, also ended ones, the oldest first."""
    return sorted(db.scalars(_MEMBERS, {"family_id": family_id}), key=age_in_family)


_MEMBERS = select(ProposalRow).where(ProposalRow.family_id == bindparam("family_id"))


def age_in_family(proposal: ProposalRow) -> tuple[int, str]:
    """The sort key of versions: the fee, for each version pays more than all before it. Times are unreliable:
    the clocks of two processes differ, and a payment must not sort after the version that cancels it.
    """
    return proposal.fee_sats, proposal.id


def newer_than(db: Session, proposal: ProposalRow) -> list[ProposalRow]:
    """The newer members that have not ended, the oldest first."""
    if proposal.replaced_by_id is None:
        return []
    members = members_of(db, proposal.family_id)
    place = next(index for index, member in enumerate(members) if member.id == proposal.id)
    return [member for member in members[place + 1 :] if not has_ended(member)]


def taken_back_by(db: Session, proposal: ProposalRow) -> ProposalRow | None:
    """A newer version that returns its coins to the vault, where this one pays a recipient."""
    if not pays(proposal):
        return None
    return next((newer for newer in newer_than(db, proposal) if not pays(newer)), None)


def pays(proposal: ProposalRow) -> bool:
    """Else it returns everything to its vault."""
    return bool(proposal.recipients) or proposal.op_return_hex is not None


def require_newest(db: Session, proposal: ProposalRow) -> None:
    """Raises StateConflict where a newer version exists: the older one must not be completed."""
    newer = newer_than(db, proposal)
    if newer:
        raise StateConflict(f"It has a newer version, {newer[-1].id}: sign that one. Nothing was recorded.")


def settle_family(db: Session, proposal: ProposalRow) -> None:
    """Locks the coins of the members that hold any, and frees the rest. Call it after a member ended or
    reopened.
    """
    db.flush()
    members = members_of(db, proposal.family_id)
    _link(members)
    chain = db.get_one(VaultRow, proposal.vault_id).chain
    wanted = coins_of(db, (member.id for member in members if holds_coins(member)))
    locks = CoinLockRow.chain == chain, CoinLockRow.family_id == proposal.family_id
    locked = {(lock.txid, lock.vout) for lock in db.scalars(select(CoinLockRow).where(*locks))}
    for txid, vout in sorted(locked - wanted):
        db.execute(delete(CoinLockRow).where(*locks, CoinLockRow.txid == txid, CoinLockRow.vout == vout))
        _hand_over(db, chain, (txid, vout), proposal.family_id)
    for coin in sorted(wanted - locked):
        _lock_if_free(db, chain, coin, proposal.family_id)
    db.flush()


def coins_of(db: Session, proposal_ids: Iterable[str]) -> set[Coin]:
    query = select(ProposalInputRow.txid, ProposalInputRow.vout).where(
        ProposalInputRow.proposal_id.in_(list(proposal_ids))
    )
    return {(txid, vout) for txid, vout in db.execute(query)}


def _link(members: Sequence[ProposalRow]) -> None:
    """Sets each member's replacement: the next one that has not ended."""
    following: str | None = None
    for member in reversed(members):
        if member.replaced_by_id != following:
            member.replaced_by_id = following
        if not has_ended(member):
            following = member.id


def _hand_over(db: Session, chain: str, coin: Coin, former: str) -> None:
    """Gives the lock to another family that holds the coin: its signers broadcast a transaction that had
    ended on the platform.
    """
    txid, vout = coin
    query = (
        select(ProposalRow.family_id)
        .join(ProposalInputRow, ProposalInputRow.proposal_id == ProposalRow.id)
        .join(VaultRow, VaultRow.id == ProposalRow.vault_id)
        .where(
            VaultRow.chain == chain,
            and_(ProposalInputRow.txid == txid, ProposalInputRow.vout == vout),
            ProposalRow.family_id != former,
            holds_coins_clause(),
        )
        .order_by(ProposalRow.created_at, ProposalRow.id)
        .limit(1)
    )
    heir = db.scalars(query).first()
    if heir is not None:
        _lock_if_free(db, chain, coin, heir)


def _lock_if_free(db: Session, chain: str, coin: Coin, family_id: str) -> None:
    """Locks the coin unless another family has locked it."""
    txid, vout = coin
    if db.get(CoinLockRow, (chain, txid, vout), populate_existing=True) is None:
        db.add(CoinLockRow(chain=chain, txid=txid, vout=vout, family_id=family_id))
        db.flush()
        note_held(db, chain, [txid])


def note_trouble(
    db: Session,
    proposal: ProposalRow,
    coins: Sequence[ChainCoinRow | None],
    required_rate: FeeRate | None,
    now: datetime,
) -> bool:
    """Stores what keeps its transaction from being mined, and returns whether that has changed. ``coins`` are
    those of its inputs, in order.
    """
    rival = _rival(proposal, coins) if Status(proposal.status) in _MAY_BE_TROUBLED else None
    rival_kind = lifecycle.Rival.NONE
    if rival is not None:
        of_family = ProposalRow.family_id == proposal.family_id
        version = exists().where(ProposalRow.txid_expected == rival.spent_by, of_family)
        rival_kind = lifecycle.Rival.VERSION if db.scalar(select(version)) else lifecycle.Rival.OTHER
    seen = lifecycle.Observation.ABSENT
    if missing_deposits(db, proposal, coins):
        seen = lifecycle.Observation.INPUT_GONE
    elif all(coin is not None and coin.spent_by == proposal.txid_expected for coin in coins):
        seen = lifecycle.Observation.IN_MEMPOOL
    kind = lifecycle.kind_of(
        Status(proposal.status),
        seen,
        rival_kind,
        now - proposal.updated_at,
        is_lost=proposal.failure_code == "coin-spent" and rival is not None,
        is_cheap=required_rate is not None and proposal.fee_rate_sat_per_kvb < required_rate.sat_per_kvb,
    )
    txid = None if rival is None or kind not in _OF_A_RIVAL else rival.spent_by
    trouble = None if kind is None else kind.value
    if (trouble, txid) == (proposal.trouble, proposal.trouble_txid):
        return False
    proposal.trouble, proposal.trouble_txid = trouble, txid
    proposal.trouble_since = proposal.trouble_words = None
    if kind is not None:
        pays = FeeRate(proposal.fee_rate_sat_per_kvb)
        proposal.trouble_since = now
        proposal.trouble_words = lifecycle.words_of(
            kind, rival=txid, pays=pays, required_rate=required_rate, since=proposal.updated_at
        )
    log.info("proposal troubled", proposal=proposal.id, trouble=trouble, rival=txid)
    return True


_MAY_BE_TROUBLED = lifecycle.REPLACEABLE | {Status.INVALIDATED}
_OF_A_RIVAL = frozenset({TroubleKind.CONFLICT, TroubleKind.DOUBLE_SPENT})


def _rival(proposal: ProposalRow, coins: Sequence[ChainCoinRow | None]) -> ChainCoinRow | None:
    """A coin of the proposal that another transaction spends, preferably a confirmed one."""
    taken = [
        coin for coin in coins if coin is not None and coin.spent_by not in {None, proposal.txid_expected}
    ]
    return min(taken, key=lambda coin: coin.spent_height is None, default=None)


def missing_deposits(db: Session, proposal: ProposalRow, coins: Sequence[ChainCoinRow | None]) -> set[str]:
    """The txids of its coins that are not on the chain. What a proposal under way makes is not missing: that
    is offered to the network again, unless its own coins are missing.
    """
    if None not in coins:
        return set()
    query = select(ProposalInputRow.txid).where(ProposalInputRow.proposal_id == proposal.id)
    txids = db.scalars(query.order_by(ProposalInputRow.input_index))
    missing = {txid for txid, coin in zip(txids, coins, strict=True) if coin is None}
    makers = select(ProposalRow.txid_expected).where(
        ProposalRow.txid_expected.in_(sorted(missing)),
        ~IS_ENDED,
        ProposalRow.trouble.is_distinct_from(TroubleKind.COIN_MISSING.value),
    )
    return missing - set(db.scalars(makers))
