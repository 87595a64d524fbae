"""Whether enough signers of a vault remain, and those whose approval it asks for, when a member loses a key,
the membership, a role or a permission.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, exists, or_, select
from sqlalchemy.orm import Session

from custody.schemas.call import VAULT_VIEWERS, PermissionName
from custody.schemas.proposals import ProposalStatus
from custody.schemas.users import MOST_CHECK_MONTHS
from custody.server.errors import StateConflict
from custody.server.jobs.outbox import COMPLETION, enqueue
from custody.server.rules.approvers import Approver, missing
from custody.server.rules.keys import may_move_on
from custody.server.store.models import (
    ChainCoinRow,
    DecisionRow,
    KeyRow,
    MembershipRow,
    ProposalRow,
    RolePermissionRow,
    TokenCellRow,
    UserRow,
    VaultRow,
    VaultSignerRow,
    WorkspaceRow,
)
from custody.server.store.store import read_each
from custody.server.vaults.stored import address_script
from multisig.tokens.machine import Cell

_IS_NO: Final = DecisionRow.decision == "reject"
IS_DECLINED: Final = exists().where(DecisionRow.proposal_id == ProposalRow.id, _IS_NO).correlate(ProposalRow)
# Of a forced change, in an `Event`.
SHORT: Final = "[; too few signers, or none of those who have to approve, are left in {short_vaults}]"


def approver(workspace_id: object, user_id: object) -> Select[int]:
    """Selects the user's id where they are a member of the workspace who may approve. Each argument is a
    value or a column.
    """
    return (
        select(MembershipRow.user_id)
        .join(RolePermissionRow, RolePermissionRow.role_id == MembershipRow.role_id)
        .where(
            MembershipRow.workspace_id == workspace_id,
            MembershipRow.user_id == user_id,
            RolePermissionRow.permission == PermissionName.PAYMENT_APPROVE.value,
        )
    )


def approvers_of(db: Session, proposal_id: str) -> list[Approver]:
    query = select(DecisionRow.user_id, DecisionRow.role_id)
    rows = db.execute(query.where(DecisionRow.proposal_id == proposal_id, DecisionRow.is_complete))
    return [(user_id, role_id) for user_id, role_id in rows]


def decliners(db: Session, proposal_id: str) -> set[int]:
    """The users who have declined it."""
    query = select(DecisionRow.user_id).where(DecisionRow.proposal_id == proposal_id, _IS_NO)
    return set(db.scalars(query))


def makers_of(db: Session, family_ids: Collection[str]) -> defaultdict[str, set[int]]:
    """By family, who proposed a version of it."""
    makers = defaultdict[str, set[int]](set)
    of = select(ProposalRow.family_id, ProposalRow.created_by).where(ProposalRow.family_id.in_(family_ids))
    for family_id, maker in db.execute(of) if family_ids else ():
        makers[family_id].add(maker)
    return makers


def vaults_left_short(
    db: Session,
    lost: ColumnElement[bool],
    new_role: int | None = None,
    *,
    counts: bool = True,
    waiting: Sequence[ProposalRow] = (),
) -> list[VaultRow]:
    """The vaults that would lose a signer and keep fewer than M who can still sign (unless their number does
    not count), or nobody of whom an approval has to come, also of what is ``waiting``; the oldest first.

    ``lost``: of a `VaultSignerRow` with its `MembershipRow`, whether it signs no more: its key is revoked, or
    it may no longer approve; with a ``new_role``, it signs in that role from then on. Not included are vaults
    that are short already and lose no signer, and those that were replaced and are empty. Call it before the
    change, in its transaction.

    It counts twice: signers who can approve anything, and signers who can at least move the coins to another
    vault, which a superseded key can too. Where most signers have new devices, only the latter are left.
    """
    out = defaultdict[str, set[int]](set)
    held = select(VaultSignerRow.vault_id, VaultSignerRow.user_id).join(VaultRow)
    for vault_id, user_id in db.execute(held.join(MembershipRow, _IS_THEIRS).where(lost)):
        out[vault_id].add(user_id)
    seats, short = signers_of(db, out), dict[str, VaultRow]()
    for vault in db.scalars(select(VaultRow).where(VaultRow.id.in_(out))):
        # Of any movement, and of what waits: who does not approve it, and who has.
        cases: list[tuple[set[int], list[Approver]]] = [(set(), [])]
        for one in (each for each in waiting if each.vault_id == vault.id):
            makers = set() if vault.maker_may_approve else makers_of(db, [one.family_id])[one.family_id]
            cases.append((decliners(db, one.id) | makers, approvers_of(db, one.id)))
        for stays in (False, True):
            had = able_among(seats[vault.id], stays=stays)
            left = [each for each in had if each[0] not in out[vault.id]]
            if new_role is not None:
                left += [(each[0], new_role) for each in had if each[0] in out[vault.id]]
            is_few = counts and len(left) < min(vault.m, len(had))
            for no, given in cases:
                could, can = ([*given, *(each for each in able if each[0] not in no)] for able in (had, left))
                if is_few or {*missing(vault.approvers, can)} - {*missing(vault.approvers, could)}:
                    short[vault.id] = vault
    there = (vault for vault in short.values() if not _is_over(db, vault))
    return sorted(there, key=lambda vault: (vault.created_at, vault.id))


def left_short_by(
    db: Session,
    now: datetime,
    user_id: int | None,
    lost: ColumnElement[bool],
    *,
    is_forced: bool,
    new_role: int | None = None,
    counts: bool = True,
    otherwise: str = "force it",
) -> list[str]:
    """The ids of `vaults_left_short`, of which there are any only where the change is forced. Raises
    StateConflict else, with the names that the user may see (None: all), and how it is done ``otherwise``.
    What waits there after a decline is looked at again once the change is stored.
    """
    held = select(VaultSignerRow.vault_id).join(VaultRow).join(MembershipRow, _IS_THEIRS).where(lost)
    pending = ProposalRow.status == ProposalStatus.PENDING.value, ProposalRow.profile_key_id.is_(None)
    declined = select(ProposalRow).where(*pending, ProposalRow.vault_id.in_(held), IS_DECLINED)
    waiting = db.scalars(declined).all()
    for one in waiting:
        enqueue(db, COMPLETION, one.id, now)
    short = vaults_left_short(db, lost, new_role, counts=counts, waiting=waiting)
    if is_forced or not short:
        return [vault.id for vault in short]
    seen = {vault.workspace_id for vault in short}
    if user_id is not None:
        seen = workspaces_where(db, user_id, VAULT_VIEWERS)
    names = [repr(vault.name) for vault in short if vault.workspace_id in seen]
    others = len(short) - len(names)
    if others:
        names.append(f"{others} of workspaces that you do not see")
    raise StateConflict(
        "Fewer signers than a movement needs, or none of those whose approval it needs, would be left in "
        f"vault {', '.join(names)}, or for a payment that waits there after a decline.",
        hint="Cancel that payment; move what is in the vault to one with other signers, or change of whom "
        f"its controls ask an approval; or {otherwise}.",
    )


def _is_over(db: Session, vault: VaultRow) -> bool:
    """Whether another vault has taken its place and all that it held: nobody has to sign for it any more."""
    if vault.replaced_by_id is None:
        return False
    coins = ChainCoinRow.vault_id == vault.id, ChainCoinRow.spent_height.is_(None)
    address, cell = address_script(vault), TokenCellRow.cell
    holds = (cell == Cell.BALANCE.value) & (TokenCellRow.holder == address)
    owns = (cell == Cell.OWNER.value) & (TokenCellRow.data == address)
    tokens = TokenCellRow.chain == vault.chain, holds | owns
    return not db.scalar(select(exists().where(*coins) | exists().where(*tokens)))


def workspaces_where(db: Session, user_id: int, permissions: Iterable[PermissionName]) -> set[int]:
    """Where the user holds one of these permissions."""
    query = (
        select(MembershipRow.workspace_id)
        .join(RolePermissionRow, RolePermissionRow.role_id == MembershipRow.role_id)
        .where(MembershipRow.user_id == user_id, RolePermissionRow.permission.in_(permissions))
    )
    return set(db.scalars(query))


def able_of(
    db: Session, vault_ids: Iterable[str], chosen: Select[str] | None = None
) -> dict[str, list[Approver]]:
    """By vault, its signers who can sign a payment. As `signers_of`."""
    return {vault_id: able_among(seats) for vault_id, seats in signers_of(db, vault_ids, chosen).items()}


class SignerNow(NamedTuple):
    """A signer of a vault: the vault's own key of theirs, and whether their role approves there."""

    key_id: str
    user_id: int
    revoked_reason: str | None = None
    may_approve: bool = True
    key_index: int = 0
    first_name: str | None = None
    surname: str | None = None
    email: str | None = None
    maker: str | None = None
    model: str | None = None
    firmware: str | None = None
    role_id: int | None = None
    last_signed_at: datetime | None = None
    key_check_months: int = 0

    @property
    def is_lost(self) -> bool:
        return self.revoked_reason == "lost"

    @property
    def can_sign(self) -> bool:
        return self.may_approve and not self.revoked_reason


