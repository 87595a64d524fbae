"""The organisation's rule of the second person, and who confirms a change (`second_person.changes`)."""

from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session

from custody.schemas.call import PERMISSION_WORDS, Call
from custody.server.errors import LastAdmin, SecondPersonNeeded
from custody.server.store import models

FEWEST: Final = 2
_NAMED_ROLE: Final = (
    select(models.SecondPersonRuleRow.confirming_role_id)
    .where(models.SecondPersonRuleRow.organisation_id == models.PendingChangeRow.organisation_id)
    .correlate(models.PendingChangeRow)
    .scalar_subquery()
)


def _may_make(call: Call[Any, Any]) -> ColumnElement[bool]:
    permission = models.RolePermissionRow.permission.in_([each.value for each in call.permissions])
    holds = (
        exists()
        .where(models.RolePermissionRow.role_id == models.MembershipRow.role_id, permission)
        .correlate(models.MembershipRow)
    )
    return and_(models.PendingChangeRow.path == call.path, holds)


@cache
def confirms() -> ColumnElement[bool]:
    """Which memberships confirm which changes, perhaps the asker's too. With the rule: those with its role,
    which is of the first workspace, because whoever makes a later one names its roles. Without, where a call
    always takes two people: those in the change's workspace with a permission for the call.
    """
    # Imported here: it is every call of the platform.
    from custody.schemas.calls import CONFIRMABLE

    here = models.MembershipRow.workspace_id == models.PendingChangeRow.workspace_id
    permitted = or_(*(_may_make(call) for call in CONFIRMABLE.values() if call.always_two))
    return or_(models.MembershipRow.role_id == _NAMED_ROLE, and_(_NAMED_ROLE.is_(None), here, permitted))


def confirms_in(db: Session, organisation_id: int, user_id: int) -> bool:
    """Whether they have the role that the organisation's rule names."""
    query = select(models.MembershipRow.id).where(
        models.MembershipRow.user_id == user_id,
        models.MembershipRow.role_id == models.SecondPersonRuleRow.confirming_role_id,
        models.SecondPersonRuleRow.organisation_id == organisation_id,
    )
    return db.scalar(query) is not None


def role_name(db: Session, rule: models.SecondPersonRuleRow) -> str:
    role = db.get(models.RoleRow, rule.confirming_role_id)
    return "that no longer exists" if role is None else role.name


def require_no_second_person(db: Session, organisation_id: int, call: Call[Any, Any]) -> None:
    """Raises SecondPersonNeeded."""
    rule = db.get(models.SecondPersonRuleRow, organisation_id)
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
    rule = db.get(models.SecondPersonRuleRow, organisation_id)
    if rule is None:
        return
    holders = select(func.count()).where(models.MembershipRow.role_id == rule.confirming_role_id)
    if (db.scalar(holders) or 0) < FEWEST:
        raise LastAdmin(
            f"Fewer than two members of the organisation's first workspace would have the role "
            f"{role_name(db, rule)}, but each needs another one to confirm changes."
        )
