"""The rule of the second person, and the changes that wait for one."""

from starlette.responses import Response

from custody.common.change_words import facts_of, names_nothing, title_of
from custody.common.text import count
from custody.schemas.changes import (
    CHANGES,
    CONFIRM_CHANGE,
    DECLINE_CHANGE,
    SECOND_PERSON_RULE,
    UPDATE_SECOND_PERSON_RULE,
    Change,
    SecondPersonRule,
)
from custody.schemas.roles import ROLES, RoleDetails
from custody.server.console.members import members_of
from custody.server.console.rendering import member_words
from custody.server.console.table import Review, Row
from custody.server.console.visit import Visit
from custody.server.domain.errors import Invalid, NotFound, StateConflict

# Decided changes on the page.
SHOWN = 20


def changes(visit: Visit) -> Response:
    every = visit.ask(CHANGES, workspace_id=visit.here.id)
    rule = visit.ask(SECOND_PERSON_RULE, workspace_id=visit.here.id)
    return visit.page(
        "changes/changes.html",
        here="changes",
        waiting=[each for each in every if each.status == "PENDING"],
        decided=[each for each in every if each.status != "PENDING"][:SHOWN],
        rule=rule,
        setter=_setter(visit, rule),
        title_of=title_of,
        facts_of=facts_of,
        names_nothing=names_nothing,
        roles=_roles(visit),
    )


def _setter(visit: Visit, rule: SecondPersonRule) -> str:
    """Who switched the rule on; empty for a person who may not see the members."""
    if not rule.set_by or not visit.here.may("MANAGE_USERS"):
        return ""
    setters = (each for each in members_of(visit) if str(each.uuid) == str(rule.set_by))
    return next(map(member_words, setters), "")


def _roles(visit: Visit) -> list[RoleDetails]:
    """Of the organisation's first workspace, whose owners set the rule."""
    own = (each for each in visit.places if each.organisation.org_id == visit.here.organisation.org_id)
    first = min(own, key=lambda each: each.id)
    if not first.may("MANAGE_ROLE", "MANAGE_USERS", "MANAGE_WORKSPACE"):
        return []
    return visit.ask(ROLES, workspace_id=first.id)


def _change(visit: Visit) -> Change:
    """Raises NotFound."""
    change_id = visit.form.one("change_id") or visit.query("change_id")
    found = visit.ask(CHANGES, workspace_id=visit.here.id, change_id=change_id)
    if found:
        return found[0]
    raise NotFound("There is no such change, or your role does not confirm it.")


def review_confirmation(visit: Visit) -> Review:
    change = _change(visit)
    if names_nothing(change):
        raise StateConflict("It names something that no longer exists: decline it.")
    workspace, *said = facts_of(change)
    facts: tuple[tuple[str, object], ...] = (
        workspace,
        ("What would change", title_of(change)),
        *said,
        ("Asked for by", change.asked_by_name),
    )
    return Review(
        "Confirm this change?",
        facts,
        "Confirm",
        "It takes effect at once, in the name of the member who asked.",
    )


def confirm(visit: Visit) -> Response:
    visit.act(CONFIRM_CHANGE, workspace_id=visit.here.id, change_id=visit.form.one("change_id"))
    return visit.go(f"{visit.here.path}/changes", "The change is made.")


def decline(visit: Visit) -> Response:
    visit.act(
        DECLINE_CHANGE,
        workspace_id=visit.here.id,
        change_id=visit.form.one("change_id"),
        reason=visit.form.one("reason") or None,
    )
    return visit.go(f"{visit.here.path}/changes", "The change is declined.")


def review_rule(visit: Visit) -> Review:
    if not visit.form.ticked("is_on"):
        return Review("Switch the rule off?", (), "Switch it off", "Each member then changes policy alone.")
    role_id = visit.number("confirming_role_id")
    named = next((each.name for each in _roles(visit) if each.role_id == role_id), None)
    if named is None:
        raise Invalid.at("/confirming_role_id", "Choose a role of the list.")
    facts = (
        ("Who confirms", f"members in the role {named}"),
        (
            "Cooling off",
            f"{count(visit.number('cooling_off_hours'), 'hour', 'hours')}, for a change that allows more",
        ),
    )
    warning = "From then on no member changes roles, limits, members or this rule alone."
    return Review("Switch the rule on?", facts, "Switch it on", warning)


def change_rule(visit: Visit) -> Response:
    is_on = visit.form.ticked("is_on")
    visit.act(
        UPDATE_SECOND_PERSON_RULE,
        workspace_id=visit.here.id,
        is_on=is_on,
        confirming_role_id=visit.number("confirming_role_id") if is_on else None,
        cooling_off_hours=visit.number("cooling_off_hours") if is_on else 0,
    )
    return visit.go(f"{visit.here.path}/changes", f"The rule is {'on' if is_on else 'off'}.")


_HERE = "/w/{workspace_id:int}/changes"
ROWS = (
    Row("GET", _HERE, changes),
    Row(
        "POST", _HERE + "/confirm", confirm, again=changes, review=review_confirmation, steps_up=True,
        acts=(CONFIRM_CHANGE,),
    ),
    Row("POST", _HERE + "/decline", decline, again=changes, acts=(DECLINE_CHANGE,)),
    Row(
        "POST", _HERE + "/rule", change_rule, again=changes, review=review_rule, steps_up=True,
        acts=(UPDATE_SECOND_PERSON_RULE,),
    ),
)  # fmt: skip
