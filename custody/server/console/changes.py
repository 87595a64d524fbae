"""The rule of the second person, and the changes that wait for one."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from starlette.responses import Response

from custody.schemas.changes import Change, SecondPersonRule
from custody.server.console.addresses import entry_of
from custody.server.console.change_words import Namer, facts_of, names_nothing, title_of
from custody.server.console.evacuations import plan_facts
from custody.server.console.members import colleagues, name_of
from custody.server.console.table import Review, Row
from custody.server.console.vaults import fingerprints, names_of, vault_by_id
from custody.server.console.visit import Visit
from custody.server.domain.errors import NotFound, StateConflict
from custody.server.service.people.second_person import START_EVACUATION

# Of those that are decided.
SHOWN = 20


def changes(visit: Visit) -> Response:
    every: list[Change] = visit.get("changes", workspace_id=visit.here.id)
    rule: SecondPersonRule = visit.get("second-person-rule", workspace_id=visit.here.id)
    names = _names(visit)
    return visit.page(
        "changes/changes.html",
        here="changes",
        waiting=[each for each in every if each.status == "PENDING"],
        decided=[each for each in every if each.status != "PENDING"][:SHOWN],
        rule=rule,
        setter=names["user_uuid"](rule.set_by) if rule.set_by and "user_uuid" in names else "",
        title_of=title_of,
        facts_of=lambda change: facts_of(change, _workspace(visit, change), _of(visit, change, names)),
        names_nothing=lambda change: names_nothing(change, _of(visit, change, names)),
        role_names=_role_names(visit),
    )


def _workspace(visit: Visit, change: Change) -> str:
    """The change's own, which need not be the one that the page is of."""
    for entry in visit.here.organisation.workspaces.workspaces:
        if entry.workspace_info.uid == change.workspace_id:
            return f"{entry.workspace_info.name}, on {entry.workspace_info.net}"
    return f"number {change.workspace_id}, on {change.network}: you are no member of it"


def _of(visit: Visit, change: Change, names: Mapping[str, Namer]) -> Mapping[str, Namer]:
    """Numbers of another workspace are other records: they stay numbers."""
    if change.workspace_id != visit.here.id:
        return {}
    if change.path.endswith("/add-workspace-to-user"):
        # No member yet, and perhaps of no workspace that the person may look into.
        known = {each.uuid: name_of(each) for each in colleagues(visit)}
        return {**names, "user_uuid": lambda number: known.get(number, f"number {number}")}
    return names


def _names(visit: Visit) -> dict[str, Namer]:
    """What the person may read of the workspace's records, asked for where it is named; the rest keep their
    numbers.
    """
    here = visit.here
    found: dict[str, Namer] = {}
    if here.may("MANAGE_USERS"):
        found["user_uuid"] = _listed(visit, "get-users-from-workspace", "uuid", name_of)
    if here.may("MANAGE_ROLE", "MANAGE_USERS", "MANAGE_WORKSPACE"):
        roles = _listed(visit, "get-roles-and-perms-detailed", "role_id", lambda role: role.name)
        found["role_id"] = found["role_uid"] = roles
    if here.may("VIEW_BALANCES", "PAYMENT_INIT", "PAYMENT_APPROVE", "MANAGE_WORKSPACE"):
        found["vault_id"], found["key_id"] = _vaults(visit), _keys(visit)
    if here.may("PAYMENT_INIT", "MANAGE_WORKSPACE"):
        found["uid"] = _entries(visit)
    if here.may("MANAGE_WORKSPACE"):
        found["webhook_id"] = _listed(visit, "webhooks", "webhook_id", lambda hook: hook.url)
        programs = _listed(visit, "service-accounts", "service_account_id", lambda program: program.name)
        found["service_account_id"] = programs
    return found


def _listed(visit: Visit, path: str, number: str, name: Callable[[Any], str]) -> Namer:
    """Of a short list, which is asked for once."""

    @cache
    def known() -> dict[str, str]:
        every = visit.get(path, workspace_id=visit.here.id)
        return {str(getattr(each, number)): name(each) for each in every}

    return lambda value: known().get(str(value))


def _vaults(visit: Visit) -> Namer:
    @cache
    def named(vault_id: str) -> str | None:
        try:
            return vault_by_id(visit, vault_id).name
        except NotFound:
            return None

    return named


def _entries(visit: Visit) -> Namer:
    @cache
    def named(number: int) -> str | None:
        found = entry_of(visit, number)
        return None if found is None else f"{found.name}, {found.address}"

    return named


def _keys(visit: Visit) -> Namer:
    """Of the signers of the workspace's vaults. A key is never deleted."""

    @cache
    def known() -> dict[str, str]:
        found: dict[str, str] = {}
        for vault in visit.get("list-wallets", workspace_id=visit.here.id):
            names, prints = names_of(visit, vault), fingerprints(vault)
            for each in vault.signers:
                found[each.key_id] = f"of {names[each.user_id]}, fingerprint {prints[each.key_index]}"
        return found

    return lambda value: known().get(value, f"number {value}, which no vault of this workspace has")


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
    names = _of(visit, change, _names(visit))
    if names_nothing(change, names):
        raise StateConflict("It names what is not there any more: decline it.")
    workspace, *said = facts_of(change, _workspace(visit, change), names)
    facts = (
        workspace,
        ("What would change", title_of(change)),
        *said,
        ("Asked for by", change.asked_by_name),
    )
    if change.path == START_EVACUATION and change.workspace_id == visit.here.id:
        facts = (*facts, *plan_facts(visit, change.body))
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
