"""The addresses that transactions signed here used, as the chain of decisions has them: each entry is read once."""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from signerd.core.places import NEW_POLICY, Places, joined
from signerd.journal import rows


class PlaceBook:
    """Over the one connection that writes the journal."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._read = 0
        self._known: dict[str, Places] = {}

    def forget(self) -> None:
        """Begin anew: a transaction was rolled back, and what was read within it never happened."""
        self._read, self._known = 0, {}

    def of(self, codes: Iterable[str]) -> Mapping[str, Places]:
        """By the policy's code; none for a policy of which nothing was signed here."""
        self._read, found = rows.facts_since(self._db, "signed", self._read)
        for _subject, facts in found:
            self._take(facts)
        return {code: self._known[code] for code in codes if code in self._known}

    def _take(self, facts: Mapping[str, Any]) -> None:
        # Entries of earlier versions do not say it.
        if "places" not in facts:
            return
        code = facts["policy"]
        receive, change = (tuple((first, last) for first, last in spans) for spans in facts["places"])
        self._known[code] = joined(self._known.get(code, NEW_POLICY), (receive, change))
