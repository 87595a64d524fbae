"""Text made safe to show, and amounts as people read them: in every program of ours."""

import unicodedata
from collections.abc import Sequence
from typing import Final

SATS_PER_BTC: Final = 100_000_000
# The platform's bound on a description; what is longer is cut, and says so.
LONGEST_TEXT: Final = 1_000
# Control, format (bidirectional overrides, zero-width), surrogate, private and unassigned characters, line
# breaks.
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

# How many characters of an id are shown; more where two begin alike.
SHORT_ID: Final = 8


def plain(text: str) -> str:
    """Text without anything that moves a terminal's cursor or reorders what is read (L8)."""
    shown = "".join("·" if unicodedata.category(char) in _HIDDEN_CATEGORIES else char for char in text)
    return shown if len(shown) <= LONGEST_TEXT else f"{shown[:LONGEST_TEXT]}… (cut)"


def foreign(text: str) -> str:
    """Text that is not ours, inside a sentence of ours: there backticks mark what is to be typed."""
    return plain(text).replace("`", "'")


def amount(value: int | None) -> str:
    """Both units, so that neither can be mistaken for the other: ``0.00012345 BTC (12,345 sats)``.

    Takes any whole number: a hostile PSBT's fee may be negative, and is shown as it is. None is not known.
    """
    if value is None:
        return "not known"
    whole, fraction = divmod(abs(value), SATS_PER_BTC)
    return f"{'-' if value < 0 else ''}{whole}.{fraction:08d} BTC ({value:,} sats)"


def count(number: int, one: str, many: str) -> str:
    """``1 coin``, ``2 coins``."""
    return f"{number:,} {one if number == 1 else many}"


def network_words(network: str) -> str:
    """``testnet`` is the platform's word for any test network."""
    return "a test network" if network == "testnet" else network


def said(error: Exception) -> str:
    """An error's sentence as the end of one of ours, with one full stop."""
    return foreign(str(error)).rstrip(".") + "."


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """Each id of a list, cut to the first 8 characters, or more where two would be the same. Any of them
    names its proposal in a command.
    """
    unique = set(ids)
    length = SHORT_ID
    while len({one[:length] for one in unique}) < len(unique):
        length += 1
    return {one: one[:length] for one in unique}
