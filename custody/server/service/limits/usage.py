"""Sums of what a member or a vault moved in the current cycle: bitcoin, and each token in raw units
(docs/operate/limits.md).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
    text,
)
from sqlalchemy.orm import Session

from custody.schemas.proposals import TxType
from custody.server.domain.lifecycle import ENDED
from custody.server.domain.limits import Usage
from custody.server.service.lifecycle import holds_coins_clause
from custody.server.service.stored_vaults import ADDRESS_INDEX, address_script
from custody.server.store.models import (
    UNUSUAL,
    ChainCoinRow,
    ContractCallRow,
    ContractRow,
    ProposalInputRow,
    ProposalRow,
    VaultRow,
    WatchedScriptRow,
)
from custody.server.store.store import chunks, read_once
from multisig import RECEIVE
from multisig.tokens import Function

_ENDED = tuple(sorted(status.value for status in ENDED))


def usage_of_member(
    db: Session, workspace_id: int, user_id: int, since: datetime, family_id: str | None = None
) -> Usage:
    """What the member proposed in the workspace since then, in any role. ``family_id``: the family of a new
    version.
    """
    whose = {"workspace_id": workspace_id, "user_id": user_id, "since": since, "family_id": family_id}
    return read_once(db, ("usage of member", *whose.values()), lambda: _usage(db, _OF_MEMBER, whose))


def usage_of_vault(db: Session, vault_id: str, since: datetime, family_id: str | None = None) -> Usage:
    """What was proposed from the vault since then, by any member."""
    return _usage(db, _OF_VAULT, {"vault_id": vault_id, "since": since, "family_id": family_id})


def usages_of_vaults(db: Session, starts: Mapping[str, datetime]) -> dict[str, Usage]:
    """`usage_of_vault` of each vault since its own moment, in one statement for each distinct moment."""
    by_start = defaultdict[datetime, list[str]](list)
    for vault_id, since in starts.items():
        by_start[since].append(vault_id)
    found = dict.fromkeys(starts, 0)
    for since, vault_ids in by_start.items():
        whose = {"vault_ids": vault_ids, "since": since}
        for summed, vault_id in db.execute(_OF_EACH.everything, whose):
            found[vault_id] = int(summed)
        for some in chunks(set(db.scalars(_OF_EACH.unusual, whose))):
            for _, summed, amount, vault_id in db.execute(_OF_EACH.families, {**whose, "family_ids": some}):
                found[vault_id] += int(amount) - int(summed)
    return {vault_id: Usage(others=sats, held=0) for vault_id, sats in found.items()}


def most_of_member(db: Session, workspace_id: int, user_id: int, since: datetime) -> int:
    """An upper bound of ``usage_of_member``: all versions count, and ended ones too. One index covers the
    sum, which takes a twentieth of the time.
    """
    values = {"workspace_id": workspace_id, "user_id": user_id, "members_since": since}
    return db.scalar(_MEMBERS, values) or 0


def most_of_vault(db: Session, vault_id: str, since: datetime) -> int:
    """An upper bound of ``usage_of_vault``."""
    return db.scalar(_VAULTS, {"vault_id": vault_id, "vaults_since": since}) or 0


@dataclass(frozen=True)
class Whose:
    """The member and the vault of a movement, each with the start of its cycle."""

    workspace_id: int
    user_id: int
    members_since: datetime
    vault_id: str
    vaults_since: datetime


def most_of(db: Session, whose: Whose) -> tuple[int, int]:
    """`most_of_member` and `most_of_vault`."""
    member, vault = read_once(db, whose, lambda: db.execute(_MOST_OF, vars(whose)).one())
    return member or 0, vault or 0


def _usage(db: Session, sums: "_Sums", whose: Mapping[str, object]) -> Usage:
    """What other families moved, and what the family ``family_id`` did, if given.

    Most families are one proposal that is pending, broadcast or mined: their movements all count, and an
    index covers their sum. The other families are read one by one: the sum of their proposals is
    subtracted, and the amount that counts is added.
    """
    everything = db.scalar(sums.everything, whose) or 0
    own = whose["family_id"]
    looked_at = {*db.scalars(sums.unusual, whose), *([] if own is None else [own])}
    held = 0
    for some in chunks(looked_at):
        for family_id, summed, amount in db.execute(sums.families, {**whose, "family_ids": some}):
            everything += int(amount) - int(summed)
            held += int(amount) if family_id == own else 0
    return Usage(others=int(everything) - held, held=held)


class _Sums(NamedTuple):
    """Statements about the proposals of one member, one vault or several vaults in a cycle."""

    everything: Select[*tuple[Any, ...]]
    unusual: Select[str]
    families: Select[*tuple[Any, ...]]


def _sums(whose: ColumnElement[bool]) -> _Sums:
    of_cycle = and_(whose, ProposalRow.created_at >= bindparam("since"))
    amount = case((counts(), ProposalRow.movement_sats), else_=0)
    return _Sums(
        select(func.sum(ProposalRow.movement_sats)).where(of_cycle),
        select(ProposalRow.family_id).where(of_cycle, text(UNUSUAL)),
        select(ProposalRow.family_id, func.sum(ProposalRow.movement_sats), func.max(amount))
        .where(of_cycle, ProposalRow.family_id.in_(bindparam("family_ids", expanding=True)))
        .group_by(ProposalRow.family_id),
    )


def counts() -> ColumnElement[bool]:
    """Versions that were mined or may still be mined: a replaced one too, for nodes may still prefer it. An
    ended one counts only where it was cancelled after signatures were given out and keeps its coins, or where
    its signers broadcast it themselves.
    """
    return or_(holds_coins_clause(), and_(ProposalRow.status.in_(_ENDED), _spent_its_coins()))


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
        ChainCoinRow.txid == ProposalInputRow.txid,
        ChainCoinRow.vout == ProposalInputRow.vout,
        ChainCoinRow.spent_by == ProposalRow.txid_expected,
    )


_OF_MEMBER = _sums(
    and_(
        ProposalRow.workspace_id == bindparam("workspace_id"),
        ProposalRow.created_by == bindparam("user_id"),
        ProposalRow.counts_for_role,
    )
)
_OF_VAULT = _sums(ProposalRow.vault_id == bindparam("vault_id"))
_OF_SOME = _sums(ProposalRow.vault_id.in_(bindparam("vault_ids", expanding=True)))
# The same with the vault's id as the last column.
_OF_EACH = _Sums(
    _OF_SOME.everything.add_columns(ProposalRow.vault_id).group_by(ProposalRow.vault_id),
    _OF_SOME.unusual,
    _OF_SOME.families.add_columns(ProposalRow.vault_id).group_by(ProposalRow.vault_id),
)
_MOST = select(func.sum(ProposalRow.movement_sats))
_MEMBERS = _MOST.where(
    ProposalRow.created_at >= bindparam("members_since"),
    ProposalRow.workspace_id == bindparam("workspace_id"),
    ProposalRow.created_by == bindparam("user_id"),
)
_VAULTS = _MOST.where(
    ProposalRow.created_at >= bindparam("vaults_since"), ProposalRow.vault_id == bindparam("vault_id")
)
_MOST_OF = select(_MEMBERS.scalar_subquery(), _VAULTS.scalar_subquery())


# The specification's table: which calls count for the member's role and the vault, or for the vault alone.
FOR_ROLE = frozenset({Function.TRANSFER})
FOR_VAULT = FOR_ROLE | {Function.MINT, Function.BURN}


@dataclass(frozen=True)
class OutgoingTokens:
    """``amount`` is in raw units of the token. ``for_role``: whether it counts for the member too."""

    contract_uid: int
    ticker: str
    decimals: int
    amount: int
    for_role: bool
    proposed_at: datetime
    family_id: str | None = None


@dataclass(frozen=True)
class VaultTokenUsage:
    """A vault's usage of one token."""

    usage: Usage
    vault_id: str
    contract_uid: int
    chain: str
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
) -> OutgoingTokens | None:
    """What a call moves; None where nothing counts, as in a transfer to the vault's own ``address``."""
    if function not in FOR_VAULT or amount is None:
        return None
    if function is Function.TRANSFER and address == address_script(vault):
        return None
    for_role = function in FOR_ROLE
    return OutgoingTokens(
        contract.uid, contract.ticker, contract.decimals, amount, for_role, proposed_at, family_id
    )


