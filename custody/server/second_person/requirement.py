"""The organisation's rule of the second person, and who confirms a change (`second_person.changes`)."""

from typing import Any, Final

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session

from custody.common.change_words import PERMISSION_WORDS
from custody.schemas.call import Call
from custody.schemas.calls import CONFIRMABLE
from custody.server.errors import LastAdmin, SecondPersonNeeded
from custody.server.store.models import (
    MembershipRow,
    PendingChangeRow,
    RolePermissionRow,
    RoleRow,
    SecondPersonRuleRow,
)

FEWEST: Final = 2
_NAMED_ROLE: Final = (
    select(SecondPersonRuleRow.confirming_role_id)
    .where(SecondPersonRuleRow.organisation_id == PendingChangeRow.organisation_id)
    .correlate(PendingChangeRow)
    .scalar_subquery()
)


def _may_make(call: Call[Any, Any]) -> ColumnElement[bool]:
    permission = RolePermissionRow.permission.in_([each.value for each in call.permissions])
    holds = (
        exists()
        .where(RolePermissionRow.role_id == MembershipRow.role_id, permission)
        .correlate(MembershipRow)
    )
    return and_(PendingChangeRow.path == call.path, holds)


# Which memberships confirm which changes, perhaps the asker's too. With the rule: those with its role, which
# is of the first workspace, because whoever makes a later one names its roles. Without, where a call always
# takes two people: those in the change's workspace with a permission for the call.
CONFIRMS: Final = or_(
    MembershipRow.role_id == _NAMED_ROLE,
    and_(
        _NAMED_ROLE.is_(None),
        MembershipRow.workspace_id == PendingChangeRow.workspace_id,
        or_(*(_may_make(call) for call in CONFIRMABLE.values() if call.always_two)),
    ),
)


def confirms_in(db: Session, organisation_id: int, user_id: int) -> bool:
    """Whether they have the role that the organisation's rule names."""
    query = select(MembershipRow.id).where(
        MembershipRow.user_id == user_id,
        MembershipRow.role_id == SecondPersonRuleRow.confirming_role_id,
        SecondPersonRuleRow.organisation_id == organisation_id,
    )
    return db.scalar(query) is not None


def role_name(db: Session, rule: SecondPersonRuleRow) -> str:
    role = db.get(RoleRow, rule.confirming_role_id)
    return "that no longer exists" if role is None else role.name


def require_no_second_person(db: Session, organisation_id: int, call: Call[Any, Any]) -> None:
    """Raises SecondPersonNeeded."""
    rule = db.get(SecondPersonRuleRow, organisation_id)
    if rule is not None:
        raise SecondPersonNeeded(
            f"In this organisation a second person, in the role {role_name(db, rule)}, has to confirm this."
        )
    if call.always_two:
        permissions = " or ".join(PERMISSION_WORDS[each] for each in sorted(call.permissions))
        raise SecondPersonNeeded(
            f"This always needs another member to confirm it, with the permission: {permissions}."
        )


def require_two(db: Session, organisation_id: int) -> None:
    """Where the rule is on, at least two members must be able to confirm each other's changes. Call it after
    a change of members or roles. Raises LastAdmin.
    """
    rule = db.get(SecondPersonRuleRow, organisation_id)
    if rule is None:
        return
    holders = select(func.count()).where(MembershipRow.role_id == rule.confirming_role_id)
    if (db.scalar(holders) or 0) < FEWEST:
        raise LastAdmin(
            f"Fewer than two members of the organisation's first workspace would have the role "
            f"{role_name(db, rule)}, but each needs another one to confirm changes."
        )
