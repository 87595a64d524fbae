"""The names of what a pending change is about, for the second person, who may not be a member of the
workspace.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.vaults import NO_SCREENING
from custody.server.people.staff import role_of_first
from custody.server.store import models

Namer = Callable[[Session, models.PendingChangeRow, Any], str | None]


def names_in(db: Session, change: models.PendingChangeRow) -> dict[str, str]:
    """By field of the change's body. What was deleted, or belongs to another organisation, has no name."""
    names = {
        field: _NAMERS[field](db, change, value) for field, value in change.body.items() if field in _NAMERS
    }
    return {field: name for field, name in names.items() if name is not None}


def _of_workspace(model: Any, words: Callable[[Any], str]) -> Namer:
    def named(db: Session, change: models.PendingChangeRow, number: Any) -> str | None:
        row = db.get(model, number)
        return words(row) if row is not None and row.workspace_id == change.workspace_id else None

    return named


def _person(db: Session, change: models.PendingChangeRow, number: Any) -> str | None:
    """A member of any of the organisation's workspaces."""
    inside = select(models.MembershipRow.user_id).join(
        models.WorkspaceRow, models.WorkspaceRow.id == models.MembershipRow.workspace_id
    )
    query = select(models.UserRow).where(
        models.UserRow.id == number,
        models.UserRow.id.in_(inside.where(models.WorkspaceRow.organisation_id == change.organisation_id)),
    )
    person = db.scalars(query).one_or_none()
    return None if person is None else person_words(person)


def person_words(user: models.UserRow) -> str:
    named = models.full_name(user.first_name, user.surname)
    return f"{named} ({user.email})" if named else user.email


def _key(db: Session, change: models.PendingChangeRow, number: Any) -> str | None:
    key = db.get(models.KeyRow, number)
    owner = None if key is None else _person(db, change, key.user_id)
    return None if key is None or owner is None else f"of {owner}, fingerprint {key.master_fingerprint}"


def _confirming_role(db: Session, change: models.PendingChangeRow, number: Any) -> str | None:
    role = role_of_first(db, change.organisation_id, number)
    return None if role is None else role.name


def approver_words(db: Session, key: str) -> str:
    """Of whom a vault asks for an approval."""
    if key.startswith("role:"):
        return f"the role {db.get_one(models.RoleRow, int(key[5:])).name}"
    return person_words(db.get_one(models.UserRow, int(key[5:])))


def _approver(db: Session, change: models.PendingChangeRow, key: Any) -> str | None:
    namer = _role if key.startswith("role:") else _person
    return None if namer(db, change, int(key[5:])) is None else approver_words(db, key)


def _each_of(one: Namer) -> Namer:
    def named(db: Session, change: models.PendingChangeRow, numbers: Any) -> str | None:
        names = [one(db, change, number) for number in numbers]
        return None if None in names else "; ".join(filter(None, names)) or "none"

    return named


_webhook = _of_workspace(models.WebhookRow, lambda hook: hook.url)
_role = _of_workspace(models.RoleRow, lambda role: role.name)
_NAMERS: Final[Mapping[str, Namer]] = MappingProxyType(
    {
        "role_id": _role,
        "role_uid": _role,
        "confirming_role_id": _confirming_role,
        "user_uuid": _person,
        "signers": _each_of(_person),
        "approvers": _each_of(_approver),
        "vault_id": _of_workspace(models.VaultRow, lambda vault: vault.name),
        "uid": _of_workspace(models.AddressBookEntryRow, lambda entry: f"{entry.name}, {entry.address}"),
        "webhook_id": _webhook,
        "screening_webhook_id": lambda db, change, given: (
            given if given == NO_SCREENING else _webhook(db, change, given)
        ),
        "service_account_id": _of_workspace(models.ServiceAccountRow, lambda program: program.name),
        "key_id": _key,
    }
)
