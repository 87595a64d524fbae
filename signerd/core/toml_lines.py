"""On which line of a TOML file a key stands: tomllib tells it for what it cannot parse, and for nothing else."""

import re
import tomllib
from collections.abc import Sequence
from typing import Any

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
