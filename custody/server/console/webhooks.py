"""Webhooks: programs on the Internet that receive a workspace's events."""

from typing import Any

from starlette.responses import Response

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
from custody.server.console.table import Review, Row, form

# Of a webhook's deliveries on one page.
PAGE = 25
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


def kind_words(kind: str) -> str:
    """``deposit.seen`` in words; kinds of a newer platform, too."""
    if kind == EVERY_KIND:
        return "all events"
    about, _, what = kind.partition(".")
    return f"{about.replace('_', ' ')} {what.replace('_', ' ')}".strip()


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


def _kinds_fact(page: PageContext) -> tuple[str, str]:
    return "Events", "; ".join(map(kind_words, _kinds(page))) or "nothing"


def review_new(page: PageContext) -> Review:
    facts = (("Address", page.form.one("url")), _kinds_fact(page))
    return Review(
        "Make this webhook?", facts, "Make the webhook", "Its program will read amounts and addresses."
    )


def create(page: PageContext) -> Response:
    return page.render("webhooks/secret.html", webhook=page.submit(CREATE_WEBHOOK, kinds=_kinds(page)))


def review_change(page: PageContext) -> Review:
    found, form = _one(page), page.form
    if form.one("do") == "rotate":
        warning = "For a day, deliveries carry the signatures of both secrets."
        return Review("Make a new secret?", (("Address", found.url),), "Make a new secret", warning)
    if form.one("do") in {"enable", "disable"}:
        verb = "on" if form.one("do") == "enable" else "off"
        return Review(f"Switch this webhook {verb}?", (("Address", found.url),), f"Switch it {verb}")
    return Review("Change the events?", (("Address", found.url), _kinds_fact(page)), "Change the events")


def change(page: PageContext) -> Response:
    do = page.form.one("do")
    wanted: dict[str, Any] = {"kinds": _kinds(page)}
    if do == "rotate":
        wanted = {"rotate_secret": True}
    elif do in {"enable", "disable"}:
        wanted = {"enabled": do == "enable"}
    ids = {"workspace_id": page.workspace.id, "webhook_id": page.path_param("webhook_id")}
    changed = page.act(UPDATE_WEBHOOK, **ids, **wanted)
    if changed.secret is not None:
        return page.render("webhooks/secret.html", webhook=changed)
    return page.redirect(page.request.url.path.removesuffix("/change"), "The webhook is changed.")


def review_deletion(page: PageContext) -> Review:
    warning = "The log of its deliveries goes with it."
    return Review("Delete this webhook?", (("Address", _one(page).url),), "Delete", warning)


_HERE = "/w/{workspace_id:int}/webhooks"
_ONE = _HERE + "/{webhook_id}"
ROWS = (
    Row("GET", _HERE, webhooks),
    Row("GET", _HERE + "/new", new_page),
    Row(
        "POST", _HERE + "/new", create, again=new_page, review=review_new, steps_up=True,
        acts=(CREATE_WEBHOOK,),
    ),
    Row("GET", _ONE, webhook_page),
    Row(
        "POST", _ONE + "/change", change, again=webhook_page, review=review_change, steps_up=True,
        acts=(UPDATE_WEBHOOK,),
    ),
    form(
        _ONE + "/delete", DELETE_WEBHOOK, webhook_page, "The webhook is deleted.", to="webhooks",
        review=review_deletion, steps_up=True,
    ),
    form(_ONE + "/test", TEST_WEBHOOK, webhook_page, "A test is on its way: see the deliveries."),
    form(_ONE + "/redeliver", REDELIVER_WEBHOOK, webhook_page, "It is sent once more."),
)  # fmt: skip
