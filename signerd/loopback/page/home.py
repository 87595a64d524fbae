"""The first page: what waits for the person, what is on its way, and what came to an end."""

from dataclasses import dataclass

from starlette.responses import Response

from signerd.core.states import ASKED, DELIVERED, ON_THE_WAY
from signerd.loopback.page.rendering import Live
from signerd.loopback.page.request import NOTES, PageRequest, Row
from signerd.shapes import ProposalLine

# Of those that came to an end the newest are of interest here; History has all of them.
MOST_ENDED = 100


@dataclass(frozen=True)
class Listed:
    """The proposals by what they need. ``more``: how many of the ended ones are not shown."""

    waiting: tuple[ProposalLine, ...]
    stopped: tuple[ProposalLine, ...]
    going: tuple[ProposalLine, ...]
    ended: tuple[ProposalLine, ...]
    more: int = 0


def listed(lines: tuple[ProposalLine, ...]) -> Listed:
    """``lines`` in the order in which they came; the newest stand first."""
    newest = lines[::-1]
    waiting = tuple(line for line in newest if line.state in ASKED)
    stopped = tuple(line for line in newest if line.state in {"refused", "quarantined"})
    going = tuple(
        line
        for line in newest
        if line.state in ON_THE_WAY | DELIVERED - {"confirmed"} | {"received", "inspected"}
    )
    here = {line.psbt_id for line in (*waiting, *stopped, *going)}
    ended = tuple(line for line in newest if line.psbt_id not in here)
    return Listed(waiting, stopped, going, ended[:MOST_ENDED], max(len(ended) - MOST_ENDED, 0))


def _list_part(*, ended: bool) -> Live:
    return Live("proposals", "proposals/list.html", f"/parts/proposals?ended={int(ended)}")


async def home(asked: PageRequest) -> Response:
    ended = asked.query("ended") == "1"
    found = listed(await asked.service.proposals(ended=ended))
    return await asked.page(
        "proposals/home.html",
        title="Proposals",
        here="/",
        part=_list_part(ended=ended),
        listed=found,
        ended=ended,
    )


async def refreshed(asked: PageRequest) -> Response:
    ended = asked.query("ended") == "1"
    found = listed(await asked.service.proposals(ended=ended))
    return asked.part(_list_part(ended=ended), listed=found, ended=ended)


async def notes(asked: PageRequest) -> Response:
    return asked.part(NOTES, status=await asked.service.status())


ROWS = (
    Row("GET", "/", home),
    Row("GET", "/parts/proposals", refreshed),
    Row("GET", "/parts/notes", notes),
)
