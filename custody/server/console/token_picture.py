"""The states of a token or of a call on it, drawn: each state a box, each step an arrow.

The steps follow from the two tables of states (`domain.lifecycle`, `domain.token_status`); only the places of
the boxes are set here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from custody.schemas.asset_tokens import CallStatus
from custody.server.console.words import CALL_WORDS
from custody.server.domain.lifecycle import TRANSITIONS
from custody.server.domain.token_status import TABLE, Mined, contract_status

# Narrow, so that it can be read on a telephone.
WIDTH, HEIGHT = 380, 300
BOX_WIDTH, BOX_HEIGHT = 150, 44
# The left upper corner of each box.
_PLACES: Mapping[CallStatus, tuple[int, int]] = MappingProxyType(
    {
        CallStatus.PENDING: (5, 8),
        CallStatus.BROADCASTING: (5, 128),
        CallStatus.CONFIRMED: (5, 248),
        CallStatus.STALLED: (225, 8),
        CallStatus.FAILED: (225, 248),
    }
)
# How far an arrow is beside the line between two centres, so that opposite arrows do not overlap.
_BESIDE = 7.0
_MARGIN = 3.0


@dataclass(frozen=True)
class Box:
    words: str
    x: int
    y: int
    is_now: bool


@dataclass(frozen=True)
class Arrow:
    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True)
class States:
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    words: str
    width: int = WIDTH
    height: int = HEIGHT


@cache
def steps(*, of_call: bool) -> frozenset[tuple[CallStatus, CallStatus]]:
    """From which state to which. A token's record has no state for what waits for a backend."""

    def shown(status: CallStatus) -> CallStatus:
        return status if of_call else CallStatus(contract_status(status).value)

    found = {
        (shown(TABLE[before, seen]), shown(TABLE[after, read]))
        for (before, _), after in TRANSITIONS.items()
        # A proof of control concerns no token.
        if (after, Mined.UNREAD) in TABLE
        for seen in Mined
        for read in Mined
    }
    return frozenset((before, after) for before, after in found if before is not after)


def draw_states(now: CallStatus, *, of_call: bool) -> States:
    ways = steps(of_call=of_call)
    known = [state for state in CallStatus if any(state in way for way in ways)]
    boxes = tuple(Box(CALL_WORDS[state], *_PLACES[state], state is now) for state in known)
    arrows = tuple(_arrow(before, after) for before, after in sorted(ways))
    return States(boxes, arrows, f"{'A call' if of_call else 'The token'}: {CALL_WORDS[now]}")


def _arrow(before: CallStatus, after: CallStatus) -> Arrow:
    """From edge to edge of the two boxes, a little beside the line of their centres."""
    (x1, y1), (x2, y2) = _middle(before), _middle(after)
    dx, dy = x2 - x1, y2 - y1
    length = (dx**2 + dy**2) ** 0.5
    aside = -dy / length * _BESIDE, dx / length * _BESIDE
    start, end = _edge((dx, dy), aside), _edge((-dx, -dy), aside)
    return Arrow(
        round(x1 + start[0], 1), round(y1 + start[1], 1), round(x2 + end[0], 1), round(y2 + end[1], 1)
    )


def _middle(state: CallStatus) -> tuple[float, float]:
    x, y = _PLACES[state]
    return x + BOX_WIDTH / 2, y + BOX_HEIGHT / 2


def _edge(way: tuple[float, float], aside: tuple[float, float]) -> tuple[float, float]:
    """Where a line ``way`` that begins ``aside`` of a box's centre leaves the box and its margin."""
    halves = (BOX_WIDTH / 2 + _MARGIN, BOX_HEIGHT / 2 + _MARGIN)
    part = min(
        ((half if step > 0 else -half) - off) / step
        for step, off, half in zip(way, aside, halves, strict=True)
        if step
    )
    return aside[0] + way[0] * part, aside[1] + way[1] * part
