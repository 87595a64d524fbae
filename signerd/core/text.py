"""Text: made safe to show, amounts as people read them, and on which line of a TOML file a key stands."""

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from custody.text import LONGEST_TEXT, SATS_PER_BTC, SHORT_ID, amount, count, foreign, plain, said, short_ids

__all__ = [
    "LONGEST_TEXT",
    "SATS_PER_BTC",
    "amount",
    "as_argument",
    "as_compared",
    "bounded",
    "canonical",
    "count",
    "foreign",
    "line_of",
    "place_words",
    "plain",
    "said",
    "short_id",
    "short_ids",
]


# Of a vault or a person, in a sentence or beside a title.
LONGEST_NAME = 40


def bounded(text: str, longest: int = LONGEST_NAME) -> str:
    """Foreign text in one line, without what moves a cursor or reorders what is read."""
    shown = foreign(" ".join(text.split()))
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def place_words(chain: int, index: int) -> str:
    """An address of ours by its chain (0 receive, 1 change) and index."""
    return f"{'change' if chain else 'receive'} address {index:,}"


WHY_ELSEWHERE = "most devices write regtest's addresses in testnet's form"


def as_compared(screen: str, address: str) -> str:
    """An address in a sentence, first as the device writes it: ``tb1… (bcrt1… elsewhere: most …)``."""
    return screen if screen == address else f"{screen} ({address} elsewhere: {WHY_ELSEWHERE})"


def as_argument(known_id: str) -> str:
    """An id of the platform's in a command that is printed: one that begins with a dash is no option."""
    return f"-- {known_id}" if known_id.startswith("-") else known_id


def short_id(psbt_id: str) -> str:
    """As a title names another proposal."""
    return plain(psbt_id)[:SHORT_ID]


def canonical(value: Any) -> bytes:
    """One spelling per value: what is stored, and what reviews, offers and the audit chain hash.

    ``multisig.canonical_json`` is not used, because journals hold these bytes and hashes: it refuses whole
    numbers above 2^53 - 1, which a hostile platform may send, and sorts names beyond U+FFFF in another
    order.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


# A bare or quoted key, dotted, as far as "=" or the end of a header (https://toml.io/en/v1.0.0#keys).
_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_KEY = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEADER = re.compile(rf"\s*\[\[?[ \t]*({_KEY})[ \t]*\]\]?\s*(?:#.*)?")
_SETTING = re.compile(rf"\s*({_KEY})[ \t]*=")


def line_of(text: str, key: Sequence[str]) -> int | None:
    """The line on which a dotted key, or a section of that name, is first set, else the line of its section.

    None where neither is in the file.
    """
    wanted = tuple(key)
    section: tuple[str, ...] = ()
    fallback = None
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.fullmatch(line)
        if header:
            section = _parts(header[1])
            if section[: len(wanted)] == wanted:
                return number
            fallback = number if section and section == wanted[: len(section)] else fallback
            continue
        setting = _SETTING.match(line)
        name = _parts(setting[1]) if setting else ()
        path = (*section, *name)
        if name and wanted[: len(path)] == path[: len(wanted)]:
            return number
    return fallback


def _parts(dotted: str) -> tuple[str, ...]:
    """What a key's parts spell; TOML itself reads it, for quotes carry escapes."""
    try:
        found: Any = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    parts: list[str] = []
    while isinstance(found, dict):
        ((part, found),) = found.items()
        parts.append(part)
    return tuple(parts)
