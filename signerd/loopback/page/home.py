"""The list of proposals; and the live part with messages about one device, vault or registration."""

from typing import Any

from starlette.responses import Response

from custody.common.pages.rendering import Live
from signerd.api.account import EventsApi
from signerd.core.states import ASKED, DELIVERED, ON_THE_WAY
from signerd.errors import InvalidRequest
from signerd.loopback.page.rendering import NOTES, PageRequest, PageRoute, page, part
from signerd.shapes import Happened, ProposalLine

# Only the newest ended proposals are listed; History has all of them.
MOST_ENDED = 100


def _grouped(lines: tuple[ProposalLine, ...]) -> dict[str, Any]:
    """By what they need, the newest first. ``more``: how many ended ones are not listed."""
    groups: dict[str, list[ProposalLine]] = {"waiting": [], "stopped": [], "going": [], "ended": []}
    for line in reversed(lines):
        groups[_group(line.state)].append(line)
    more = max(len(groups["ended"]) - MOST_ENDED, 0)
    return {**groups, "ended": groups["ended"][:MOST_ENDED], "more": more}


def _group(state: str) -> str:
    if state in ASKED:
        return "waiting"
    if state in {"refused", "quarantined"}:
        return "stopped"
    return "going" if state in ON_THE_WAY | DELIVERED - {"confirmed"} | {"received"} else "ended"


async def _listed(request: PageRequest) -> dict[str, Any]:
    ended = request.query("ended") == "1"
    live = Live("proposals", "proposals/list.html", f"/parts/proposals?ended={int(ended)}")
    groups = _grouped(await request.service.proposals(ended=ended))
    return {"part": live, "listed": groups, "ended": ended}


async def notes(request: PageRequest) -> Response:
    return request.part(NOTES, status=await request.service.status())


# The newest lines shown: enough for one operation from its first prompt on.
MOST_LINES = 8
SAID = frozenset({"progress", "info", "attention", "alarm", "question"})


def said_part(subject: str, after: int) -> Live:
    """``after``: the number of the feed's last line when the page was made; earlier lines are not shown."""
    return Live("said", "parts/said.html", f"/said/{subject}?after={after}")


def said_words(request: PageRequest, subject: str, after: int) -> list[Happened]:
    return [line for line in request.service.feed.since(after, subject) if line.kind in SAID][-MOST_LINES:]


def saying(request: PageRequest, subject: str) -> dict[str, Any]:
    """The context of a page that contains this part."""
    after = request.service.feed.last
    return {
        "said_part": said_part(subject, after),
        "said": said_words(request, subject, after),
        "subject": subject,
    }


async def said(request: PageRequest) -> Response:
    given = await request.given(EventsApi.follow)
    if given.after is None:
        raise InvalidRequest("after: is missing")
    words = said_words(request, given.subject, given.after)
    return request.part(said_part(given.subject, given.after), said=words)


ROWS = (
    page("/", "proposals/home.html", "Proposals", _listed),
    part("/parts/proposals", _listed),
    PageRoute("GET", "/parts/notes", notes),
    PageRoute("GET", "/said/{subject}", said),
)
