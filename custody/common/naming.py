"""What a person may type where a command takes an id: the id, the beginning of it, or a name.
A command shows the id that a name stands for before it does anything. A whole id always means itself, even
where another record has these letters as its name.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Generic, TypeVar

from custody.common.text import name_key

T = TypeVar("T")
# Fewer characters of an id may be a typing mistake.
LEAST: Final = 4
# How many candidates the error about an ambiguous name lists.
MOST_LISTED: Final = 8
# Characters of a name (`custody.schemas.common.Name`).
LONGEST: Final = 100
_NUMBERED: Final = re.compile(r"(.+?)(?: ([0-9]{1,6}))?", re.DOTALL)


@dataclass(frozen=True)
class NamedRecord(Generic[T]):
    """``names``: each of them finds the record. ``words``: its description, shown beside the id."""

    id: str
    names: tuple[str, ...]
    words: str
    record: T


class Ambiguous(Exception):
    """Several could be meant; ``hint`` lists them."""

    def __init__(self, given: str, matches: Sequence[NamedRecord[Any]], kind: str) -> None:
        super().__init__(f"'{given}' could be any of {len(matches)} {kind}s")
        lines = [f"    {candidate.id}  {candidate.words}" for candidate in matches[:MOST_LISTED]]
        more = [f"    and {len(matches) - MOST_LISTED} more"] if len(matches) > MOST_LISTED else []
        self.hint = "\n".join(["Name one by its id:", *lines, *more])


def next_name(name: str, taken: Iterable[str]) -> str:
    """The first of "Cold 2", "Cold 3" and so on that nobody has; after "Cold 7" comes "Cold 8"."""
    keys = {name_key(each) for each in taken}
    match = _NUMBERED.fullmatch(name)
    stem, number = (name, None) if match is None else match.groups()
    following = (f"{stem[: LONGEST - len(str(n)) - 1]} {n}" for n in count(int(number or 1) + 1))
    return next(each for each in following if name_key(each) not in keys)


def named(given: str, candidates: Iterable[NamedRecord[T]], kind: str) -> NamedRecord[T] | None:
    """The candidate that ``given`` names, or None. Raises Ambiguous."""
    known = {candidate.id: candidate for candidate in candidates}
    if given in known:
        return known[given]
    typed = given.strip()
    wanted = typed.casefold()
    begun = [one for one in known.values() if len(wanted) >= LEAST and one.id.casefold().startswith(wanted)]
    called = [
        one for one in known.values() if wanted and wanted in {name.strip().casefold() for name in one.names}
    ]
    exactly = [one for one in called if typed in {name.strip() for name in one.names}]
    # The exact name wins over another case of it, but not over the beginning of an id.
    matches = list({one.id: one for one in (*begun, *(exactly or called))}.values())
    if len(matches) > 1:
        raise Ambiguous(given, matches, kind)
    return matches[0] if matches else None
