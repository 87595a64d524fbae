"""Figures and names as HTML, in one place: an amount never without its unit, an address never cut.

Groups are made with spans, not with spaces: what a person copies is the figure or the address itself.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from markupsafe import Markup, escape

from signerd.core.text import SATS_PER_BTC, place_words, plain
from signerd.shapes import MoneyView

# As devices and block explorers print addresses, to be compared group by group.
ADDRESS_GROUP = 4
HASH_GROUP = 8
MINUS = "\N{MINUS SIGN}"
_TYPED = re.compile(r"`([^`]+)`")


def btc_groups(sats: int) -> tuple[str, tuple[str, str, str]]:
    """The whole bitcoin with its sign, and the eight decimals as people group them: ``("1", ("00", "123",
    "456"))``.
    """
    whole, fraction = divmod(abs(sats), SATS_PER_BTC)
    digits = f"{fraction:08d}"
    return f"{MINUS if sats < 0 else ''}{whole:,}", (digits[:2], digits[2:5], digits[5:])


def sats_words(sats: int) -> str:
    return f"{MINUS if sats < 0 else ''}{abs(sats):,} {'sat' if abs(sats) == 1 else 'sats'}"


def amount(sats: int) -> Markup:
    """Both units, so that neither can be mistaken for the other."""
    whole, groups = btc_groups(sats)
    decimals = Markup("").join(Markup("<span>{}</span>").format(group) for group in groups)
    return Markup(
        '<span class="amount"><span class="btc">{}.{} BTC</span> <span class="sats">{}</span></span>'
    ).format(whole, decimals, sats_words(sats))


def grouped(text: str, size: int = ADDRESS_GROUP) -> tuple[str, ...]:
    shown = plain(text)
    return tuple(shown[start : start + size] for start in range(0, len(shown), size))


def address(text: str) -> Markup:
    return _groups(text, ADDRESS_GROUP, "address")


def screen_figure(text: str) -> Markup:
    """What a device's screen says: addresses and data in groups, amounts with their unit as they are."""
    return escape(plain(text)) if " " in text else address(text)


def hexadecimal(text: str) -> Markup:
    """A hash, a key, a script: the whole of it."""
    return _groups(text, HASH_GROUP, "hex")


def _groups(text: str, size: int, kind: str) -> Markup:
    spans = Markup("<wbr>").join(Markup("<span>{}</span>").format(group) for group in grouped(text, size))
    return Markup('<span class="{}" translate="no">{}</span>').format(kind, spans)


def sentence(text: str) -> Markup:
    """A sentence of the daemon's: what stands in backticks is to be typed in a terminal."""
    parts = enumerate(_TYPED.split(plain(text)))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in parts
    )


def fee_rate(text: str) -> str:
    """``text``: sat/vB as a decimal number."""
    return f"{plain(text)} sat/vB"


def moment(text: str) -> Markup:
    """RFC 3339 in this machine's time, for the person beside it; UTC stands with it. What is no time is shown
    as it is.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return escape(plain(text))
    utc, here = at.astimezone(UTC), at.astimezone()
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        utc.isoformat(), f"{utc:%Y-%m-%d %H:%M:%S}", f"{here:%-d %b %Y, %H:%M:%S}"
    )


def count(number: int, one: str, many: str) -> str:
    """``1 coin``, ``2 coins``."""
    return f"{number:,} {one if number == 1 else many}"


FILTERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "amount": amount,
        "btc_groups": btc_groups,
        "sats_words": sats_words,
        "address": address,
        "hexadecimal": hexadecimal,
        "screen_figure": screen_figure,
        "fee_rate": fee_rate,
        "moment": moment,
        "count": count,
        "sentence": sentence,
    }
)


WIDTH = 1000
# Where each column begins; the labels of the coins end before the first, those of the outputs begin after the
# last.
COINS_X, MIDDLE_X, OUT_X = 220, 400, 590
NODE, MIDDLE_NODE = 10, 16
LABEL_GAP = 14
# What all coins together measure. Tall enough that a tenth is seen as a tenth.
FULL = 180.0
THINNEST = 3.0
GAP = 18.0
LINE = 19.0
MARGIN = 10.0
# A vault's spend with more coins is drawn with the rest as one band; outputs are never put together.
MOST_COINS = 8
# Groups of four in a line of an address: 34 characters with their spaces fit beside the drawing.
GROUPS_IN_A_LINE = 7


@dataclass(frozen=True)
class Flow:
    """One band. ``kind``: coin, pay, back, fee or data. ``lines``: the place of an address of ours, then an
    address, in groups, as many as fit a line.
    """

    kind: str
    sats: int
    title: str
    lines: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Band:
    """A flow with its place: a node of ``height`` at ``x``, ``y``, its label, which ``anchor``s there, and
    its ribbon's path.
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
    """``to_scale``: no band is wider than its amount says."""

    width: int
    height: float
    middle_x: float
    middle_width: int
    middle_y: float
    middle_height: float
    coins: tuple[Band, ...]
    outputs: tuple[Band, ...]
    to_scale: bool


