"""The programs of a workspace: their accounts, with rights, networks, expiry and secrets; and webhooks, by
which programs on the Internet receive its events.
"""

from datetime import datetime
from typing import Any

from custody.common.text import minute
from custody.schemas.call import PERMISSION_WORDS
from custody.schemas.service_accounts import (
    CREATE_SERVICE_ACCOUNT,
    DEFAULT_OVERLAP_HOURS,
    ISSUE_SERVICE_SECRET,
    REVOKE_SERVICE_ACCOUNT,
    SERVICE_ACCOUNTS,
    UPDATE_SERVICE_ACCOUNT,
)
from custody.schemas.webhooks import (
    CREATE_WEBHOOK,
    DELETE_WEBHOOK,
    EVERY_KIND,
    REDELIVER_WEBHOOK,
    TEST_WEBHOOK,
    UPDATE_WEBHOOK,
    WEBHOOK_DELIVERIES,
    WEBHOOKS,
    EventKind,
)
from custody.server.console.context import PageContext
from custody.server.console.reviews import Facts
from custody.server.console.table import Row, entry_of, form, template_view
from custody.server.rules.credentials import NEVER_GIVEN
from custody.server.webhooks.calls import checked_url

RIGHTS = {name: words for name, words in PERMISSION_WORDS.items() if name not in NEVER_GIVEN}


_program = entry_of(SERVICE_ACCOUNTS, "service_account_id", "There is no such program in this workspace.")
programs = template_view("programs/programs.html", programs=SERVICE_ACCOUNTS)
new_page = template_view("programs/new.html", permissions=RIGHTS)
program_page = template_view(
    "programs/program.html", program=_program, permissions=RIGHTS,
    overlap=DEFAULT_OVERLAP_HOURS,
)  # fmt: skip


def _valid_secrets(page: PageContext) -> Facts:
    """Two are valid at a time: a new one ends the older of two."""
    program = _program(page)
    if program.status == "WAITING":
        return (("Valid secrets", "none yet"),)
    return _valid(program.former_secret_until)


def _valid(former_until: datetime | None) -> Facts:
    words = "one" if former_until is None else f"two, the former one until {minute(former_until)}"
    return (("Valid secrets", words),)


def _ending(former_until: datetime | None) -> str:
    if former_until is None:
        return ""
    until = minute(former_until)
    return f" The former secret, valid until {until}, ends at once: see first that nothing uses it."


def _typed(page: PageContext) -> dict[str, Any]:
    """A day ends at its last second in UTC."""
    day = page.form.one("expires_on")
    return {
        "networks": page.form.one("networks").split(),
        "expires_at": f"{day}T23:59:59Z" if day else "",
    }


# --- webhooks -----------------------------------------------------------------------------------------------

TWO_SECRETS = "For a day, deliveries carry the signatures of both secrets."
# Where the plural of a kind's subject does not say enough.
ABOUT = {"call": "Calls of tokens", "change": "Changes that need a second person"}
# The kinds that a person chooses from, by subject; a ping is sent by its own button, and a
# vault's controls say what screens it.
KINDS: dict[str, list[str]] = {}
for _kind in EventKind:
    if _kind not in {EventKind.PING, EventKind.PROPOSAL_SCREENING}:
        _subject = _kind.partition(".")[0]
        KINDS.setdefault(ABOUT.get(_subject, f"{_subject.capitalize()}s"), []).append(_kind.value)
_webhook = entry_of(WEBHOOKS, "webhook_id", "There is no such webhook in this workspace.")
webhooks = template_view("webhooks/webhooks.html", webhooks=WEBHOOKS)
new_hook_page = template_view("webhooks/new.html", kinds=KINDS)


webhook_page = template_view(
    "webhooks/webhook.html", kinds=KINDS, webhook=_webhook,
    deliveries=lambda page: page.read_page(WEBHOOK_DELIVERIES, webhook_id=page.path_param("webhook_id")),
)  # fmt: skip


def _new_hook(page: PageContext) -> dict[str, Any]:
    """Raises Invalid."""
    url = checked_url(page.form.one("url"), page.services.tools.webhook_hosts)
    return {"url": url, "kinds": _kinds(page)}


def _kinds(page: PageContext) -> list[str]:
    return [EVERY_KIND] if page.form.ticked("every_kind") else list(page.form.every("kinds"))


def _old_until(page: PageContext) -> datetime | None:
    ends = _webhook(page).old_secret_until
    return None if ends is None or ends <= page.services.tools.clock() else ends


def _rotates(page: PageContext) -> bool:
    return page.form.one("do") == "rotate"


def _change(page: PageContext) -> dict[str, Any]:
    """What the button of the form changes, and nothing else."""
    button = page.form.one("do")
    return {
        "kinds": None if button in {"rotate", "enable", "disable"} else _kinds(page),
        "enabled": button == "enable" if button in {"enable", "disable"} else None,
        "rotate_secret": button == "rotate",
    }


_HERE = "/w/{workspace_id:int}/programs"
_ONE = _HERE + "/{service_account_id:int}"
_HOOKS = "/w/{workspace_id:int}/webhooks"
_HOOK = _HOOKS + "/{webhook_id}"
ROWS = (
    Row("GET", _HERE, programs),
    form(
        _HERE + "/new", CREATE_SERVICE_ACCOUNT, new_page, "The account is made. Make its secret.",
        to="programs/{0.service_account_id}", asks="Make the account", given=_typed,
        warns="It acts in your name, with these of your rights, and within your limits.", has_page=True,
    ),
    Row("GET", _ONE, program_page),
    form(
        _ONE + "/change", UPDATE_SERVICE_ACCOUNT, program_page, "The account is changed.",
        asks="Change the account", given=_typed,
    ),
    form(
        _ONE + "/secret", ISSUE_SERVICE_SECRET, program_page, "", asks="Make a new secret",
        warns=lambda page: f"It is shown once.{_ending(_program(page).former_secret_until)}",
        bound=_valid_secrets, steps_up=True, shows="programs/secret.html",
    ),
    form(
        _ONE + "/revoke", REVOKE_SERVICE_ACCOUNT, program_page, "The account is revoked.", to="programs",
        asks="Revoke", warns="At once and for good.", steps_up=True,
    ),
    Row("GET", _HOOKS, webhooks),
    form(
        _HOOKS + "/new", CREATE_WEBHOOK, new_hook_page, "", asks="Make the webhook",
        warns="Its program will read amounts and addresses.", given=_new_hook,
        shows="webhooks/secret.html", has_page=True,
    ),
    Row("GET", _HOOK, webhook_page),
    form(
        _HOOK + "/change", UPDATE_WEBHOOK, webhook_page, "The webhook is changed.", asks="Change it",
        warns=lambda page: TWO_SECRETS + _ending(_old_until(page)) if _rotates(page) else "",
        bound=lambda page: _valid(_old_until(page)) if _rotates(page) else (),
        given=_change, shows="webhooks/secret.html",
    ),
    form(
        _HOOK + "/delete", DELETE_WEBHOOK, webhook_page, "The webhook is deleted.", to="webhooks",
        asks="Delete", warns="The log of its deliveries goes with it.",
    ),
    form(_HOOK + "/test", TEST_WEBHOOK, webhook_page, "A test is on its way: see the deliveries."),
    form(_HOOK + "/redeliver", REDELIVER_WEBHOOK, webhook_page, "It is sent once more."),
)  # fmt: skip