def able_among(seats: Iterable[SignerNow], *, stays: bool = False) -> list[Approver]:
    """Those who can sign a payment. ``stays``: one that pays only vaults of the workspace."""
    return [
        (seat.user_id, seat.role_id)
        for seat in seats
        if seat.can_sign or (stays and seat.may_approve and may_move_on(seat.revoked_reason))
    ]


def signers_of(
    db: Session, vault_ids: Iterable[str], chosen: Select[str] | None = None
) -> dict[str, list[SignerNow]]:
    """By vault, in the order of their keys. ``chosen`` selects the same ids, where they may be many."""

    def read(ids: list[str]) -> dict[str, list[SignerNow]]:
        by_vault: dict[str, list[SignerNow]] = {vault_id: [] for vault_id in ids}
        which = VaultSignerRow.vault_id.in_(ids if chosen is None else chosen)
        for row in db.execute(_SIGNERS_NOW.where(which)):
            if row.vault_id in by_vault:
                by_vault[row.vault_id].append(SignerNow(*row[1:]))
        return by_vault

    return read_each(db, "signers", vault_ids, read)


_IS_THEIRS = and_(
    MembershipRow.workspace_id == VaultRow.workspace_id, MembershipRow.user_id == VaultSignerRow.user_id
)
_SIGNERS_NOW = (
    select(
        VaultSignerRow.vault_id,
        VaultSignerRow.key_id,
        VaultSignerRow.user_id,
        KeyRow.revoked_reason,
        approver(VaultRow.workspace_id, VaultSignerRow.user_id).correlate(VaultRow, VaultSignerRow).exists(),
        VaultSignerRow.key_index,
        UserRow.first_name,
        UserRow.surname,
        UserRow.email,
        KeyRow.maker,
        KeyRow.model,
        KeyRow.firmware,
        MembershipRow.role_id,
        KeyRow.last_signed_at,
        WorkspaceRow.key_check_months,
    )
    .join(UserRow, UserRow.id == VaultSignerRow.user_id)
    .join(VaultRow, VaultRow.id == VaultSignerRow.vault_id)
    .join(WorkspaceRow, WorkspaceRow.id == VaultRow.workspace_id)
    .join(KeyRow, KeyRow.id == VaultSignerRow.key_id)
    .outerjoin(MembershipRow, _IS_THEIRS)
    .order_by(VaultSignerRow.vault_id, VaultSignerRow.key_index)
)


_MONTH: Final = timedelta(days=365) / 12


# Key checks: whether the device of a signer still signs. A workspace asks for it once in some months; every
# signature that the platform verified counts, of a payment, a proof, or the challenge of a registration.
def is_due(last_signed_at: datetime, months: int, now: datetime) -> bool:
    return months > 0 and last_signed_at + months * _MONTH <= now


def due(now: datetime) -> ColumnElement[bool]:
    """Of a `KeyRow`: an active key whose workspaces, or one of them, ask for a signature again."""
    late = (
        and_(WorkspaceRow.key_check_months == months, KeyRow.last_signed_at <= now - months * _MONTH)
        for months in range(1, MOST_CHECK_MONTHS + 1)
    )
    seats = (
        select(VaultSignerRow.key_id)
        .join(VaultRow, VaultRow.id == VaultSignerRow.vault_id)
        .join(WorkspaceRow, WorkspaceRow.id == VaultRow.workspace_id)
        .where(VaultSignerRow.key_id == KeyRow.id, VaultRow.replaced_by_id.is_(None), or_(*late))
    )
    return and_(KeyRow.status == "active", seats.correlate(KeyRow).exists())
