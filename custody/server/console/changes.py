"""The rule of the second person, and the changes that wait for one."""

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from custody.schemas.changes import Change, SecondPersonRule
from custody.server.console.change_words import facts_of, title_of
from custody.server.console.members import name_of
from custody.server.console.table import Review, Row
from custody.server.console.visit import Visit
from custody.server.domain.errors import NotFound

# Of those that are decided.
SHOWN = 20


def changes(visit: Visit) -> Response:
    every: list[Change] = visit.get("changes", workspace_id=visit.here.id)
    rule: SecondPersonRule = visit.get("second-person-rule", workspace_id=visit.here.id)
    names = _names(visit) if every else {}
    return visit.page(
        "changes/changes.html",
        here="changes",
        waiting=[each for each in every if each.status == "PENDING"],
        decided=[each for each in every if each.status != "PENDING"][:SHOWN],
        rule=rule,
        setter=names.get("user_uuid", str)(rule.set_by) if rule.set_by else "",
        title_of=title_of,
        facts_of=lambda change: facts_of(change, names),
        role_names=_role_names(visit),
    )


def _names(visit: Visit) -> dict[str, Callable[[Any], str]]:
    """What the person may read of the workspace's records; the rest keep their numbers."""
    here, ids = visit.here, {"workspace_id": visit.here.id}
    found: dict[str, dict[str, str]] = {}
    if here.may("MANAGE_USERS"):
        members = visit.get("get-users-from-workspace", **ids)
        found["user_uuid"] = {str(each.uuid): name_of(each) for each in members}
    if here.may("MANAGE_ROLE", "MANAGE_USERS", "MANAGE_WORKSPACE"):
        roles = visit.get("get-roles-and-perms-detailed", **ids)
        found["role_id"] = found["role_uid"] = {str(each.role_id): each.name for each in roles}
    if here.may("VIEW_BALANCES", "PAYMENT_INIT", "PAYMENT_APPROVE", "MANAGE_WORKSPACE"):
        found["vault_id"] = {each.id: each.name for each in visit.get("list-wallets", **ids)}
    if here.may("MANAGE_WORKSPACE"):
        found["webhook_id"] = {each.webhook_id: each.url for each in visit.get("webhooks", **ids)}
        found["service_account_id"] = {
            str(each.service_account_id): each.name for each in visit.get("service-accounts", **ids)
        }
    return {field: _namer(known) for field, known in found.items()}


def _namer(known: dict[str, str]) -> Callable[[Any], str]:
    return lambda value: known.get(str(value), f"number {value}")


def _role_names(visit: Visit) -> list[str]:
    if not visit.here.may("MANAGE_ROLE", "MANAGE_USERS", "MANAGE_WORKSPACE"):
        return []
    return [each.name for each in visit.get("get-roles-and-perms-detailed", workspace_id=visit.here.id)]


def _change(visit: Visit) -> Change:
    """Raises NotFound."""
    every: list[Change] = visit.get("changes", workspace_id=visit.here.id)
    for change in every:
        if change.change_id == visit.form.one("change_id"):
            return change
    raise NotFound("There is no such change, or your role does not confirm it.")


def review_confirmation(visit: Visit) -> Review:
    change = _change(visit)
    facts = (
        ("What would change", title_of(change)),
        *facts_of(change, _names(visit)),
        ("Asked for by", change.asked_by_name),
    )
    return Review(
        "Confirm this change?", facts, "Confirm", "It counts at once, in the name of whoever asked."
    )


def confirm(visit: Visit) -> Response:
    visit.post("confirm-change", workspace_id=visit.here.id, change_id=visit.form.one("change_id"))
    return visit.go(f"{visit.here.path}/changes", "The change is made.")


def decline(visit: Visit) -> Response:
    visit.post(
        "decline-change",
        workspace_id=visit.here.id,
        change_id=visit.form.one("change_id"),
        reason=visit.form.one("reason") or None,
    )
    return visit.go(f"{visit.here.path}/changes", "The change is declined.")


def review_rule(visit: Visit) -> Review:
    if not visit.form.ticked("is_on"):
        return Review("Switch the rule off?", (), "Switch it off", "Each member then changes policy alone.")
    facts = (
        ("Who confirms", f"members in the role {visit.form.one('role_name')}"),
        ("Cooling off", f"{visit.number('cooling_off_hours')} hours, where a change lets more pass"),
    )
    warning = "From then on nobody changes roles, limits, members or this rule alone."
    return Review("Switch the rule on?", facts, "Switch it on", warning)


def change_rule(visit: Visit) -> Response:
    is_on = visit.form.ticked("is_on")
    visit.post(
        "update-second-person-rule",
        workspace_id=visit.here.id,
        is_on=is_on,
        role_name=visit.form.one("role_name") if is_on else None,
        cooling_off_hours=visit.number("cooling_off_hours") if is_on else 0,
    )
    return visit.go(f"{visit.here.path}/changes", f"The rule is {'on' if is_on else 'off'}.")


_HERE = "/w/{workspace_id:int}/changes"
ROWS = (
    Row("GET", _HERE, changes),
    Row("POST", _HERE + "/confirm", confirm, again=changes, review=review_confirmation, steps_up=True),
    Row("POST", _HERE + "/decline", decline, again=changes),
    Row("POST", _HERE + "/rule", change_rule, again=changes, review=review_rule, steps_up=True),
)
