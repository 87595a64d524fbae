"""A drawing of a transaction: coins on the left; payments, change and fee on the right. The width of each
band is in proportion to its amount.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from custody.common.pages.figures import grouped
from multisig.script import unaddressed

# The left edge of each column; the coins' labels are left of the first, the outputs' right of the last.
COINS_X, MIDDLE_X, OUT_X = 220, 400, 590
NODE, MIDDLE_NODE = 10, 16
LABEL_GAP = 14
# The height of all coins together: enough to see a tenth as a tenth.
FULL = 180.0
THINNEST = 3.0
GAP = 18.0
LINE = 19.0
MARGIN = 10.0
# Further coins are drawn as one band; outputs are never merged.
MOST_COINS = 8
# Groups of four in a line of an address: 34 characters with their spaces fit beside the drawing.
GROUPS_IN_A_LINE = 7


@dataclass(frozen=True)
class Flow:
    """One band. ``kind``: coin, pay, back, fee or data. ``lines``: the branch and index of an address of
    ours, then the address in groups, as many as fit a line.
    """

    kind: str
    sats: int
    title: str
    lines: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Band:
    """A flow with its geometry: a node of ``height`` at ``x``, ``y``, the position and text anchor of its
    label, and the SVG path of its ribbon.
    """

    flow: Flow
    x: float
    y: float
    height: float
    label_x: float
    label_y: float
    anchor: str
    path: str


@dataclass(frozen=True)
class Picture:
    """``to_scale``: no band was widened to be visible."""

    width: ClassVar[int] = 1000
    middle_x: ClassVar[float] = MIDDLE_X - MIDDLE_NODE / 2
    middle_width: ClassVar[int] = MIDDLE_NODE
    height: float
    middle_y: float
    middle_height: float
    coins: tuple[Band, ...]
    outputs: tuple[Band, ...]
    to_scale: bool


def draw(coins: Sequence[Flow], outputs: Sequence[Flow]) -> Picture:
    coins = _merged(coins)
    # The outputs of an unproven transaction may exceed its inputs: it is drawn all the same.
    full = max(sum(_positive(coins)), sum(_positive(outputs)), 1)
    left, right = _thickness(coins, full), _thickness(outputs, full)
    heights = [_column(coins, left), _column(outputs, right)]
    height, middle = max(heights) + 2 * MARGIN, max(sum(left), sum(right))
    middle_y = (height - middle) / 2
    return Picture(
        height=height,
        middle_y=middle_y,
        middle_height=middle,
        coins=_bands(coins, left, (height - heights[0]) / 2, middle_y, towards_middle=True),
        outputs=_bands(outputs, right, (height - heights[1]) / 2, middle_y, towards_middle=False),
        to_scale=not any(_widened(flow, full) for flow in (*coins, *outputs)),
    )


def _merged(coins: Sequence[Flow]) -> Sequence[Flow]:
    if len(coins) <= MOST_COINS:
        return coins
    rest = coins[MOST_COINS - 1 :]
    return (*coins[: MOST_COINS - 1], Flow("coin", sum(_positive(rest)), f"{len(rest)} more coins"))


def address_lines(address: str | None, script: bytes = b"") -> tuple[tuple[str, ...], ...]:
    """The groups of an address, as many in a line as fit beside the drawing; else what the script is."""
    if address is None:
        return (tuple(unaddressed(script).split()),)
    groups = grouped(address)
    return tuple(
        groups[start : start + GROUPS_IN_A_LINE] for start in range(0, len(groups), GROUPS_IN_A_LINE)
    )


def _positive(flows: Sequence[Flow]) -> list[int]:
    return [max(flow.sats, 0) for flow in flows]


def _thickness(flows: Sequence[Flow], full: int) -> list[float]:
    return [max(THINNEST, FULL * max(flow.sats, 0) / full) for flow in flows]


def _widened(flow: Flow, full: int) -> bool:
    """A data output moves no money: its thin line is no distortion."""
    return flow.kind != "data" and FULL * flow.sats / full < THINNEST


def _label(flow: Flow) -> float:
    """The height of a label: a title, the amount in both units where there is one, and the address."""
    return LINE * (1 + (flow.kind != "data") + len(flow.lines))


def _column(flows: Sequence[Flow], thickness: Sequence[float]) -> float:
    slots = [max(_label(flow), thick) for flow, thick in zip(flows, thickness, strict=True)]
    return sum(slots) + GAP * max(len(slots) - 1, 0)


def _bands(
    flows: Sequence[Flow], thickness: Sequence[float], y: float, at_middle: float, *, towards_middle: bool
) -> tuple[Band, ...]:
    bands = []
    for flow, thick in zip(flows, thickness, strict=True):
        slot = max(_label(flow), thick)
        node_y, label_y = y + (slot - thick) / 2, y + (slot - _label(flow)) / 2 + LINE * 0.75
        ends = (node_y, at_middle) if towards_middle else (at_middle, node_y)
        bands.append(
            Band(
                flow=flow,
                x=COINS_X if towards_middle else OUT_X,
                y=node_y,
                height=thick,
                label_x=COINS_X - LABEL_GAP if towards_middle else OUT_X + NODE + LABEL_GAP,
                label_y=label_y,
                anchor="end" if towards_middle else "start",
                path=_ribbon(ends, thick, towards_middle=towards_middle),
            )
        )
        y += slot + GAP
        at_middle += thick
    return tuple(bands)


def _ribbon(ends: tuple[float, float], thick: float, *, towards_middle: bool) -> str:
    x0, x1 = (
        (COINS_X + NODE, MIDDLE_X - MIDDLE_NODE / 2)
        if towards_middle
        else (MIDDLE_X + MIDDLE_NODE / 2, OUT_X)
    )
    (y0, y1), half = ends, (x0 + x1) / 2
    above = f"M{x0:g} {y0:.1f}C{half:g} {y0:.1f} {half:g} {y1:.1f} {x1:g} {y1:.1f}"
    below = f"V{y1 + thick:.1f}C{half:g} {y1 + thick:.1f} {half:g} {y0 + thick:.1f} {x0:g} {y0 + thick:.1f}Z"
    return above + below
