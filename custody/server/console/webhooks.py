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
from custody.server.console.table import Review, Row
from custody.server.domain.errors import NotFound

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
    found = _one(page)
    after = page.query("after") or None
    deliveries = page.read(
        WEBHOOK_DELIVERIES,
        workspace_id=page.workspace.id,
        webhook_id=found.webhook_id,
        after=after,
        limit=PAGE + 1,
    )
    return page.render(
        "webhooks/webhook.html",
        webhook=found,
        deliveries=deliveries[:PAGE],
        next_after=page.following(deliveries, PAGE, "delivery_id"),
        after=after,
        kinds=kinds_by_subject(),
        kind_words=kind_words,
    )


def _all(page: PageContext) -> list[Webhook]:
    return page.read(WEBHOOKS, workspace_id=page.workspace.id)


def _one(page: PageContext) -> Webhook:
    """Raises NotFound."""
    for webhook in _all(page):
        if webhook.webhook_id == page.path_param("webhook_id"):
            return webhook
    raise NotFound("There is no such webhook in this workspace.")


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
    made = page.act(
        CREATE_WEBHOOK, workspace_id=page.workspace.id, url=page.form.one("url"), kinds=_kinds(page)
    )
    return page.render("webhooks/secret.html", webhook=made)


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
    changed = page.act(
        UPDATE_WEBHOOK, workspace_id=page.workspace.id, webhook_id=page.path_param("webhook_id"), **wanted
    )
    if changed.secret is not None:
        return page.render("webhooks/secret.html", webhook=changed)
    return page.redirect(page.request.url.path.removesuffix("/change"), "The webhook is changed.")


def review_deletion(page: PageContext) -> Review:
    warning = "The log of its deliveries goes with it."
    return Review("Delete this webhook?", (("Address", _one(page).url),), "Delete", warning)


def delete(page: PageContext) -> Response:
    page.act(DELETE_WEBHOOK, workspace_id=page.workspace.id, webhook_id=page.path_param("webhook_id"))
    return page.redirect(f"{page.workspace.path}/webhooks", "The webhook is deleted.")


def test(page: PageContext) -> Response:
    page.act(TEST_WEBHOOK, workspace_id=page.workspace.id, webhook_id=page.path_param("webhook_id"))
    return page.redirect(
        page.request.url.path.removesuffix("/test"), "A test is on its way: see the deliveries."
    )


def redeliver(page: PageContext) -> Response:
    page.act(REDELIVER_WEBHOOK, workspace_id=page.workspace.id, delivery_id=page.form.one("delivery_id"))
    return page.redirect(page.request.url.path.removesuffix("/redeliver"), "It is sent once more.")


_HERE = "/w/{workspace_id:int}/webhooks"
_ONE = _HERE + "/{webhook_id}"
ROWS = (
    Row("GET", _HERE, webhooks),
    Row("GET", _HERE + "/new", new_page),
    Row(
        "POST",
        _HERE + "/new",
        create,
        again=new_page,
        review=review_new,
        steps_up=True,
        acts=(CREATE_WEBHOOK,),
    ),
    Row("GET", _ONE, webhook_page),
    Row(
        "POST",
        _ONE + "/change",
        change,
        again=webhook_page,
        review=review_change,
        steps_up=True,
        acts=(UPDATE_WEBHOOK,),
    ),
    Row(
        "POST",
        _ONE + "/delete",
        delete,
        again=webhook_page,
        review=review_deletion,
        steps_up=True,
        acts=(DELETE_WEBHOOK,),
    ),
    Row("POST", _ONE + "/test", test, again=webhook_page, acts=(TEST_WEBHOOK,)),
    Row("POST", _ONE + "/redeliver", redeliver, again=webhook_page, acts=(REDELIVER_WEBHOOK,)),
)
