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
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from firmware_bridge.model import Family

ABSENT: Final = "absent"
_STRICT = ConfigDict(extra="forbid")


class Evidence(StrEnum):
    """How it is known what the real device does."""

    SEEN = "seen"
    READ = "read"
    UNKNOWN = "unknown"


@dataclass(frozen=True, config=_STRICT)
class Screen:
    """One question, or a notice, as the person sees it: its lines and the words on its buttons."""

    lines: tuple[str, ...]
    no: str = "no"
    yes: str = "yes"
    notice: bool = False

    def filled(self, values: Mapping[str, str]) -> Self:
        """With the situation's values in place of their names.

        :raises KeyError: the situation has no such value.
        """
        lines = tuple(line.format_map(values) for line in self.lines)
        return type(self)(lines, self.no, self.yes, self.notice)


def _listed(outcome: object) -> object:
    return (outcome,) if isinstance(outcome, str) else outcome


@dataclass(frozen=True, config=_STRICT)
class Entry:
    """What one model does in one situation. `screens` is None where they are not written down."""

    outcomes: Annotated[tuple[str, ...], Field(validation_alias="outcome"), BeforeValidator(_listed)]
    evidence: Evidence = Evidence.UNKNOWN
    source: str = ""
    screens: tuple[Screen, ...] | None = None
    detail: str = ""
    pause: float = 0.0
    note: str = ""

    def __post_init__(self) -> None:
        if (self.evidence is Evidence.UNKNOWN) != (self.source == ""):
            raise ValueError("what was seen or read has a source, and what is unknown has none")

    @property
    def is_absent(self) -> bool:
        """Whether the model has no such thing."""
        return self.outcomes == (ABSENT,)


@dataclass(frozen=True, config=_STRICT)
class Transcript:
    """One model with one version of its firmware."""

    name: str
    model: str
    family: Family
    firmware: str
    entries: Annotated[Mapping[str, Entry], Field(validation_alias="situation", repr=False)]


def load(name: str) -> Transcript:
    """The transcript in the file `name`.toml of this package.

    :raises ValueError: the file is not of the form above; the text names the situation.
    """
    values = tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    return TypeAdapter(Transcript).validate_python({"name": name, **values})


@cache
def load_all() -> tuple[Transcript, ...]:
    """Every transcript of the package, by maker."""
    found = (file.name for file in files(__package__).iterdir())
    listed = [load(name.removesuffix(".toml")) for name in sorted(found) if name.endswith(".toml")]
    return tuple(sorted(listed, key=lambda each: list(Family).index(each.family)))