def moved_by_family(
    db: Session, vault: VaultRow, family_id: str, proposed_at: datetime
) -> OutgoingTokens | None:
    """What the call of a family moves, measured as another version of it."""
    call = db.scalars(select(ContractCallRow).where(ContractCallRow.family_id == family_id)).one_or_none()
    if call is None:
        return None
    contract = db.get_one(ContractRow, call.contract_uid)
    function = Function[call.function_name.upper()]
    return movement_of(contract, vault, function, call.amount, call.address_script, proposed_at, family_id)


def token_usage_of_member(
    db: Session, workspace_id: int, user_id: int, since: datetime, movement: OutgoingTokens
) -> Usage:
    """What the member proposed to transfer of the token since then."""
    return _token_usage(
        db, _TOKEN_OF_MEMBER, {"workspace_id": workspace_id, "user_id": user_id, "since": since}, movement
    )


def token_usage_of_vault(db: Session, vault_id: str, since: datetime, movement: OutgoingTokens) -> Usage:
    """What any member proposed to transfer, mint and burn of it from the vault since then."""
    return _token_usage(db, _TOKEN_OF_VAULT, {"vault_ids": [vault_id], "since": since}, movement)


def token_usages_of_vaults(db: Session, vault_ids: Collection[str], since: datetime) -> list[VaultTokenUsage]:
    """The same sums of every token that one of them moved since then, the oldest token first."""
    # Most vaults never called a token: then none of their proposals is read.
    calling = db.scalars(_CALLING, {"vault_ids": vault_ids}).all()
    if not calling:
        return []
    # Summed here: a sum may exceed 64 bits, where SQLite fails.
    sums: dict[tuple[Any, ...], int] = {}
    for _, amount, *token in db.execute(_OF_VAULTS, {"vault_ids": calling, "since": since}):
        sums[tuple(token)] = sums.get(tuple(token), 0) + (amount or 0)
    return [VaultTokenUsage(Usage(others=amount), *token) for token, amount in sums.items()]


