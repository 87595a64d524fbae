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
from custody.server.console.table import Review, Row
from custody.server.console.visit import Visit
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


def webhooks(visit: Visit) -> Response:
    return visit.page("webhooks/webhooks.html", here="webhooks", webhooks=_all(visit), kind_words=kind_words)


def new_page(visit: Visit) -> Response:
    return visit.page("webhooks/new.html", here="webhooks", kinds=kinds_by_subject(), kind_words=kind_words)


def webhook_page(visit: Visit) -> Response:
    found = _one(visit)
    after = visit.query("after") or None
    deliveries = visit.ask(
        WEBHOOK_DELIVERIES,
        workspace_id=visit.here.id,
        webhook_id=found.webhook_id,
        after=after,
        limit=PAGE + 1,
    )
    return visit.page(
        "webhooks/webhook.html",
        here="webhooks",
        webhook=found,
        deliveries=deliveries[:PAGE],
        next_after=visit.following(deliveries, PAGE, "delivery_id"),
        after=after,
        kinds=kinds_by_subject(),
        kind_words=kind_words,
    )


def _all(visit: Visit) -> list[Webhook]:
    return visit.ask(WEBHOOKS, workspace_id=visit.here.id)


def _one(visit: Visit) -> Webhook:
    """Raises NotFound."""
    for webhook in _all(visit):
        if webhook.webhook_id == visit.path_param("webhook_id"):
            return webhook
    raise NotFound("There is no such webhook in this workspace.")


def _kinds(visit: Visit) -> list[str]:
    return [EVERY_KIND] if visit.form.ticked("every_kind") else list(visit.form.every("kinds"))


def _kinds_fact(visit: Visit) -> tuple[str, str]:
    return "Events", "; ".join(map(kind_words, _kinds(visit))) or "nothing"


def review_new(visit: Visit) -> Review:
    facts = (("Address", visit.form.one("url")), _kinds_fact(visit))
    return Review(
        "Make this webhook?", facts, "Make the webhook", "Its program will read amounts and addresses."
    )


def create(visit: Visit) -> Response:
    made = visit.act(
        CREATE_WEBHOOK, workspace_id=visit.here.id, url=visit.form.one("url"), kinds=_kinds(visit)
    )
    return visit.page("webhooks/secret.html", here="webhooks", webhook=made)


def review_change(visit: Visit) -> Review:
    found, form = _one(visit), visit.form
    if form.one("do") == "rotate":
        warning = "For a day, deliveries carry the signatures of both secrets."
        return Review("Make a new secret?", (("Address", found.url),), "Make a new secret", warning)
    if form.one("do") in {"enable", "disable"}:
        verb = "on" if form.one("do") == "enable" else "off"
        return Review(f"Switch this webhook {verb}?", (("Address", found.url),), f"Switch it {verb}")
    return Review("Change the events?", (("Address", found.url), _kinds_fact(visit)), "Change the events")


def change(visit: Visit) -> Response:
    do = visit.form.one("do")
    wanted: dict[str, Any] = {"kinds": _kinds(visit)}
    if do == "rotate":
        wanted = {"rotate_secret": True}
    elif do in {"enable", "disable"}:
        wanted = {"enabled": do == "enable"}
    changed = visit.act(
        UPDATE_WEBHOOK, workspace_id=visit.here.id, webhook_id=visit.path_param("webhook_id"), **wanted
    )
    if changed.secret is not None:
        return visit.page("webhooks/secret.html", here="webhooks", webhook=changed)
    return visit.go(visit.request.url.path.removesuffix("/change"), "The webhook is changed.")


def review_deletion(visit: Visit) -> Review:
    warning = "The log of its deliveries goes with it."
    return Review("Delete this webhook?", (("Address", _one(visit).url),), "Delete", warning)


def delete(visit: Visit) -> Response:
    visit.act(DELETE_WEBHOOK, workspace_id=visit.here.id, webhook_id=visit.path_param("webhook_id"))
    return visit.go(f"{visit.here.path}/webhooks", "The webhook is deleted.")


def test(visit: Visit) -> Response:
    visit.act(TEST_WEBHOOK, workspace_id=visit.here.id, webhook_id=visit.path_param("webhook_id"))
    return visit.go(visit.request.url.path.removesuffix("/test"), "A test is on its way: see the deliveries.")


def redeliver(visit: Visit) -> Response:
    visit.act(REDELIVER_WEBHOOK, workspace_id=visit.here.id, delivery_id=visit.form.one("delivery_id"))
    return visit.go(visit.request.url.path.removesuffix("/redeliver"), "It is sent once more.")


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
