"""Limits as they are stored: the policies of roles and vaults; and the sums of what a member or a vault moved
in the current cycle: bitcoin, and each token in raw units (docs/operate/limits.md).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    ColumnElement,
    Select,
    Subquery,
    and_,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
    true,
)
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import SQLCoreOperations

from custody.schemas.proposals import TxType
from custody.server.proposals.lifecycle import IS_ENDED, IS_INPUT, holds_coins_clause
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.rules.limits import Cycle, CyclePeriod, SpendingPolicy, Usage
from custody.server.store.models import (
    ChainCoinRow,
    ContractCallRow,
    ContractRow,
    ProposalInputRow,
    ProposalRow,
    RoleRow,
    VaultRow,
    WatchedScriptRow,
)
from custody.server.store.store import is_snapshot, read_once
from custody.server.vaults.stored import ADDRESS_INDEX, address_script
from multisig import RECEIVE, sats
from multisig.tokens import Function

_SINCE = ProposalRow.created_at >= bindparam("since")


class Policies:
    """The limits of roles and vaults, in columns of their rows. A service that keeps them elsewhere takes the
    place of this class: every call raises PolicyUnavailable where it cannot be reached, and nothing moves.

    It is called inside the movement's transaction, which holds the write lock: what talks to another machine
    must answer or give up within a second.
    """

    def of(self, row: RoleRow | VaultRow) -> SpendingPolicy:
        cycle = Cycle(cast("CyclePeriod", row.cycle_period), row.cycle_day)
        return SpendingPolicy(
            sats(row.limit_sats), cycle, row.is_per_cycle if isinstance(row, VaultRow) else True
        )

    def replace(self, row: RoleRow | VaultRow, policy: SpendingPolicy) -> None:
        row.limit_sats = policy.limit
        row.cycle_period, row.cycle_day = policy.cycle.period, policy.cycle.day
        if isinstance(row, VaultRow):
            row.is_per_cycle = policy.is_per_cycle


def role_of(db: Session, access: WorkspaceAccess) -> RoleRow:
    """The role that the caller holds in the workspace."""
    return db.get_one(RoleRow, access.role_id)


@dataclass(frozen=True)
class OutgoingAmount:
    """What would leave a vault: satoshis, the fee included, or raw units of a ``token``. ``proposed_at``: the
    proposal's ``created_at``. ``family_id``: the family that it is another version of, if any; versions share
    a coin, so at most one of them is mined. ``for_role``: whether it counts for the member's role, too.
    """

    amount: int
    proposed_at: datetime
    family_id: str | None = None
    for_role: bool = True
    token: ContractRow | None = None


def usage_of_member(
    db: Session,
    workspace_id: int,
    user_id: int,
    since: datetime,
    movement: OutgoingAmount | None = None,
    *,
    enough: int | None = None,
) -> Usage:
    """What the member proposed in the workspace since then, in any role; of a token, to transfer. ``enough``:
    of satoshis, an upper bound up to this amount may take its place under the write lock.
    """
    whose = {"workspace_id": workspace_id, "user_id": user_id, "since": since}
    return _usage(db, _OF_MEMBER, whose, movement, enough)


def usage_of_vault(
    db: Session,
    vault_id: str,
    since: datetime,
    movement: OutgoingAmount | None = None,
    *,
    enough: int | None = None,
) -> Usage:
    """What was proposed from the vault since then, by any member; of a token, to transfer, mint and burn.
    ``enough``: as in `usage_of_member`.
    """
    return _usage(db, _OF_VAULT, {"vault_id": vault_id, "since": since}, movement, enough)


def usages_of_vaults(db: Session, starts: Mapping[str, datetime]) -> dict[str, Usage]:
    """`usage_of_vault` of each vault since its own moment, in one statement for each distinct moment."""
    usages = dict.fromkeys(starts, Usage(others=0))
    for since, vault_ids in _by_start(starts).items():
        for vault_id, amount in db.execute(_OF_EACH, {"vault_ids": vault_ids, "since": since}):
            usages[vault_id] = Usage(others=int(amount))
    return usages


def _by_start(starts: Mapping[str, datetime]) -> dict[datetime, list[str]]:
    by_start = defaultdict[datetime, list[str]](list)
    for vault_id, since in starts.items():
        by_start[since].append(vault_id)
    return by_start


class _Sums(NamedTuple):
    """``all_proposals``: an upper bound of what ``families`` counts. An index covers it: of 10,000 proposals
    it takes 2 ms, and the families 30 ms, while others wait for the write lock. ``token_calls``: what each
    family moves of one token.
    """

    all_proposals: Select[int | None]
    families: Select[int | None, int | None]
    token_calls: Select[str, int | None]


def _usage(
    db: Session,
    sums: _Sums,
    whose: Mapping[str, Any],
    movement: OutgoingAmount | None,
    enough: int | None,
) -> Usage:
    """What other families moved, and what that of the movement did; of its token alone, if it has one."""
    family_id, token = (None, None) if movement is None else (movement.family_id, movement.token)
    if token is not None:
        # Summed here: a sum may exceed 64 bits, where SQLite fails.
        calls = db.execute(sums.token_calls, {**whose, "contract_uid": token.uid}).all()
        held = sum(amount or 0 for call_family, amount in calls if call_family == family_id)
        return Usage(sum(amount or 0 for _, amount in calls) - held, held)
    if enough is not None and not is_snapshot(db):
        most = int(db.scalar(sums.all_proposals, whose) or 0)
        if most <= enough:
            return Usage(most)
    values = {**whose, "family_id": family_id}
    others, of_family = read_once(
        db, ("usage", *values.values()), lambda: db.execute(sums.families, values).one()
    )
    return Usage(int(others or 0), int(of_family or 0))


def _families(whose: ColumnElement[bool]) -> Subquery:
    """What each family of a cycle moves: of its versions at most one is mined, the largest at worst."""
    amount = func.max(case((counts(), ProposalRow.movement_sats), else_=0))
    return (
        select(ProposalRow.vault_id, ProposalRow.family_id, amount.label("sats"))
        .where(whose, _SINCE)
        .group_by(ProposalRow.vault_id, ProposalRow.family_id)
        .subquery()
    )


def _sums(
    whose: ColumnElement[bool], counted: SQLCoreOperations[bool], functions: Iterable[Function]
) -> _Sums:
    """``counted``: which of these count at all. ``functions``: the calls that do."""
    families = _families(and_(whose, counted)).c
    is_own = families.family_id == bindparam("family_id")
    return _Sums(
        select(func.sum(ProposalRow.movement_sats)).where(whose, _SINCE),
        select(
            func.sum(case((is_own, 0), else_=families.sats)), func.sum(case((is_own, families.sats), else_=0))
        ),
        _token_calls(whose, functions).where(ContractCallRow.contract_uid == bindparam("contract_uid")),
    )


def counts() -> ColumnElement[bool]:
    """Versions that were mined or may still be mined: a replaced one too, for nodes may still prefer it. An
    ended one counts only where it was cancelled after signatures were given out and keeps its coins, or where
    its signers broadcast it themselves.
    """
    return or_(holds_coins_clause(), and_(IS_ENDED, _spent_its_coins()))


def _spent_its_coins() -> ColumnElement[bool]:
    chain = (
        select(VaultRow.chain)
        .where(VaultRow.id == ProposalRow.vault_id)
        .correlate(ProposalRow)
        .scalar_subquery()
    )
    return exists().where(
        ProposalInputRow.proposal_id == ProposalRow.id,
        ChainCoinRow.chain == chain,
        IS_INPUT,
        ChainCoinRow.spent_by == ProposalRow.txid_expected,
    )


_EACH = _families(ProposalRow.vault_id.in_(bindparam("vault_ids", expanding=True))).c
_OF_EACH = select(_EACH.vault_id, func.sum(_EACH.sats)).group_by(_EACH.vault_id)


# The specification's table: which calls count for the member's role and the vault, or for the vault alone.
FOR_ROLE = frozenset({Function.TRANSFER})
FOR_VAULT = FOR_ROLE | {Function.MINT, Function.BURN}


@dataclass(frozen=True)
class VaultTokenUsage:
    """What a vault moved of one token, in raw units."""

    amount: int
    vault_id: str
    contract_uid: int
    deploy_family_id: str
    ticker: str
    decimals: int


def movement_of(
    contract: ContractRow,
    vault: VaultRow,
    function: Function,
    amount: int | None,
    address: bytes | None,
    proposed_at: datetime,
    family_id: str | None = None,
) -> OutgoingAmount | None:
    """What a call moves; None where nothing counts, as in a transfer to the vault's own ``address``."""
    if function not in FOR_VAULT or amount is None:
        return None
    if function is Function.TRANSFER and address == address_script(vault):
        return None
    return OutgoingAmount(amount, proposed_at, family_id, function in FOR_ROLE, contract)


