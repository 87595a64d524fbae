"""The chain of decisions as a person reads it, with the verdict over all of it."""

from collections.abc import Mapping
from types import MappingProxyType

from starlette.responses import Response

from signerd.errors import InvalidRequest
from signerd.loopback.endpoints import USUAL_ENTRIES
from signerd.loopback.page import rendering
from signerd.loopback.page.request import PageRequest, Row

# As the interface bounds it.
LONGEST_SEARCH = 200
# What a kind of entry says, where its own name does not say it.
KINDS: Mapping[str, str] = MappingProxyType(
    {
        "received": "A proposal came",
        "approved": "Approved",
        "declined": "Declined",
        "judged": "The checks judged it",
        "device-asked": "The device was asked",
        "device-not-ready": "The device was not ready",
        "signed": "The device signed",
        "submitting": "The signature was sent",
        "submitted": "The platform took the signature",
        "undelivered": "The platform could not be reached",
        "turned-down": "The platform did not take the signature",
        "interrupted": "It was not signed",
        "altered": "The proposal was altered",
        "approval-lapsed": "The approval lapsed",
        "verify-failed": "What the device returned was not accepted",
        "restarted": "signerd was started again",
        "registered": "Keys were registered",
        "key-revoked": "A key was revoked",
        "device-screen": "How much a device shows was noted",
        "token-proven": "A token was proven by its deployment",
        "pinned": "A vault was pinned",
        "unpinned": "A vault was unpinned",
        "enrolled": "The device learnt a vault",
        "vault-claim": "The platform showed a vault",
        "vault-changed": "The platform showed a vault otherwise",
        "address-differs": "An address was not the same on the device",
        "signed-in": "Signed in",
        "signed-out": "Signed out",
        "origin-let-in": "A web page was let in to ask",
        "decline-delivered": "The platform was told of the no",
    }
)


def kind_words(kind: str) -> str:
    return KINDS.get(kind, kind.replace("-", " ").capitalize())


async def history(asked: PageRequest) -> Response:
    search, before = asked.query("search").strip(), _place(asked.query("before"))
    if len(search) > LONGEST_SEARCH:
        raise InvalidRequest("search: it is too long", hint="Look for an id, an address or a word.")
    found = await asked.service.history.entries(search=search, limit=USUAL_ENTRIES, after=None, before=before)
    return await asked.page(
        "history.html",
        title="History",
        here="/history",
        search=search,
        before=before,
        found=found,
        kind_words=kind_words,
    )


def _place(text: str) -> int | None:
    """Raises InvalidRequest for what is no place in the chain."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidRequest("before: this is no place in the chain", hint="Go to the newest entries.")
    return int(text)


async def verdict(asked: PageRequest) -> Response:
    """Reading the whole chain takes longer than showing a page of it: the browser asks for it by itself."""
    report = await asked.service.verify_audit()
    return rendering.answer(rendering.render("parts/verdict.html", report=report))


ROWS = (
    Row("GET", "/history", history),
    Row("GET", "/history/verdict", verdict),
)
