"""Amounts, addresses, hashes and times as HTML: an amount always with its unit, an address never cut.
Groups are made with spans, not with spaces: a person who copies one gets the amount or the address itself.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from custody.common.text import SATS_PER_BTC, count, plain
from multisig.script import unaddressed
from multisig.transaction import VERSION_NAMES, VERSION_RULES

# Devices and block explorers print addresses like this; people compare them group by group.
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


def amount(sats: int | None, *, is_change: bool = False) -> Markup:
    """In both units, so that neither can be mistaken for the other; None is not known. ``is_change``: a plus
    where it is positive.
    """
    if sats is None:
        return Markup("not known")
    whole, groups = btc_groups(sats)
    return Markup(
        '<span class="amount"><span class="btc">{}.<span>{}</span> BTC</span>'
        ' <span class="sats">{}</span></span>'
    ).format(
        f"+{whole}" if is_change and sats > 0 else whole,
        Markup("</span><span>").join(groups),
        sats_words(sats),
    )


def grouped(text: str, size: int = ADDRESS_GROUP) -> tuple[str, ...]:
    shown = plain(text)
    return tuple(shown[start : start + size] for start in range(0, len(shown), size))


def address(text: str) -> Markup:
    return _groups(text, ADDRESS_GROUP, "address")


def screen_figure(text: str) -> Markup:
    """Text of a device's screen: addresses and data in groups, amounts with their unit unchanged."""
    return escape(plain(text)) if " " in text else address(text)


def hexadecimal(text: str) -> Markup:
    """A whole hash, key or script."""
    return _groups(text, HASH_GROUP, "hex")


def _groups(text: str, size: int, kind: str) -> Markup:
    # The last group is short, and never alone on a line.
    *most, last = grouped(text, size) or ("",)
    spans = Markup("</span><wbr><span>").join(most) + Markup("</span><span>") + last if most else escape(last)
    return Markup('<span class="{}" translate="no"><span>{}</span></span>').format(kind, spans)


def sentence(text: str) -> Markup:
    """A sentence of the daemon's; text in backticks is a command for a terminal."""
    parts = enumerate(_TYPED.split(plain(text)))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in parts
    )


def fee_rate(text: str) -> str:
    """``text``: sat/vB as a decimal number."""
    return f"{plain(text)} sat/vB"


def moment(text: str) -> Markup:
    """RFC 3339 in this machine's time zone, with UTC as its title. Any other text is shown as it is."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return escape(plain(text))
    utc, here = at.astimezone(UTC), at.astimezone()
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        utc.isoformat(), f"{utc:%Y-%m-%d %H:%M:%S}", f"{here:%-d %b %Y, %H:%M:%S %Z}"
    )


_NAMED: tuple[Any, ...] = (
    amount, btc_groups, sats_words, address, hexadecimal, screen_figure, fee_rate, moment, count, sentence,
    plain,
)  # fmt: skip
FILTERS: Mapping[str, Callable[..., Any]] = {
    **{each.__name__: each for each in _NAMED},
    "unaddressed": lambda script: unaddressed(bytes.fromhex(script)),
    "version_name": lambda version: VERSION_NAMES.get(version, ""),
    "version_rule": lambda version: VERSION_RULES[version],
}
