"""What each maker's firmware shows and does, as data with its source: one TOML file a maker.

    model = "Trezor One"
    family = "trezor"
    firmware = "1.14.1"

    [situation.sign-1-input]                   # a name of conformance/situations.py
    evidence = "seen"                          # on this firmware; "read" in its source; "unknown"
    source = "legacy/firmware/layout2.c"       # where: a file of the maker's, or what it was seen on
    outcome = "signed"                         # or "answered", an outcome's name, a list of them, "absent"
    detail = "Too many inputs"                 # optional: words of the outcome's detail
    pause = 2.0                                # optional: seconds that the device takes at least
    note = "One approval for all outputs."     # optional: for the reader of the table
    screens = [                                # optional: all that is shown, in order
      { lines = ["Send 0.0005 TEST to", "{address}?"], no = "Cancel", yes = "Confirm" },
      { lines = ["Signed"], notice = true },
    ]

`absent`: the model has no such thing, and no more is said of it. `unknown`: the virtual device was not
compared with the real one; what it does is tested all the same. `{address}` and the like stand for values
of the situation, `{data:.62}` for their first 62 characters. `no = ""`: no button says no. A `notice` needs
no answer.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, Self

from firmware_bridge.model import Family

ABSENT: Final = "absent"


class Evidence(StrEnum):
    """How it is known what the real device does."""

    SEEN = "seen"
    READ = "read"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Screen:
    """One question, or a notice, as the person sees it: its lines and the words on its buttons."""

    lines: tuple[str, ...]
    no: str = "no"
    yes: str = "yes"
    notice: bool = False

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        screen = cls(**{**values, "lines": tuple(values["lines"])})
        if not all(isinstance(text, str) for text in (*screen.lines, screen.no, screen.yes)):
            raise ValueError(f"a screen is lines and buttons of text: {values}")
        return screen

    def filled(self, values: Mapping[str, str]) -> Self:
        """With the situation's values in place of their names.

        :raises KeyError: the situation has no such value.
        """
        lines = tuple(line.format_map(values) for line in self.lines)
        return type(self)(lines, self.no, self.yes, self.notice)


@dataclass(frozen=True)
class Entry:
    """What one model does in one situation. `screens` is None where they are not written down."""

    evidence: Evidence
    source: str
    outcomes: tuple[str, ...]
    screens: tuple[Screen, ...] | None = None
    detail: str = ""
    pause: float = 0.0
    note: str = ""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        more = dict(values)
        outcome, source, screens = more.pop("outcome"), more.pop("source", ""), more.pop("screens", None)
        evidence = Evidence(more.pop("evidence", Evidence.UNKNOWN))
        if (evidence is Evidence.UNKNOWN) != (source == ""):
            raise ValueError("what was seen or read has a source, and what is unknown has none")
        shown = None if screens is None else tuple(Screen.parse(screen) for screen in screens)
        return cls(
            evidence, source, (outcome,) if isinstance(outcome, str) else tuple(outcome), shown, **more
        )

    @property
    def is_absent(self) -> bool:
        """Whether the model has no such thing."""
        return self.outcomes == (ABSENT,)


@dataclass(frozen=True)
class Transcript:
    """One model with one version of its firmware."""

    name: str
    model: str
    family: Family
    firmware: str
    entries: Mapping[str, Entry] = field(repr=False)


def load(name: str) -> Transcript:
    """The transcript in the file `name`.toml of this package.

    :raises ValueError: the file is not of the form above; the text names the situation.
    """
    values = tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    return Transcript(
        name,
        values["model"],
        Family(values["family"]),
        values["firmware"],
        MappingProxyType(dict(_entries(name, values["situation"]))),
    )


def _entries(name: str, situations: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
    for situation, values in situations.items():
        try:
            yield situation, Entry.parse(values)
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{name}.toml, {situation}: {error}") from error


@cache
def load_all() -> tuple[Transcript, ...]:
    """Every transcript of the package, by maker."""
    found = (file.name for file in files(__package__).iterdir())
    listed = [load(name.removesuffix(".toml")) for name in sorted(found) if name.endswith(".toml")]
    return tuple(sorted(listed, key=lambda each: list(Family).index(each.family)))
