"""The list of proposals; and the live part with messages about one device, vault or registration."""

from typing import Any

from starlette.responses import Response

from custody.common.pages.rendering import Live
from custody.common.pages.serving import HEADERS
from signerd.api.account import EventsApi
from signerd.core.states import ASKED, DELIVERED, ON_THE_WAY
from signerd.errors import InvalidRequest
from signerd.loopback.page.rendering import PageRequest, PageRoute, page, part
from signerd.shapes import ProposalLine
from signerd.standing import is_left_open

# What needs attention.
NOTES = Live("notes", "parts/notes.html", "/parts/notes")
# Only the newest ended proposals are listed; History has all of them.
MOST_ENDED = 100


def _grouped(lines: tuple[ProposalLine, ...]) -> dict[str, Any]:
    """By what they need, the newest first. ``more``: how many ended ones are not listed."""
    groups: dict[str, list[ProposalLine]] = {
        name: [] for name in ("waiting", "stopped", "going", "declined", "ended")
    }
    for line in reversed(lines):
        groups["declined" if is_left_open(line) else _group(line.state)].append(line)
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
    status = await request.service.status()
    groups = _grouped(await request.service.proposals(ended=ended))
    return {"part": live, "notes_part": NOTES, "listed": groups, "ended": ended, "status": status}


async def notes(request: PageRequest) -> Response:
    return request.part(NOTES, status=await request.service.status())


# The newest lines shown: enough for one operation from its first prompt on.
MOST_LINES = 8
SAID = frozenset({"progress", "info", "attention", "alarm", "question"})


def saying(request: PageRequest, subject: str, after: int | None = None) -> dict[str, Any]:
    """The context of a page that contains this part. ``after``: the number of the feed's last line when the
    page was made, which is now where it is None; earlier lines are not shown.
    """
    after = request.service.feed.last if after is None else after
    lines = [line for line in request.service.feed.since(after, subject) if line.kind in SAID]
    return {
        "said_part": Live("said", "parts/said.html", f"/said/{subject}?after={after}"),
        "said": lines[-MOST_LINES:],
        "showing": request.service.bridge_devices.on_screen,
        "subject": subject,
    }


async def _said(request: PageRequest) -> dict[str, Any]:
    given = await request.given(EventsApi.follow)
    if given.after is None:
        raise InvalidRequest("after: is missing")
    return saying(request, given.subject, given.after)


async def title(request: PageRequest) -> Response:
    """Of the proposal that a line of the feed is about; empty for another subject."""
    words = request.service.title(request.query("subject")) or ""
    return Response(words, headers=HEADERS, media_type="text/plain")


ROWS = (
    page("/", "proposals/home.html", "Proposals", _listed),
    part("/parts/proposals", _listed),
    PageRoute("GET", "/parts/notes", notes),
    PageRoute("GET", "/title", title),
    part("/said/{subject}", _said, "said_part"),
)
