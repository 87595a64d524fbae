"""Text that is safe to show, addresses in sentences, canonical JSON, and lines of keys in TOML files."""

import json
import re
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from custody.common.text import foreign

# The longest name shown in a sentence or a title.
LONGEST_NAME = 40


def bounded(text: str, longest: int = LONGEST_NAME) -> str:
    """Untrusted text on one line, without control and bidirectional characters."""
    shown = foreign(" ".join(text.split()))
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def person_of(name: str, number: str) -> str:
    """A person as the platform names them, or the number of the account."""
    return bounded(name) or bounded(f"user {number}")


def place_words(chain: int, index: int) -> str:
    """An address of ours by its chain (0 receive, 1 change) and index."""
    return f"{'change' if chain else 'receive'} address {index:,}"


WHY_ELSEWHERE = "most devices write regtest's addresses in testnet's form"


def as_compared(screen: str, address: str) -> str:
    """An address in a sentence, first as the device writes it: ``tb1… (bcrt1… elsewhere: most …)``."""
    return screen if screen == address else f"{screen} ({address} elsewhere: {WHY_ELSEWHERE})"


def as_argument(known_id: str) -> str:
    """An id in a printed command: one that begins with a dash must not be read as an option."""
    return f"-- {known_id}" if known_id.startswith("-") else known_id


def moment_of(at: datetime) -> str:
    """RFC 3339 in UTC, to the second: a person reads it."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def canonical(value: Any) -> bytes:
    """The one spelling of a JSON value that is stored, and hashed by reviews, offers and the audit chain.

    Not ``multisig.canonical_json``, which refuses whole numbers above 2^53 - 1 and sorts names beyond U+FFFF
    differently: journals contain these bytes and hashes.
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
    """The parts of a dotted key, parsed as TOML because quoted parts may have escapes."""
    try:
        value: Any = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    parts: list[str] = []
    while isinstance(value, dict):
        ((part, value),) = value.items()
        parts.append(part)
    return tuple(parts)
