"""The screen of the device that was last seen with a key of ours, as the chain has it: each entry is read once."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from multisig import Fingerprint
from signerd.core.audit import Note
from signerd.core.screens import Screen
from signerd.journal import rows

KIND = "device-screen"


class ScreenBook:
    """Over the one connection that writes the journal."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._read = 0
        self._known: dict[str, Screen] = {}

    def forget(self) -> None:
        """Begin anew: a transaction was rolled back, and what was read within it never happened."""
        self._read, self._known = 0, {}

    def of(self, fingerprint: Fingerprint) -> Screen | None:
        """None where no device with this master key was ever seen here."""
        self._read, found = rows.facts_since(self._db, KIND, self._read)
        self._known.update((subject, _screen(facts)) for subject, facts in found)
        return self._known.get(str(fingerprint))


def screen_note(fingerprint: Fingerprint, screen: Screen) -> Note:
    """``whole`` is -1 where it is not known: facts are text and whole numbers."""
    whole = -1 if screen.whole is None else screen.whole
    return Note(KIND, str(fingerprint), {"first": screen.first, "model": screen.name, "whole": whole})


def _screen(facts: Mapping[str, Any]) -> Screen:
    return Screen(facts["model"], None if facts["whole"] < 0 else facts["whole"], facts["first"])
