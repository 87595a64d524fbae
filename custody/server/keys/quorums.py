"""Whether enough signers of a vault remain when a member loses a key, the membership or a permission."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Select, bindparam, exists, func, select
from sqlalchemy.orm import Session

from custody.schemas.call import VAULT_VIEWERS, PermissionName
from custody.server.errors import StateConflict
from custody.server.store.models import (
    ChainCoinRow,
    KeyRow,
    MembershipRow,
    RolePermissionRow,
    TokenCellRow,
    UserRow,
    VaultRow,
    VaultSignerRow,
)
from custody.server.store.store import read_each
from custody.server.vaults.stored import address_script
from multisig.tokens.machine import Cell

# Of a forced change, in an `Event`.
SHORT: Final = "[; too few signers are left in {short_vaults}]"
# These are of the key in the vault's script: another key of the same member does not count.
_LIVE = KeyRow.status == "active"
_SUPERSEDED = KeyRow.revoked_reason == "superseded"


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


MAY_APPROVE = (
    approver(VaultRow.workspace_id, VaultSignerRow.user_id).correlate(VaultRow, VaultSignerRow).exists()
)


def vaults_left_short(db: Session, lost: ColumnElement[bool]) -> list[VaultRow]:
    """The vaults that would lose a signer and keep fewer than M who can still sign, the oldest first.

    ``lost``: of a `VaultSignerRow` with its `MembershipRow`, whether it signs no more: its key is revoked, or
    it may no longer approve. Not included are vaults that are short already and lose no signer, and those
    that were replaced and are empty. Call it before the change, in its transaction.

    It counts twice: signers who can approve anything, and signers who can at least move the coins to another
    vault, which a superseded key can too. Where most signers have new devices, only the latter are left.
    """
    short = {
        vault.id: vault
        for can_sign in (_LIVE, _LIVE | _SUPERSEDED)
        for vault in _left_short(db, lost, can_sign)
        if not _is_over(db, vault)
    }
    return sorted(short.values(), key=lambda vault: (vault.created_at, vault.id))


def left_short_by(
    db: Session, user_id: int | None, lost: ColumnElement[bool], *, is_forced: bool
) -> list[str]:
    """The ids of `vaults_left_short`, of which there are any only where the change is forced. Raises
    StateConflict else, with the names that the user may see (None: all).
    """
    short = vaults_left_short(db, lost)
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
        f"Fewer signers than a movement needs would be left in vault {', '.join(names)}.",
        hint="Move what is in it to a vault with other signers first, or force it.",
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


def _left_short(db: Session, lost: ColumnElement[bool], can_sign: ColumnElement[bool]) -> list[VaultRow]:
    losing = _able(lost & can_sign).distinct()
    left = _counted(db, _able(~lost & can_sign), losing)
    return [
        vault
        for vault in db.scalars(select(VaultRow).where(VaultRow.id.in_(losing)))
        if left.get(vault.id, 0) < vault.m
    ]


def workspaces_where(db: Session, user_id: int, permissions: Iterable[PermissionName]) -> set[int]:
    """Where the user holds one of these permissions."""
    query = (
        select(MembershipRow.workspace_id)
        .join(RolePermissionRow, RolePermissionRow.role_id == MembershipRow.role_id)
        .where(MembershipRow.user_id == user_id, RolePermissionRow.permission.in_(permissions))
    )
    return set(db.scalars(query))


def lacking_signers(db: Session, vaults: Mapping[str, int], ids: Select[str] | None = None) -> set[str]:
    """The vaults among ``vaults``, M by id, of which fewer than M signers can sign a payment. ``ids`` selects
    them where they may be many.
    """
    able = _counted(db, _able(_LIVE), vaults.keys() if ids is None else ids)
    return {vault_id for vault_id, m in vaults.items() if able.get(vault_id, 0) < m}


class SignerNow(NamedTuple):
    """A signer of a vault: the vault's own key of theirs, and whether their role approves there."""

    key_id: str
    user_id: int
    revoked_reason: str | None = None
    may_approve: bool = True
    key_index: int = 0
    first_name: str | None = None
    surname: str | None = None
    maker: str | None = None
    model: str | None = None
    firmware: str | None = None

    @property
    def is_lost(self) -> bool:
        return self.revoked_reason == "lost"

    @property
    def can_sign(self) -> bool:
        return self.may_approve and not self.revoked_reason


def signers_of(db: Session, vault_ids: Iterable[str]) -> dict[str, list[SignerNow]]:
    """By vault, in the order of their keys."""

    def read(ids: list[str]) -> dict[str, list[SignerNow]]:
        by_vault: dict[str, list[SignerNow]] = {vault_id: [] for vault_id in ids}
        for row in db.execute(_SIGNERS_NOW, {"vault_ids": ids}):
            by_vault[row.vault_id].append(SignerNow(*row[1:]))
        return by_vault

    return read_each(db, "signers", vault_ids, read)


_SIGNERS_NOW = (
    select(
        VaultSignerRow.vault_id,
        VaultSignerRow.key_id,
        VaultSignerRow.user_id,
        KeyRow.revoked_reason,
        MAY_APPROVE,
        VaultSignerRow.key_index,
        UserRow.first_name,
        UserRow.surname,
        KeyRow.maker,
        KeyRow.model,
        KeyRow.firmware,
    )
    .join(UserRow, UserRow.id == VaultSignerRow.user_id)
    .join(VaultRow, VaultRow.id == VaultSignerRow.vault_id)
    .join(KeyRow, KeyRow.id == VaultSignerRow.key_id)
    .where(VaultSignerRow.vault_id.in_(bindparam("vault_ids", expanding=True)))
    .order_by(VaultSignerRow.vault_id, VaultSignerRow.key_index)
)


def _able(which: ColumnElement[bool]) -> Select[str]:
    """The vault of every signer among ``which`` whose role in its workspace carries PAYMENT_APPROVE."""
    return (
        select(VaultSignerRow.vault_id)
        .join(VaultRow, VaultRow.id == VaultSignerRow.vault_id)
        .join(KeyRow, KeyRow.id == VaultSignerRow.key_id)
        .join(
            MembershipRow,
            (MembershipRow.workspace_id == VaultRow.workspace_id)
            & (MembershipRow.user_id == VaultSignerRow.user_id),
        )
        .join(RolePermissionRow, RolePermissionRow.role_id == MembershipRow.role_id)
        .where(RolePermissionRow.permission == PermissionName.PAYMENT_APPROVE.value, which)
    )


def _counted(db: Session, able: Select[str], among: Select[str] | Collection[str]) -> dict[str, int]:
    """How many of these signers each vault has; one without any is not in it."""
    able_signers = able.where(VaultSignerRow.vault_id.in_(among)).subquery()
    query = select(able_signers.c.vault_id, func.count()).group_by(able_signers.c.vault_id)
    return dict(db.execute(query).all())
