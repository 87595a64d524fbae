"""What is said about a device, a vault or a registration while a person is busy with it, as a part that keeps itself fresh."""

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from signerd.core.text import plain
from signerd.errors import InvalidRequest
from signerd.loopback.page.rendering import Live
from signerd.loopback.page.request import PageRequest, Row

# Of the newest lines, as many as tell what one operation did from its first prompt on.
MOST_LINES = 8
SAID = frozenset({"progress", "info", "attention", "alarm", "question"})
# A position has fewer figures than this: the interface's own bound.
_MOST_FIGURES = 19


@dataclass(frozen=True)
class Words:
    kind: str
    text: str


def said_part(subject: str, after: int) -> Live:
    """``after``: the number of the feed's last line when the page was made: what came before is of another visit."""
    return Live("said", "parts/said.html", f"/said/{subject}?after={after}")


def said_words(asked: PageRequest, subject: str, after: int) -> tuple[Words, ...]:
    lines = [line for line in asked.service.feed.since(after, subject) if line.kind in SAID]
    return tuple(Words(line.kind, plain(line.text)) for line in lines[-MOST_LINES:])


def saying(asked: PageRequest, subject: str) -> dict[str, Any]:
    """What a page needs that has the part in it."""
    after = asked.service.feed.last
    return {"said_part": said_part(subject, after), "said": said_words(asked, subject, after)}


async def said(asked: PageRequest) -> Response:
    subject, after = asked.path_id("subject"), asked.query("after")
    if not (after.isdecimal() and after.isascii() and len(after) < _MOST_FIGURES):
        raise InvalidRequest("after: this is no position")
    return asked.part(said_part(subject, int(after)), said=said_words(asked, subject, int(after)))


ROWS = (Row("GET", "/said/{subject}", said),)
