"""What the platform has made the journal keep, and what makes room: the figures are ``signerd.core.quota``'s."""

import sqlite3
from dataclasses import dataclass, field

from signerd.core.audit import Note
from signerd.core.quota import (
    FORGOTTEN_AT_ONCE,
    MOST_CHANGES,
    MOST_TOKENS,
    MOST_UNFOLLOWED_BYTES,
    MOST_VAULTS,
    MOST_WORDS_A_DAY,
    UNFOLLOWED_ROW_BYTES,
    Allowance,
    Kept,
)
from signerd.core.values import Record, Snapshot
from signerd.errors import PlatformFloods
from signerd.journal.rows import size_of

# Of what was brought the platform knows nothing; what was signed here stays whatever it takes.
_THEIRS = """
FROM proposals p LEFT JOIN signatures s USING (psbt_id) WHERE s.psbt_id IS NULL AND p.brought_by IS NULL
"""
_SIZE = "length(p.psbt) + length(p.snapshot)"
_KEPT = (
    f"SELECT coalesce(sum(p.settled = 0), 0), coalesce(sum({_SIZE}), 0), "
    f"coalesce(sum(({_SIZE}) * (p.settled = 0)), 0) {_THEIRS}"
)
# The platform took them back, the person never decided about them, and nothing about them was an alarm. One that others
# completed is none of them: it may have been paid (S6). Nor is one that others signed: it may be yet (S27).
_OVER = f"""
SELECT p.psbt_id {_THEIRS} AND p.settled = 1 AND p.state IN ('expired', 'superseded', 'withdrawn')
  AND p.approval IS NULL AND p.decline IS NULL AND p.alarm = '' AND p.collected = 0 ORDER BY p.rowid LIMIT ?
"""
_UNFOLLOWED = """
SELECT count(*) + (SELECT count(*) FROM unfollowed_outputs) + (SELECT count(*) FROM unfollowed_spends), coalesce(sum(length(tx)), 0)
FROM unfollowed
"""
_TABLES = ("spends", "outputs", "proposals")


@dataclass
class QuotaBook:
    """Within the journal's transaction only, but for the allowances, which last as long as the process."""

    connection: sqlite3.Connection
    undecided: Allowance = field(default_factory=Allowance)
    decided: Allowance = field(default_factory=Allowance)

    def require_words(self, known: Record | None, now: float) -> None:
        """One more word of the platform's is taken. Raises PlatformFloods.

        What the person decided about has an allowance of its own: no flood of others keeps its end from being heard.
        """
        if not (self.decided if _is_decided(known) else self.undecided).take(now):
            raise PlatformFloods(
                f"it has said {MOST_WORDS_A_DAY:,} new things in a day, which is the most that is kept."
            )

    def require_room_to_grow(self, known: Record, snapshot: Snapshot) -> None:
        """What is known can be shown with more words, and a larger PSBT of the same transaction. Raises PlatformFloods."""
        more = size_of(snapshot) - size_of(known.snapshot)
        why = None if more <= 0 or _is_decided(known) else self._kept().why_too_large(more)
        if why is not None:
            raise PlatformFloods(why)

    def make_room(self, snapshot: Snapshot) -> Note | None:
        """For a new proposal; what was forgotten for it, if anything. Raises PlatformFloods."""
        more = size_of(snapshot)
        why = self._kept().why_full(more)
        if why is None:
            return None
        forgotten = self._forget()
        still = self._kept().why_full(more) if forgotten else why
        if still is not None:
            raise PlatformFloods(still)
        return Note("forgotten", "proposals", {"count": forgotten, "why": why})

    def _kept(self) -> Kept:
        row = self.connection.execute(_KEPT).fetchone()
        return Kept(*row)

    def _forget(self) -> int:
        over = [row[:1] for row in self.connection.execute(_OVER, (FORGOTTEN_AT_ONCE,)).fetchall()]
        for table in _TABLES:
            self.connection.executemany(f"DELETE FROM {table} WHERE psbt_id = ?", over)  # noqa: S608 - names of ours
        return len(over)

    def require_room_for_unfollowed(self, more: int) -> None:
        """For so many bytes, as ``Unfollowed.size`` counts them. Raises PlatformFloods."""
        rows, transactions = self.connection.execute(_UNFOLLOWED).fetchone()
        kept = transactions + rows * UNFOLLOWED_ROW_BYTES
        if kept + more > MOST_UNFOLLOWED_BYTES:
            raise PlatformFloods(
                f"what others signed takes {MOST_UNFOLLOWED_BYTES:,} bytes here, which is the most that it may."
            )

    def require_room_for_vault(self, vault_id: str) -> None:
        """Raises PlatformFloods where it is a new one, and there are enough."""
        counted = "SELECT count(*), coalesce(sum(vault_id = ?), 0) FROM vault_claims"
        count, known = self.connection.execute(counted, (vault_id,)).fetchone()
        if count >= MOST_VAULTS and not known:
            raise PlatformFloods(f"it has shown {MOST_VAULTS:,} vaults, which is the most that are kept.")

    def require_room_for_token(self) -> None:
        """Raises PlatformFloods where there are enough."""
        counted = "SELECT max((SELECT count(*) FROM tokens), (SELECT count(*) FROM bytecodes))"
        if self.connection.execute(counted).fetchone()[0] >= MOST_TOKENS:
            raise PlatformFloods(f"it has shown {MOST_TOKENS:,} tokens, which is the most that are kept.")

    def has_room_for_change(self, code: str) -> bool:
        """``code``: the pinned vault's verification code."""
        counted = "SELECT count(*) FROM vault_changes WHERE code = ?"
        return int(self.connection.execute(counted, (code,)).fetchone()[0]) < MOST_CHANGES


def _is_decided(known: Record | None) -> bool:
    return known is not None and bool(known.approval or known.signature or known.decline)