def _token_usage(
    db: Session, calls: Select[str, int | None], whose: Mapping[str, object], movement: OutgoingTokens
) -> Usage:
    others = held = 0
    for family_id, amount in db.execute(calls, {**whose, "contract_uid": movement.contract_uid}):
        if family_id == movement.family_id:
            held += amount or 0
        else:
            others += amount or 0
    return Usage(others, held)


def _token_calls(whose: ColumnElement[bool], functions: Iterable[Function]) -> Select[str, int | None]:
    """The calls that count: their family, and what they move."""
    families = (
        select(ProposalRow.family_id)
        .where(
            whose,
            ProposalRow.created_at >= bindparam("since"),
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


_OF_ONE_TOKEN = ContractCallRow.contract_uid == bindparam("contract_uid")
_TOKEN_OF_MEMBER = _token_calls(
    and_(
        ProposalRow.workspace_id == bindparam("workspace_id"), ProposalRow.created_by == bindparam("user_id")
    ),
    FOR_ROLE,
).where(_OF_ONE_TOKEN)
# One statement, also narrowed, so that a vault's shown usage and the checked one agree.
_MOVED_BY_VAULTS = _token_calls(ProposalRow.vault_id.in_(bindparam("vault_ids", expanding=True)), FOR_VAULT)
_TOKEN_OF_VAULT = _MOVED_BY_VAULTS.where(_OF_ONE_TOKEN)
_CALLING = (
    select(ContractCallRow.vault_id)
    .where(ContractCallRow.vault_id.in_(bindparam("vault_ids", expanding=True)))
    .distinct()
)
_OF_VAULTS = _MOVED_BY_VAULTS.add_columns(
    ContractCallRow.vault_id,
    ContractRow.uid,
    ContractRow.chain,
    ContractRow.deploy_family_id,
    ContractRow.ticker,
    ContractRow.decimals,
).order_by(ContractRow.uid)
