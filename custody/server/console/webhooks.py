"""Webhooks: programs on the Internet that receive a workspace's events."""

from typing import Any

from starlette.responses import Response

from custody.common.change_words import kind_words
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
    Webhook,
)
from custody.server.console.context import PageContext
from custody.server.console.table import Row, form

# Of a webhook's deliveries on one page.
PAGE = 25
TWO_SECRETS = "For a day, deliveries carry the signatures of both secrets."
ABOUT = {
    "proposal": "Proposals",
    "deposit": "Deposits",
    "vault": "Vaults",
    "role": "Roles",
    "token": "Tokens",
    "call": "Calls of tokens",
    "change": "Changes that need a second person",
    "member": "Members",
    "key": "Keys",
}


def kinds_by_subject() -> dict[str, list[str]]:
    """The kinds that a person chooses from; a ping is sent by its own button."""
    found: dict[str, list[str]] = {}
    for kind in EventKind:
        if kind is not EventKind.PING:
            found.setdefault(ABOUT[kind.partition(".")[0]], []).append(kind.value)
    return found


def webhooks(page: PageContext) -> Response:
    return page.render("webhooks/webhooks.html", webhooks=_all(page), kind_words=kind_words)


def new_page(page: PageContext) -> Response:
    return page.render("webhooks/new.html", kinds=kinds_by_subject(), kind_words=kind_words)


def webhook_page(page: PageContext) -> Response:
    webhook, after = _one(page), page.query("after") or None
    wanted = {"workspace_id": page.workspace.id, "webhook_id": webhook.webhook_id, "after": after}
    deliveries, next_after = page.read_page(WEBHOOK_DELIVERIES, wanted, limit=PAGE)
    return page.render(
        "webhooks/webhook.html",
        webhook=webhook,
        deliveries=deliveries,
        next_after=next_after,
        after=after,
        kinds=kinds_by_subject(),
        kind_words=kind_words,
    )


def _all(page: PageContext) -> list[Webhook]:
    return page.read(WEBHOOKS, workspace_id=page.workspace.id)


def _one(page: PageContext) -> Webhook:
    """Raises NotFound."""
    return page.one_of(_all(page), "webhook_id", "webhook_id", "There is no such webhook in this workspace.")


def _kinds(page: PageContext) -> list[str]:
    return [EVERY_KIND] if page.form.ticked("every_kind") else list(page.form.every("kinds"))


def _change(page: PageContext) -> dict[str, Any]:
    """What the button of the form changes, and nothing else."""
    match page.form.one("do"):
        case "rotate":
            wanted: dict[str, Any] = {"rotate_secret": True}
        case "enable" | "disable" as verb:
            wanted = {"enabled": verb == "enable"}
        case _:
            wanted = {"kinds": _kinds(page)}
    return {"kinds": None, "enabled": None, "rotate_secret": False, **wanted}


_HERE = "/w/{workspace_id:int}/webhooks"
_ONE = _HERE + "/{webhook_id}"
ROWS = (
    Row("GET", _HERE, webhooks),
    Row("GET", _HERE + "/new", new_page),
    form(
        _HERE + "/new", CREATE_WEBHOOK, new_page, "", asks="Make the webhook", steps_up=True,
        warns="Its program will read amounts and addresses.", given=lambda page: {"kinds": _kinds(page)},
        shows="webhooks/secret.html",
    ),
    Row("GET", _ONE, webhook_page),
    form(
        _ONE + "/change", UPDATE_WEBHOOK, webhook_page, "The webhook is changed.", asks="Change it",
        warns=lambda page: TWO_SECRETS if page.form.one("do") == "rotate" else "", steps_up=True,
        given=_change, shows="webhooks/secret.html",
    ),
    form(
        _ONE + "/delete", DELETE_WEBHOOK, webhook_page, "The webhook is deleted.", to="webhooks",
        asks="Delete", warns="The log of its deliveries goes with it.", steps_up=True,
    ),
    form(_ONE + "/test", TEST_WEBHOOK, webhook_page, "A test is on its way: see the deliveries."),
    form(_ONE + "/redeliver", REDELIVER_WEBHOOK, webhook_page, "It is sent once more."),
)  # fmt: skip
