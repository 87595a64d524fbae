"""What a person may type where a command takes an id: the id, the beginning of it, or a name.

A name only finds an id, which is said before anything is done. An id that is whole always means itself,
whatever bears its letters as a name.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

# Fewer characters of an id are a slip of the finger.
LEAST: Final = 4
# Of more that could be meant, so many are listed.
MOST_LISTED: Final = 8


@dataclass(frozen=True)
class Candidate:
    """``names``: each of them means it. ``words``: what it is, beside its id."""

    id: str
    names: tuple[str, ...]
    words: str


class Ambiguous(Exception):
    """Several could be meant; ``hint`` lists them."""

    def __init__(self, given: str, found: Sequence[Candidate], kind: str) -> None:
        super().__init__(f"'{given}' could be any of {len(found)} {kind}s")
        lines = [f"    {candidate.id}  {candidate.words}" for candidate in found[:MOST_LISTED]]
        more = [f"    and {len(found) - MOST_LISTED} more"] if len(found) > MOST_LISTED else []
        self.hint = "\n".join(["Name one by its id:", *lines, *more])


def named(given: str, candidates: Iterable[Candidate], kind: str) -> Candidate | None:
    """The one that is meant; None where none is. Raises Ambiguous."""
    known = {candidate.id: candidate for candidate in candidates}
    if given in known:
        return known[given]
    wanted = given.strip().casefold()
    found = [candidate for candidate in known.values() if _is_meant(wanted, candidate)]
    if len(found) > 1:
        raise Ambiguous(given, found, kind)
    return found[0] if found else None


def _is_meant(wanted: str, candidate: Candidate) -> bool:
    if len(wanted) >= LEAST and candidate.id.casefold().startswith(wanted):
        return True
    return bool(wanted) and any(wanted == name.strip().casefold() for name in candidate.names)
