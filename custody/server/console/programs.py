"""Accounts of programs: their rights, networks, expiry and secrets, and revoking them."""

from typing import Any

from starlette.responses import Response

from custody.common.change_words import PERMISSION_WORDS
from custody.common.text import count
from custody.schemas.permissions import PermissionName
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
from custody.server.console.table import Review, Row
from custody.server.domain.errors import Invalid, NotFound

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
    return page.render("programs/new.html", permissions=PERMISSION_WORDS)


def program_page(page: PageContext) -> Response:
    return page.render(
        "programs/program.html",
        program=_one(page),
        states=STATES,
        permissions=PERMISSION_WORDS,
        overlap=DEFAULT_OVERLAP_HOURS,
    )


def _all(page: PageContext) -> list[ServiceAccount]:
    return page.read(SERVICE_ACCOUNTS, workspace_id=page.workspace.id)


def _one(page: PageContext) -> ServiceAccount:
    """Raises NotFound."""
    for program in _all(page):
        if program.service_account_id == page.path_param("program_id"):
            return program
    raise NotFound("There is no such program in this workspace.")


def _typed(page: PageContext) -> dict[str, Any]:
    """The form's account as the API takes it. A day ends at its last second in UTC."""
    form = page.form
    day = form.one("expires_on")
    return {
        "name": form.one("name"),
        "rights": list(form.every("rights")),
        "networks": form.one("networks").split(),
        "expires_at": f"{day}T23:59:59Z" if day else "",
    }


def _facts(page: PageContext) -> tuple[tuple[str, object], ...]:
    """Raises Invalid."""
    form = page.form
    try:
        rights = "; ".join(PERMISSION_WORDS[PermissionName(each)] for each in form.every("rights"))
    except ValueError:
        raise Invalid.at("/rights", "Choose rights of the list.") from None
    return (
        ("Name", form.one("name")),
        ("Rights", rights or "none"),
        ("It calls from", ", ".join(form.one("networks").split())),
        ("It ends on", form.one("expires_on")),
    )


def review_new(page: PageContext) -> Review:
    warning = "It acts in your name, with these of your rights, and within your limits."
    return Review("Make this account?", _facts(page), "Make the account", warning)


def create(page: PageContext) -> Response:
    made = page.act(CREATE_SERVICE_ACCOUNT, workspace_id=page.workspace.id, **_typed(page))
    return page.redirect(
        f"{page.workspace.path}/programs/{made.service_account_id}", "The account is made. Make its secret."
    )


def review_change(page: PageContext) -> Review:
    return Review("Change this account?", _facts(page), "Change the account")


def change(page: PageContext) -> Response:
    number = page.path_param("program_id")
    page.act(
        UPDATE_SERVICE_ACCOUNT, workspace_id=page.workspace.id, service_account_id=number, **_typed(page)
    )
    return page.redirect(f"{page.workspace.path}/programs/{number}", "The account is changed.")


def review_secret(page: PageContext) -> Review:
    facts = (
        ("Program", _one(page).name),
        ("The current secret stays valid for", count(page.number("overlap_hours"), "hour", "hours")),
    )
    return Review("Make a new secret?", facts, "Make a new secret", "It is shown once.")


def issue_secret(page: PageContext) -> Response:
    issued = page.act(
        ISSUE_SERVICE_SECRET,
        workspace_id=page.workspace.id,
        service_account_id=page.path_param("program_id"),
        overlap_hours=page.number("overlap_hours"),
    )
    return page.render("programs/secret.html", issued=issued)


def review_end(page: PageContext) -> Review:
    return Review("Revoke this account?", (("Program", _one(page).name),), "Revoke", "At once and for good.")


def revoke(page: PageContext) -> Response:
    page.act(
        REVOKE_SERVICE_ACCOUNT,
        workspace_id=page.workspace.id,
        service_account_id=page.path_param("program_id"),
    )
    return page.redirect(f"{page.workspace.path}/programs", "The account is revoked.")


_HERE = "/w/{workspace_id:int}/programs"
_ONE = _HERE + "/{program_id:int}"
ROWS = (
    Row("GET", _HERE, programs),
    Row("GET", _HERE + "/new", new_page),
    Row(
        "POST",
        _HERE + "/new",
        create,
        again=new_page,
        review=review_new,
        steps_up=True,
        acts=(CREATE_SERVICE_ACCOUNT,),
    ),
    Row("GET", _ONE, program_page),
    Row(
        "POST",
        _ONE + "/change",
        change,
        again=program_page,
        review=review_change,
        steps_up=True,
        acts=(UPDATE_SERVICE_ACCOUNT,),
    ),
    Row(
        "POST",
        _ONE + "/secret",
        issue_secret,
        again=program_page,
        review=review_secret,
        steps_up=True,
        acts=(ISSUE_SERVICE_SECRET,),
    ),
    Row(
        "POST",
        _ONE + "/revoke",
        revoke,
        again=program_page,
        review=review_end,
        steps_up=True,
        acts=(REVOKE_SERVICE_ACCOUNT,),
    ),
)
