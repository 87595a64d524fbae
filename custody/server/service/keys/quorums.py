"""Whether enough signers of a vault remain when a member loses a key, the membership or a permission; and
whether an advisory concerns a key, and which keys are unsafe.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, bindparam, false, func, or_, select
from sqlalchemy.orm import Session

from custody.advisories import Advisory, Concern, KeyFacts
from custody.schemas.users import PermissionName
from custody.server.domain.errors import VaultsLeftShort
from custody.server.domain.roles import VAULT_VIEWERS
from custody.server.store.models import (
    EvacuatedVault,
    Key,
    Membership,
    RolePermission,
    StoredAdvisory,
    Vault,
    VaultSigner,
)


class AdvisoriesInForce:
    """The advisories in force, by id. ``trusted``: the publishers' keys that the operator has configured,
    x-only in hex; advisories of other publishers are not in force.
    """

    def __init__(self, trusted: Collection[str]) -> None:
        self.trusted = trusted

    def __call__(self, db: Session) -> Mapping[int, Advisory]:
        query = select(StoredAdvisory).where(
            StoredAdvisory.withdrawn_at.is_(None), StoredAdvisory.root.in_(self.trusted)
        )
        return {row.id: Advisory.model_validate(row.body) for row in db.scalars(query)}


def concern_of(advisory: Advisory, key: Key) -> Concern:
    """A drill never concerns keys of mainnet."""
    if advisory.drill and key.network == "mainnet":
        return Concern.NOT
    made_by = f"{key.created_at:%Y-%m-%d}"
    return advisory.concern(KeyFacts(key.maker, key.model, key.firmware, key.made_on, made_by))


def exposing(advisories: Collection[Advisory], key: Key) -> Advisory | None:
    """The first advisory that says to stop using this key. A device of which too little is known does not
    count: coins must not stay exposed for certain because of it.
    """
    grave = (each for each in advisories if each.severity == "stop-using")
    return next((each for each in grave if concern_of(each, key) is Concern.EXPOSED), None)


def are_unsafe(
    db: Session, in_force: Mapping[int, Advisory], key_ids: Collection[str], advisory_id: int | None
) -> bool:
    """Whether there is evidence beyond a member's word that the keys are unsafe: each is lost or superseded,
    or an advisory in force concerns it or may; and the advisory ``advisory_id`` is in force.
    """
    if advisory_id is not None and advisory_id not in in_force:
        return False
    active = db.scalars(select(Key).where(Key.id.in_(key_ids), Key.status == "active"))
    return all(any(concern_of(each, key) is not Concern.NOT for each in in_force.values()) for key in active)


# These are of the key in the vault's script: another key of the same member does not count.
_LIVE = Key.status == "active"
_SUPERSEDED = Key.revoked_reason == "superseded"


def approver(workspace_id: object, user_id: object) -> Select[int]:
    """Selects the user's id where they are a member of the workspace who may approve. Each argument is a
    value or a column.
    """
    return (
        select(Membership.user_id)
        .join(RolePermission, RolePermission.role_id == Membership.role_id)
        .where(
            Membership.workspace_id == workspace_id,
            Membership.user_id == user_id,
            RolePermission.permission == PermissionName.PAYMENT_APPROVE.value,
        )
    )


MAY_APPROVE = approver(Vault.workspace_id, VaultSigner.user_id).correlate(Vault, VaultSigner).exists()


def vaults_left_short(
    db: Session,
    *,
    without_key: str | None = None,
    without_member: int | None = None,
    without_role: int | None = None,
) -> list[Vault]:
    """The vaults that would lose a signer and keep fewer than M who can still sign, the oldest first.

    ``without_key``: a key's id. ``without_member``: the id of the membership of a member who leaves or
    may no longer approve. ``without_role``: the id of a role that loses PAYMENT_APPROVE. A vault that is
    short already and loses no signer is not included. Call it before the change, in its transaction.

    It counts twice: signers who can approve anything, and signers who can at least move the coins to another
    vault, which a superseded key can too. Where most signers have new devices, only the latter are left.
    """
    lost = _lost(without_key, without_member, without_role)
    short = {
        vault.id: vault
        for can_sign in (_LIVE, _LIVE | _SUPERSEDED)
        for vault in _left_short(db, lost, can_sign)
    }
    return sorted(short.values(), key=lambda vault: (vault.created_at, vault.id))


def require_quorums(db: Session, user_id: int | None, short: Sequence[Vault]) -> None:
    """Raises VaultsLeftShort where ``short`` is not empty, with the names that the user may see (None:
    all).
    """
    if not short:
        return
    seen = workspaces_seen_by(db, user_id) if user_id is not None else {vault.workspace_id for vault in short}
    names = [repr(vault.name) for vault in short if vault.workspace_id in seen]
    others = len(short) - len(names)
    if others:
        names.append(f"{others} of workspaces that you do not see")
    raise VaultsLeftShort(f"Fewer signers than a movement needs would be left in vault {', '.join(names)}.")


def _left_short(db: Session, lost: ColumnElement[bool], can_sign: ColumnElement[bool]) -> list[Vault]:
    losing = _able(lost & can_sign).distinct()
    left = _counted(db, _able(~lost & can_sign), losing)
    return [
        vault
        for vault in db.scalars(select(Vault).where(Vault.id.in_(losing)))
        if left.get(vault.id, 0) < vault.m
    ]


def workspaces_seen_by(db: Session, user_id: int) -> set[int]:
    query = (
        select(Membership.workspace_id)
        .join(RolePermission, RolePermission.role_id == Membership.role_id)
        .where(Membership.user_id == user_id, RolePermission.permission.in_(VAULT_VIEWERS))
    )
    return set(db.scalars(query))


def lacking_signers(db: Session, vaults: Mapping[str, int]) -> set[str]:
    """The vaults among ``vaults``, M by id, of which fewer than M signers can sign a payment."""
    able = _counted(db, _able(_LIVE), vaults.keys())
    return {vault_id for vault_id, m in vaults.items() if able.get(vault_id, 0) < m}


class SignerNow(NamedTuple):
    """A signer of a vault: the vault's own key of theirs, and whether their role approves there."""

    user_id: int
    revoked_reason: str | None
    may_approve: bool


