"""What the chain of decisions says of screens, of addresses and of spending, read as it grows: each entry once."""

import sqlite3
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from multisig import Fingerprint
from signerd.core.audit import Note
from signerd.core.places import NEW_POLICY, Places, joined
from signerd.core.rules.spending import AskedSpend, Ledger, Moment, Spent
from signerd.core.tokens import Screen
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


class SpendingBook:
    """Over the one connection that writes the journal."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._ledger = Ledger()
        self._read_at = -1
        self._spent: tuple[Spent, ...] = ()

    def forget(self) -> None:
        """Begin anew: a transaction was rolled back, and what was read within it never happened."""
        self._ledger, self._read_at = Ledger(), -1

    def moment(self, now: datetime, *, to_the_minute: bool) -> Moment:
        """Rounded down to the minute or the day: what was judged a second ago need not be judged again.

        A window that ends a little early keeps what leaves it a little longer.
        """
        self._catch_up()
        cut = _minute if to_the_minute else _day
        return Moment(cut(now.astimezone(UTC)), cut(self._ledger.latest))

    def spent(self) -> tuple[Spent, ...]:
        """What was signed, or is at a device, and may lie in a window."""
        self._catch_up()
        # Nobody else writes: where this connection changed nothing, nothing has changed.
        if self._read_at != self._db.total_changes:
            self._spent = tuple(self._read(item) for item in self._ledger.asked())
            self._read_at = self._db.total_changes
        return self._spent

    def _catch_up(self) -> None:
        self._ledger.take(rows.audit_entries(self._db, self._ledger.sequence))

    def _read(self, item: AskedSpend) -> Spent:
        return read_spent(self._db, item)


def read_spent(connection: sqlite3.Connection, item: AskedSpend) -> Spent:
    """With the coins it spends, and the quorum that it was signed for."""
    coins = frozenset(rows.read_coins(connection, item.psbt_id))
    return Spent(item.psbt_id, rows.read_quorum(connection, item.psbt_id), item.at, item.amount, coins)


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _day(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
