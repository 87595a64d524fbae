"""Roles of a workspace: their permissions, and how much each member may propose."""

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from custody.common.change_words import PERMISSION_WORDS
from custody.common.text import count
from custody.schemas.limits import UPDATE_ROLE_POLICIES
from custody.schemas.permissions import PermissionName
from custody.schemas.roles import (
    ADD_PERMISSION_TO_ROLE,
    CREATE_ROLE,
    DELETE_ROLE,
    REMOVE_PERMISSION_FROM_ROLE,
    ROLES,
    UPDATE_ROLE,
    RoleDetails,
)
from custody.server.console.context import PageContext
from custody.server.console.limits import role_limit
from custody.server.console.rendering import role_words
from custody.server.console.table import Review, Row, form, in_force_mark, require_in_force, shown_mark
from custody.server.errors import Invalid


@dataclass(frozen=True)
class ReadyRole:
    """What the form of a new role begins with. ``limit``: in BTC, empty where the person types it."""

    name: str
    description: str
    permissions: frozenset[PermissionName]
    limit: str = "0"


_P = PermissionName
READY_ROLES = (
    ReadyRole(
        "Treasurer",
        "Proposes payments, makes vaults and sets their limits, keeps the address book",
        frozenset({_P.MANAGE_WORKSPACE, _P.PAYMENT_INIT, _P.VIEW_BALANCES}),
        limit="",
    ),
    ReadyRole(
        "Approver",
        "Approves payments with a device of their own, freezes vaults",
        frozenset({_P.PAYMENT_APPROVE, _P.VIEW_BALANCES}),
    ),
    ReadyRole(
        "Auditor",
        "Sees balances and payments, reads the audit log, changes nothing",
        frozenset({_P.VIEW_BALANCES, _P.VIEW_LOGS}),
    ),
)
_EMPTY = ReadyRole("", "", frozenset(), limit="")


def roles(page: PageContext) -> Response:
    return page.render("roles/roles.html", roles=_roles(page))


def new_role_page(page: PageContext) -> Response:
    begun = {each.name: each for each in READY_ROLES}.get(page.query("as"), _EMPTY)
    return page.render("roles/new.html", permissions=PERMISSION_WORDS, ready=READY_ROLES, begun=begun)


def role_page(page: PageContext) -> Response:
    role = _role(page)
    return page.render(
        "roles/role.html",
        role=role,
        held={permission.rule_name for permission in role.perm},
        permissions=PERMISSION_WORDS,
        in_force_mark=in_force_mark(page, _limit_in_force(role)),
    )


def _limit_in_force(role: RoleDetails) -> dict[str, Any]:
    """In the shape of `role_limit`."""
    cycle = {"cycle_period": role.cycle_period, "cycle_day": role.cycle_day}
    return {"new_transaction_limit": role.transaction_limit, **cycle}


def _roles(page: PageContext) -> list[RoleDetails]:
    return page.read(ROLES, workspace_id=page.workspace.id)


def _role(page: PageContext) -> RoleDetails:
    """Raises NotFound."""
    return page.one_of(_roles(page), "role_id", "role_id", "There is no such role in this workspace.")


def _holders(role: RoleDetails) -> str:
    return f"It applies at once, to {count(role.members, 'member', 'members')}."


def _role_words(typed: dict[str, Any], name: str) -> str:
    return role_words(typed[name], typed["cycle_period"], typed["cycle_day"])


# --- making, naming, deleting -------------------------------------------------------------------------------


def _wanted(page: PageContext) -> list[PermissionName]:
    """Raises Invalid."""
    try:
        return [PermissionName(each) for each in page.form.every("permissions")]
    except ValueError:
        raise Invalid.at("/permissions", "Choose permissions of the list.") from None


def review_new(page: PageContext) -> Review:
    allowed = "; ".join(PERMISSION_WORDS[each] for each in _wanted(page)) or "nothing"
    facts = (
        ("Name", page.form.one("name")),
        ("It allows", allowed),
        ("Each member may propose", _role_words(role_limit(page, "transaction_limit"), "transaction_limit")),
    )
    return Review("Make this role?", facts, "Make the role")


def review_name(page: PageContext) -> Review:
    facts = (
        ("Current name", _role(page).name),
        ("New name", page.form.one("name")),
        ("Description", page.form.one("description")),
    )
    return Review("Change this role's name?", facts, "Change the name")


def review_deletion(page: PageContext) -> Review:
    return Review("Delete this role?", (("Role", _role(page).name),), "Delete")


# --- permissions and limit ----------------------------------------------------------------------------------


def _permission(page: PageContext) -> PermissionName:
    try:
        return PermissionName(page.form.one("rule_name"))
    except ValueError:
        raise Invalid.at("/rule_name", "Choose a permission of the list.") from None


def review_permission(page: PageContext) -> Review:
    role, words = _role(page), PERMISSION_WORDS[_permission(page)]
    title, action = "Add this permission?", "Add it"
    if page.form.one("do") == "take":
        title, action = "Take this permission away?", "Take it away"
    return Review(title, (("Role", role.name), ("Permission", words)), action, _holders(role))


def change_permission(page: PageContext) -> Response:
    if page.form.one("do") == "take":
        page.submit(REMOVE_PERMISSION_FROM_ROLE)
        done = "The permission is taken away."
    else:
        page.submit(ADD_PERMISSION_TO_ROLE)
        done = "The permission is added."
    return page.redirect(page.request.url.path.removesuffix("/permission"), done)


def review_limit(page: PageContext) -> Review:
    role = _role(page)
    typed, now = role_limit(page, "new_transaction_limit"), _limit_in_force(role)
    require_in_force(page, now, typed)
    before = role.limit_error or role_words(
        role.transaction_limit or "0", role.cycle_period or "M", role.cycle_day or 1
    )
    return Review(
        "Change this limit?",
        (
            ("Role", role.name),
            ("Each member may propose now", before),
            ("From now on", _role_words(typed, "new_transaction_limit")),
        ),
        "Change the limit",
        _holders(role),
        pinned=(shown_mark(now),),
    )


_HERE = "/w/{workspace_id:int}/roles"
_ONE = _HERE + "/{role_id:int}"
ROWS = (
    Row("GET", _HERE, roles),
    Row("GET", _HERE + "/new", new_role_page),
    form(
        _HERE + "/new", CREATE_ROLE, new_role_page, "The role is made.", review=review_new, steps_up=True,
        given=lambda page: role_limit(page, "transaction_limit"),
    ),
    Row("GET", _ONE, role_page),
    form(
        _ONE + "/name", UPDATE_ROLE, role_page, "The name is changed.", review=review_name, steps_up=True,
    ),
    form(
        _ONE + "/delete", DELETE_ROLE, role_page, "The role is deleted.", to="roles", review=review_deletion,
        steps_up=True,
    ),
    Row(
        "POST", _ONE + "/permission", change_permission, again=role_page, review=review_permission,
        steps_up=True, acts=(ADD_PERMISSION_TO_ROLE, REMOVE_PERMISSION_FROM_ROLE),
    ),
    form(
        _ONE + "/limit", UPDATE_ROLE_POLICIES, role_page, "The limit is changed.", review=review_limit,
        steps_up=True, given=lambda page: role_limit(page, "new_transaction_limit"),
    ),
)  # fmt: skip