def signers_now(db: Session, vault_id: str) -> list[SignerNow]:
    return [SignerNow(*row) for row in db.execute(_SIGNERS_NOW, {"vault_id": vault_id})]


_SIGNERS_NOW = (
    select(VaultSigner.user_id, Key.revoked_reason, MAY_APPROVE)
    .join(Vault, Vault.id == VaultSigner.vault_id)
    .join(Key, Key.id == VaultSigner.key_id)
    .where(VaultSigner.vault_id == bindparam("vault_id"))
)


def _lost(key_id: str | None, membership_id: int | None, role_id: int | None) -> ColumnElement[bool]:
    named: Sequence[ColumnElement[bool]] = [
        column == value
        for column, value in (
            (VaultSigner.key_id, key_id),
            (Membership.id, membership_id),
            (Membership.role_id, role_id),
        )
        if value is not None
    ]
    return or_(false(), *named)


def _able(which: ColumnElement[bool]) -> Select[str]:
    """The vault of every signer among ``which`` whose role in its workspace carries PAYMENT_APPROVE."""
    return (
        select(VaultSigner.vault_id)
        .join(Vault, Vault.id == VaultSigner.vault_id)
        .join(Key, Key.id == VaultSigner.key_id)
        .join(
            Membership,
            (Membership.workspace_id == Vault.workspace_id) & (Membership.user_id == VaultSigner.user_id),
        )
        .join(RolePermission, RolePermission.role_id == Membership.role_id)
        .where(RolePermission.permission == PermissionName.PAYMENT_APPROVE.value, which)
    )


def keys_that_move(db: Session, workspace_id: int) -> set[str]:
    """The keys with which a workspace's vaults can still move their coins to another one."""
    query = (
        select(Key.id)
        .join(Membership, Membership.user_id == Key.user_id)
        .join(RolePermission, RolePermission.role_id == Membership.role_id)
        .where(
            Membership.workspace_id == workspace_id,
            RolePermission.permission == PermissionName.PAYMENT_APPROVE.value,
            _LIVE | _SUPERSEDED,
        )
    )
    return set(db.scalars(query))


def unfit_to_receive(
    db: Session, vault_ids: Collection[str], advisories: Collection[Advisory]
) -> dict[str, str]:
    """Why some of these replacement vaults are unfit, by id: they are evacuated themselves, an advisory
    exposes a key, too few signers could spend from them, or they are frozen.
    """
    if not vault_ids:
        return {}
    able = _counted(db, _able(_LIVE | _SUPERSEDED), vault_ids)
    found: dict[str, str] = {}
    places = select(Vault, Key).join(VaultSigner, VaultSigner.vault_id == Vault.id)
    places = places.join(Key, Key.id == VaultSigner.key_id).where(Vault.id.in_(vault_ids))
    for vault, key in db.execute(places.order_by(Vault.id, VaultSigner.key_index)):
        if able.get(vault.id, 0) < vault.m:
            found[vault.id] = f"too few signers of {vault.name} can still sign"
        elif (advisory := exposing(advisories, key)) is not None:
            found.setdefault(vault.id, f"the advisory {advisory.id} exposes a key of {vault.name}")
    frozen = select(Vault).where(Vault.id.in_(vault_ids), Vault.frozen_at.is_not(None))
    for vault in db.scalars(frozen):
        found.setdefault(vault.id, f"{vault.name} is frozen until two members unfreeze it")
    evacuated = select(Vault).join(EvacuatedVault, EvacuatedVault.vault_id == Vault.id)
    for vault in db.scalars(evacuated.where(Vault.id.in_(vault_ids))):
        found[vault.id] = f"{vault.name} is evacuated itself"
    return found


def _counted(db: Session, able: Select[str], among: Select[str] | Collection[str]) -> dict[str, int]:
    """How many of these signers each vault has; one without any is not in it."""
    able_signers = able.where(VaultSigner.vault_id.in_(among)).subquery()
    query = select(able_signers.c.vault_id, func.count()).group_by(able_signers.c.vault_id)
    return dict(db.execute(query).all())