def moved_by_family(
    db: Session, vault: VaultRow, family_id: str, proposed_at: datetime
) -> OutgoingAmount | None:
    """What the call of a family moves, measured as another version of it."""
    call = db.scalars(select(ContractCallRow).where(ContractCallRow.family_id == family_id)).one_or_none()
    if call is None:
        return None
    contract = db.get_one(ContractRow, call.contract_uid)
    function = Function[call.function_name.upper()]
    return movement_of(contract, vault, function, call.amount, call.address_script, proposed_at, family_id)


def token_usages_of_vaults(db: Session, starts: Mapping[str, datetime]) -> list[VaultTokenUsage]:
    """`usage_of_vault` of every token that each vault moved since its own moment, the oldest token first."""
    # Most vaults never called a token: then none of their proposals is read.
    calling = set(db.scalars(_CALLING, {"vault_ids": list(starts)}))
    # Summed here, as `_usage` does.
    sums: dict[tuple[Any, ...], int] = {}
    for since, vault_ids in _by_start({each: starts[each] for each in starts if each in calling}).items():
        for _, amount, *token in db.execute(_OF_VAULTS, {"vault_ids": vault_ids, "since": since}):
            sums[tuple(token)] = sums.get(tuple(token), 0) + (amount or 0)
    return [VaultTokenUsage(amount, *token) for token, amount in sums.items()]