def picture_of(money: MoneyView, *, whose: str) -> Picture:
    """``whose``: to whom change comes back, in words."""
    coins, outputs = _coins(money), _outputs(money, whose)
    # A proven transaction spends what it has; one that lies is drawn, too.
    full = max(sum(_positive(coins)), sum(_positive(outputs)), 1)
    left, right = _thickness(coins, full), _thickness(outputs, full)
    heights = [_column(coins, left), _column(outputs, right)]
    height, middle = max(heights) + 2 * MARGIN, max(sum(left), sum(right))
    middle_y = (height - middle) / 2
    return Picture(
        width=WIDTH,
        height=height,
        middle_x=MIDDLE_X - MIDDLE_NODE / 2,
        middle_width=MIDDLE_NODE,
        middle_y=middle_y,
        middle_height=middle,
        coins=_bands(coins, left, (height - heights[0]) / 2, middle_y, towards_middle=True),
        outputs=_bands(outputs, right, (height - heights[1]) / 2, middle_y, towards_middle=False),
        to_scale=not any(_widened(flow, full) for flow in (*coins, *outputs)),
    )


def _coins(money: MoneyView) -> tuple[Flow, ...]:
    each = [Flow("coin", coin.amount_sats, f"Coin {n}") for n, coin in enumerate(money.coins, start=1)]
    if len(each) <= MOST_COINS:
        return tuple(each)
    rest = each[MOST_COINS - 1 :]
    return (*each[: MOST_COINS - 1], Flow("coin", sum(_positive(rest)), f"{len(rest)} more coins"))


def _outputs(money: MoneyView, whose: str) -> tuple[Flow, ...]:
    return (
        *(Flow("pay", p.amount_sats, "Pays", _lines(p.on_screen)) for p in money.payments),
        *(
            Flow(
                "back",
                c.amount_sats,
                f"Back to {whose}",
                ((place_words(c.chain, c.index),), *_lines(c.on_screen)),
            )
            for c in money.change
        ),
        *(Flow("data", 0, f"Data, {len(d.data) // 2} bytes") for d in money.data),
        Flow("fee", money.fee_sats, "Network fee"),
    )


def _lines(address: str | None) -> tuple[tuple[str, ...], ...]:
    if address is None:
        return (("a", "script", "without", "an", "address"),)
    groups = grouped(address)
    return tuple(
        groups[start : start + GROUPS_IN_A_LINE] for start in range(0, len(groups), GROUPS_IN_A_LINE)
    )


def _positive(flows: Sequence[Flow]) -> list[int]:
    return [max(flow.sats, 0) for flow in flows]


def _thickness(flows: Sequence[Flow], full: int) -> list[float]:
    return [max(THINNEST, FULL * max(flow.sats, 0) / full) for flow in flows]


def _widened(flow: Flow, full: int) -> bool:
    """Data moves no money: its line is a line."""
    return flow.kind != "data" and FULL * flow.sats / full < THINNEST


def _label(flow: Flow) -> float:
    """What its words need: a title, the amount in both units where there is one, and the lines of its
    address.
    """
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
