"""The names of what a pending change is about, for the second person, who may not be a member of the
workspace.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.people.staff import role_of_first
from custody.server.store.models import (
    AddressBookEntryRow,
    KeyRow,
    MembershipRow,
    PendingChangeRow,
    RoleRow,
    ServiceAccountRow,
    UserRow,
    VaultRow,
    WebhookRow,
    WorkspaceRow,
    full_name,
)

Namer = Callable[[Session, PendingChangeRow, Any], str | None]


def names_in(db: Session, change: PendingChangeRow) -> dict[str, str]:
    """By field of the change's body. What was deleted, or belongs to another organisation, has no name."""
    names = {
        field: _NAMERS[field](db, change, value) for field, value in change.body.items() if field in _NAMERS
    }
    return {field: name for field, name in names.items() if name is not None}


def _of_workspace(model: Any, words: Callable[[Any], str]) -> Namer:
    def named(db: Session, change: PendingChangeRow, number: Any) -> str | None:
        row = db.get(model, number)
        return words(row) if row is not None and row.workspace_id == change.workspace_id else None

    return named


def _person(db: Session, change: PendingChangeRow, number: Any) -> str | None:
    """A member of any of the organisation's workspaces."""
    inside = select(MembershipRow.user_id).join(WorkspaceRow, WorkspaceRow.id == MembershipRow.workspace_id)
    query = select(UserRow).where(
        UserRow.id == number,
        UserRow.id.in_(inside.where(WorkspaceRow.organisation_id == change.organisation_id)),
    )
    person = db.scalars(query).one_or_none()
    return None if person is None else person_words(person)


def person_words(user: UserRow) -> str:
    named = full_name(user.first_name, user.surname)
    return f"{named} ({user.email})" if named else user.email


def _key(db: Session, change: PendingChangeRow, number: Any) -> str | None:
    key = db.get(KeyRow, number)
    owner = None if key is None else _person(db, change, key.user_id)
    return None if key is None or owner is None else f"of {owner}, fingerprint {key.master_fingerprint}"


def _confirming_role(db: Session, change: PendingChangeRow, number: Any) -> str | None:
    role = role_of_first(db, change.organisation_id, number)
    return None if role is None else role.name


def _signers(db: Session, change: PendingChangeRow, numbers: Any) -> str | None:
    people = [_person(db, change, number) for number in numbers]
    return None if None in people else "; ".join(filter(None, people))


_role = _of_workspace(RoleRow, lambda role: role.name)
_NAMERS: Final[Mapping[str, Namer]] = MappingProxyType(
    {
        "role_id": _role,
        "role_uid": _role,
        "confirming_role_id": _confirming_role,
        "user_uuid": _person,
        "signers": _signers,
        "vault_id": _of_workspace(VaultRow, lambda vault: vault.name),
        "uid": _of_workspace(AddressBookEntryRow, lambda entry: f"{entry.name}, {entry.address}"),
        "webhook_id": _of_workspace(WebhookRow, lambda hook: hook.url),
        "service_account_id": _of_workspace(ServiceAccountRow, lambda program: program.name),
        "key_id": _key,
    }
)
