"""Accounts of programs: their rights, networks, expiry and secrets, and revoking them."""

from typing import Any

from starlette.responses import Response

from custody.common.change_words import PERMISSION_WORDS
from custody.schemas.service_accounts import (
    CREATE_SERVICE_ACCOUNT,
    DEFAULT_OVERLAP_HOURS,
    ISSUE_SERVICE_SECRET,
    REVOKE_SERVICE_ACCOUNT,
    SERVICE_ACCOUNTS,
    UPDATE_SERVICE_ACCOUNT,
    ServiceAccount,
)
from custody.server.console.context import PageContext
from custody.server.console.table import Row, form
from custody.server.rules.credentials import NEVER_GIVEN

RIGHTS = {name: words for name, words in PERMISSION_WORDS.items() if name not in NEVER_GIVEN}
STATES = {
    "WAITING": "has no secret yet",
    "ACTIVE": "active",
    "IDLE": "idle: its maker is no longer a member",
    "EXPIRED": "ended",
    "REVOKED": "revoked",
}


def programs(page: PageContext) -> Response:
    return page.render("programs/programs.html", programs=_all(page), states=STATES)


def new_page(page: PageContext) -> Response:
    return page.render("programs/new.html", permissions=RIGHTS)


def program_page(page: PageContext) -> Response:
    return page.render(
        "programs/program.html",
        program=_one(page),
        states=STATES,
        permissions=RIGHTS,
        overlap=DEFAULT_OVERLAP_HOURS,
    )


def _all(page: PageContext) -> list[ServiceAccount]:
    return page.read(SERVICE_ACCOUNTS, workspace_id=page.workspace.id)


def _one(page: PageContext) -> ServiceAccount:
    """Raises NotFound."""
    words = "There is no such program in this workspace."
    return page.one_of(_all(page), "service_account_id", "service_account_id", words)


def _typed(page: PageContext) -> dict[str, Any]:
    """A day ends at its last second in UTC."""
    day = page.form.one("expires_on")
    return {
        "networks": page.form.one("networks").split(),
        "expires_at": f"{day}T23:59:59Z" if day else "",
    }


_HERE = "/w/{workspace_id:int}/programs"
_ONE = _HERE + "/{service_account_id:int}"
ROWS = (
    Row("GET", _HERE, programs),
    Row("GET", _HERE + "/new", new_page),
    form(
        _HERE + "/new", CREATE_SERVICE_ACCOUNT, new_page, "The account is made. Make its secret.",
        to="programs/{0.service_account_id}", asks="Make the account", steps_up=True, given=_typed,
        warns="It acts in your name, with these of your rights, and within your limits.",
    ),
    Row("GET", _ONE, program_page),
    form(
        _ONE + "/change", UPDATE_SERVICE_ACCOUNT, program_page, "The account is changed.",
        asks="Change the account", steps_up=True, given=_typed,
    ),
    form(
        _ONE + "/secret", ISSUE_SERVICE_SECRET, program_page, "", asks="Make a new secret",
        warns="It is shown once.", steps_up=True, shows="programs/secret.html",
    ),
    form(
        _ONE + "/revoke", REVOKE_SERVICE_ACCOUNT, program_page, "The account is revoked.", to="programs",
        asks="Revoke", warns="At once and for good.", steps_up=True,
    ),
)  # fmt: skip