def _token_calls(whose: ColumnElement[bool], functions: Iterable[Function]) -> Select[str, int | None]:
    """The calls that count: their family, and what they move."""
    families = (
        select(ProposalRow.family_id)
        .where(
            whose,
            _SINCE,
            ProposalRow.tx_type == TxType.CALL.value,
            counts(),
        )
        .distinct()
        .subquery()
    )
    stays = exists().where(
        WatchedScriptRow.chain == ContractRow.chain,
        WatchedScriptRow.script_pubkey == ContractCallRow.address_script,
        WatchedScriptRow.vault_id == ContractCallRow.vault_id,
        WatchedScriptRow.branch == RECEIVE,
        WatchedScriptRow.address_index == ADDRESS_INDEX,
    )
    return (
        select(ContractCallRow.family_id, ContractCallRow.amount)
        .select_from(ContractCallRow)
        .join(families, families.c.family_id == ContractCallRow.family_id)
        .join(ContractRow, ContractRow.uid == ContractCallRow.contract_uid)
        .where(
            ContractCallRow.function_name.in_(sorted(function.wire_name for function in functions)),
            or_(ContractCallRow.function_name != Function.TRANSFER.wire_name, ~stays),
        )
    )


_OF_MEMBER = _sums(
    and_(
        ProposalRow.workspace_id == bindparam("workspace_id"), ProposalRow.created_by == bindparam("user_id")
    ),
    ProposalRow.counts_for_role,
    FOR_ROLE,
)
_OF_VAULT = _sums(ProposalRow.vault_id == bindparam("vault_id"), true(), FOR_VAULT)
_BY_VAULTS = _token_calls(ProposalRow.vault_id.in_(bindparam("vault_ids", expanding=True)), FOR_VAULT)
_CALLING = (
    select(ContractCallRow.vault_id)
    .where(ContractCallRow.vault_id.in_(bindparam("vault_ids", expanding=True)))
    .distinct()
)
_OF_VAULTS = _BY_VAULTS.add_columns(
    ContractCallRow.vault_id,
    ContractRow.uid,
    ContractRow.deploy_family_id,
    ContractRow.ticker,
    ContractRow.decimals,
).order_by(ContractRow.uid)
