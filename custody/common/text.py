"""Text made safe to show, and amounts and limits as people read them: in every program of ours."""

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

SATS_PER_BTC: Final = 100_000_000
# The limit of the first administrator's role: no one can move more.
ALL_BITCOIN: Final = "21000000.00000000"
# The platform's bound on a description; what is longer is cut, and says so.
LONGEST_TEXT: Final = 1_000
# What a reader cannot see, or sees as another program draws it, for a class of regular expressions (S31):
# Default_Ignorable_Code_Point (Unicode 17.0, DerivedCoreProperties.txt), controls, line and paragraph
# separators, other format characters (Cf), private use, noncharacters, and blanks that Unicode calls
# letters, marks or symbols (Braille, Khitan, hieroglyphic, musical). `unicodedata` lacks the first property,
# and Python 3.11 and 3.12 differ in the others. JSON Schema has no one way to write what is above U+FFFF.
UNSEEN_BELOW_U10000: Final = (
    r"\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    r"\x00-\x1f\x7f-\x9f\u2028-\u2029\u0600-\u0605\u06dd\u070f\u0890-\u0891\u08e2\ufff9-\ufffb"
    r"\ue000-\uf8ff\ufdd0-\ufdef\ufffe-\uffff\u2800"
)
_PLANES_END: Final = "".join(rf"\U{plane:04x}fffe-\U{plane:04x}ffff" for plane in range(1, 15))
_UNSEEN_ABOVE: Final = (
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    r"\U000110bd\U000110cd\U00013430-\U0001343f\U000f0000-\U0010ffff\U00016fe4\U00013441-\U00013442\U0001d159"
)
UNSEEN: Final = re.compile(rf"[{UNSEEN_BELOW_U10000}\ud800-\udfff{_UNSEEN_ABOVE}{_PLANES_END}]")

# How many characters of an id are shown; more where two begin alike.
SHORT_ID: Final = 8


def plain(text: str) -> str:
    """Text without anything that moves a terminal's cursor or reorders what is read (L8)."""
    shown = UNSEEN.sub("·", text)
    return shown if len(shown) <= LONGEST_TEXT else f"{shown[:LONGEST_TEXT]}… (cut)"


def without_unseen(text: str) -> str:
    return UNSEEN.sub("", text)


# Small Cyrillic and Greek letters that are read as Latin, themselves or their capitals.
_READ_AS_LATIN: Final = str.maketrans("авеіјкмнорсԁѕтухһԛԝѵӏαβεικορτυχν", "abeijkmhopcdstyxhqwvlabeikoptuxv")


def name_key(name: str) -> str:
    """Two names that look the same to a reader have the same key (P50, S31).

    It ignores case, spacing, compatibility forms (NFKC) and what a reader cannot see, and reads the letters
    of other alphabets that people are deceived with as Latin ones. No such table is complete.
    """
    plain = unicodedata.normalize("NFKC", without_unseen(name))
    folded = plain.casefold().translate(_READ_AS_LATIN)
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def require_seen(text: str) -> str:
    """The same text. Raises ValueError, with the end of a sentence that begins with what the text is."""
    match = UNSEEN.search(text)
    if match is not None:
        name = unicodedata.name(match[0], "no name")
        raise ValueError(
            f"has a character that not every reader sees, U+{ord(match[0]):04X} ({name}): leave it out"
        )
    return text


def foreign(text: str) -> str:
    """Text that is not ours, inside a sentence of ours: there backticks mark what is to be typed."""
    return plain(text).replace("`", "'")


def btc(sats: int) -> str:
    """An amount as the API writes it, with a minus: ``-0.25000000``."""
    whole, fraction = divmod(abs(sats), SATS_PER_BTC)
    return f"{'-' if sats < 0 else ''}{whole}.{fraction:08d}"


def amount(value: int | None) -> str:
    """Both units, so that neither can be mistaken for the other: ``0.00012345 BTC (12,345 sats)``.

    Takes any whole number: a hostile PSBT's fee may be negative, and is shown as it is. None is not known.
    """
    if value is None:
        return "not known"
    return f"{btc(value)} BTC ({value:,} sats)"


def short_address(address: str) -> str:
    """Both ends, to recognise it, never to compare it."""
    return address if len(address) <= 16 else f"{address[:10]}…{address[-6:]}"


def count(number: int, one: str, many: str) -> str:
    """``1 coin``, ``2 coins``."""
    return f"{number:,} {one if number == 1 else many}"


WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def bounds(*, per_cycle: bool, period: str, day: int) -> str:
    """What a spending limit bounds: the words after an amount, as in ``At most 0.5 BTC`` … ``day``: of the
    week from Monday on, or of the month.
    """
    if not per_cycle:
        return "in each payment, however many there are"
    cycle = "a calendar month (UTC)" if day == 1 else f"a month from day {day} (UTC)"
    if period == "W":
        cycle = f"a week from {WEEKDAYS[day - 1]} (UTC)"
    return f"in all payments of {cycle} together"


def limit_words(limit: str, *, period: str, day: int, per_cycle: bool = True, is_role: bool = False) -> str:
    """``limit``: in BTC."""
    if is_role and limit == ALL_BITCOIN:
        return "as much as the vaults' limits allow"
    return f"at most {limit} BTC {bounds(per_cycle=per_cycle, period=period, day=day)}"


def day_words(at: datetime) -> str:
    return f"{at.astimezone(UTC):%-d %b %Y}"


def until(reset: datetime) -> str:
    """The day on which a new cycle begins, at 00:00 UTC: ``1 December``."""
    return f"{reset.day} {reset:%B}"


def minute(at: datetime) -> str:
    """In UTC, and labelled so: users are in many time zones."""
    return f"{day_words(at)}, {at.astimezone(UTC):%H:%M} UTC"


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
