"""What the journal says was spent, read as it grows: each entry of the chain once."""

import sqlite3
from datetime import UTC, datetime

from signerd.core.rules.ledger import AskedSpend, Ledger
from signerd.core.rules.spending import Moment, Spent
from signerd.journal import rows


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
