"""Roles of a workspace: their permissions, and how much each member may propose."""

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from custody.common.text import count
from custody.schemas import roles as wire
from custody.schemas.call import PERMISSION_WORDS, PermissionName
from custody.schemas.limits import UPDATE_ROLE_POLICIES
from custody.server.console.context import PageContext
from custody.server.console.limits import role_limit
from custody.server.console.reviews import in_force_mark
from custody.server.console.table import Row, entry_of, form, template_view


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
        "Proposes payments up to its limit, keeps the address book, manages vaults",
        frozenset({_P.MANAGE_WORKSPACE, _P.PAYMENT_INIT, _P.VIEW_BALANCES}),
        limit="",
    ),
    ReadyRole(
        "Vault manager",
        "Makes vaults, sets their limits, invites members. Proposes no payment: its limit is 0",
        frozenset({_P.MANAGE_WORKSPACE, _P.MANAGE_USERS, _P.VIEW_BALANCES}),
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
# One permission is for both: to propose payments, and to change what bounds them.
_LIFTS = (
    "Its members can also lift every vault's limits and controls: alone, unless the rule of the second "
    "person is on."
)


roles = template_view("roles/roles.html", roles=wire.ROLES)
_role = entry_of(wire.ROLES, "role_id", "There is no such role in this workspace.")


def new_role_page(page: PageContext) -> Response:
    begun = {each.name: each for each in READY_ROLES}.get(page.query("as"), _EMPTY)
    return page.render("roles/new.html", permissions=PERMISSION_WORDS, ready=READY_ROLES, begun=begun)


def _limit_in_force(page: PageContext) -> dict[str, Any]:
    """As the form sends it."""
    role = _role(page)
    cycle = {"cycle_period": role.cycle_period, "cycle_day": role.cycle_day}
    return {"new_transaction_limit": role.transaction_limit, **cycle}


role_page = template_view(
    "roles/role.html", role=_role, permissions=PERMISSION_WORDS, lifts=_LIFTS,
    in_force_mark=lambda page: in_force_mark(page, _limit_in_force(page)),
)  # fmt: skip


def _lifts(page: PageContext) -> str:
    return _LIFTS if _P.MANAGE_WORKSPACE in page.form.every("permissions") else ""


def _holders(page: PageContext) -> str:
    return f"It applies at once, to {count(_role(page).members, 'member', 'members')}."


_HERE = "/w/{workspace_id:int}/roles"
_ONE = _HERE + "/{role_id:int}"
ROWS = (
    Row("GET", _HERE, roles),
    form(
        _HERE + "/new", wire.CREATE_ROLE, new_role_page, "The role is made.", asks="Make the role",
        warns=_lifts,
        given=lambda page: role_limit(page, "transaction_limit"), has_page=True,
    ),
    Row("GET", _ONE, role_page),
    form(_ONE + "/name", wire.UPDATE_ROLE, role_page, "The name is changed.", asks="Change the name"),
    form(_ONE + "/delete", wire.DELETE_ROLE, role_page, "The role is deleted.", to="roles", asks="Delete"),
    form(
        _ONE + "/add", wire.ADD_PERMISSION_TO_ROLE, role_page, "The permission is added.", asks="Add it",
        warns=_holders,
    ),
    form(
        _ONE + "/take", wire.REMOVE_PERMISSION_FROM_ROLE, role_page, "The permission is taken away.",
        asks="Take it away", warns=_holders,
    ),
    form(
        _ONE + "/limit", UPDATE_ROLE_POLICIES, role_page, "The limit is changed.", asks="Change the limit",
        warns=_holders, in_force=_limit_in_force,
        given=lambda page: role_limit(page, "new_transaction_limit"),
    ),
)  # fmt: skip
