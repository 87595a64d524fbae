"""The organisation's rule of the second person. Where it is on, it takes two people to change it, too."""

from collections.abc import Sequence
from typing import Any

from custody.schemas import changes as wire
from custody.schemas.changes import SECOND_PERSON_RULE, UPDATE_SECOND_PERSON_RULE, Json
from custody.schemas.common import Unreadable, WorkspaceQuery
from custody.server.calls import ChangeApproval, Ctx, serves
from custody.server.errors import NotFound
from custody.server.people.names import names_of
from custody.server.people.staff import require_owner_of, role_of_first
from custody.server.rules.audit import Event
from custody.server.second_person.requirement import require_two, role_name
from custody.server.shown import shape_of, shown
from custody.server.store.models import SecondPersonRuleRow

OFF = Event("SECOND_PERSON_RULE_SET", "turned the rule of the second person off")
ON = Event(
    "SECOND_PERSON_RULE_SET", "turned the rule of the second person on: {name} confirms, after {hours} hours"
)


@serves(SECOND_PERSON_RULE)
def second_person_rule(ctx: Ctx, _: WorkspaceQuery) -> wire.SecondPersonRule:
    return _shown(ctx)


def _in_force(ctx: Ctx, requests: Sequence[wire.SecondPersonRuleRequest]) -> list[dict[str, Json]]:
    rule = ctx.db.get(SecondPersonRuleRow, ctx.access.organisation_id)
    if rule is None:
        return [{} for _ in requests]
    named, hours = role_name(ctx.db, rule), rule.cooling_off_hours
    return [{"is_on": True, "confirming_role_id": named, "cooling_off_hours": hours} for _ in requests]


@serves(UPDATE_SECOND_PERSON_RULE, ChangeApproval(in_force=_in_force))
def update_second_person_rule(ctx: Ctx, request: wire.SecondPersonRuleRequest) -> wire.SecondPersonRule:
    """For an owner. Raises PermissionDenied, NotFound (a role of another workspace than the first), LastAdmin
    (fewer than two members hold it).
    """
    organisation_id = ctx.access.organisation_id
    require_owner_of(ctx.db, organisation_id, ctx.caller.user_id)
    present = ctx.db.get(SecondPersonRuleRow, organisation_id)
    event, facts = OFF, dict[str, Any]()
    if request.confirming_role_id is not None:
        role = role_of_first(ctx.db, organisation_id, request.confirming_role_id)
        if role is None:
            raise NotFound("There is no such role in the organisation's first workspace.")
        event, facts = ON, {"name": role.name, "hours": request.cooling_off_hours}
        rule = SecondPersonRuleRow(
            organisation_id=organisation_id,
            confirming_role_id=role.id,
            cooling_off_hours=request.cooling_off_hours,
            set_by=ctx.caller.user_id,
            set_at=ctx.now,
        )
        ctx.db.merge(rule)
    elif present is not None:
        ctx.db.delete(present)
    ctx.db.flush()
    require_two(ctx.db, organisation_id)
    ctx.event(event, **facts)
    return _shown(ctx)


def _shown(ctx: Ctx) -> wire.SecondPersonRule:
    """Where it was altered outside the platform, only that it is on."""
    organisation_id = ctx.access.organisation_id
    rule = ctx.db.get(SecondPersonRuleRow, organisation_id)
    if rule is None:
        return wire.SecondPersonRule(org_id=organisation_id, is_on=False)

    def shapes(rules: Sequence[SecondPersonRuleRow]) -> list[wire.SecondPersonRule]:
        return [
            shape_of(
                wire.SecondPersonRule,
                each,
                org_id=organisation_id,
                is_on=True,
                role_name=role_name(ctx.db, each),
                set_by_name=names_of(ctx.db, ctx.access, [each.set_by]).get(each.set_by),
            )
            for each in rules
        ]

    (answer,) = shown([rule], shapes, "org_id", lambda each: each.organisation_id)
    if isinstance(answer, Unreadable):
        return wire.SecondPersonRule(org_id=organisation_id, is_on=True)
    return answer
