"""Limits on what the platform can make this machine store, and how room is made.

A platform that fills the journal stops the signer as surely as a theft. An honest one comes near none of
these limits. Reaching one raises an alarm, and further data of the platform is left out until there is room.
What the person has decided or signed is never left out.
"""

import sqlite3
from dataclasses import dataclass, field

from signerd.core.audit import Note
from signerd.core.values import UNFOLLOWED_ROW_BYTES, Record, Snapshot
from signerd.errors import PlatformFloods
from signerd.journal.rows import size_of

# Unsettled proposals. The largest workspace we know of, a test, has 1,000.
MOST_OPEN = 2_000

# Of these together: all are loaded at every start and in every round. Twice the limit of one list.
MOST_OPEN_BYTES = 256 * 1024 * 1024

# Their inputs and outputs together: one look at a proposal may compare it with all of them. A thousand
# payments of fifty.
MOST_OPEN_PARTS = 50_000

# Of all stored without our signature: enough for 20 proposals of 10 kB a day for 29 years.
MOST_KEPT_BYTES = 2 * 1024 * 1024 * 1024

# Ended proposals without a decision that are deleted at a time to make room.
FORGOTTEN_AT_ONCE = 1_000

# Of proposals that others signed and this machine never followed, which are kept for good: enough for 20 of a
# kilobyte a day for 17 years.
MOST_UNFOLLOWED_BYTES = 128 * 1024 * 1024

# A hundred vaults in each of ten workspaces.
MOST_VAULTS = 1_000

# Each is at most 80 kB of bytecode and a deployment of 400 kB, kept for good. One token for each vault.
MOST_TOKENS = 1_000

# Of one pinned vault: the first already raises an alarm, and stops signing.
MOST_CHANGES = 100

# Each adds about 2 kB to the audit chain, which is never cut. 1,000 proposals from their first signature to
# six confirmations in one day take 10,000.
MOST_WORDS_A_DAY = 20_000

# A usual payment is one word.
PARTS_OF_A_WORD = 100

DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class StoredProposals:
    """The platform's proposals stored without our signature. ``size``, ``open_size``: bytes. ``open_parts``:
    inputs and outputs.
    """

    open: int
    size: int
    open_size: int
    open_parts: int

    def why_full(self, more: int, parts: int) -> str | None:
        """Why there is no room for a new proposal of ``more`` bytes; None where there is."""
        if self.open_parts + parts > MOST_OPEN_PARTS:
            return (
                f"its open proposals have {MOST_OPEN_PARTS:,} inputs and outputs here, which is the most "
                "that they may."
            )
        if self.open >= MOST_OPEN:
            return f"{MOST_OPEN:,} of its proposals are open here, which is the most that are kept."
        return self.why_too_large(more)

    def why_too_large(self, more: int) -> str | None:
        """Why there is no room for ``more`` bytes; None where there is."""
        if self.open_size + more > MOST_OPEN_BYTES:
            return f"its open proposals take {MOST_OPEN_BYTES:,} bytes here, which is the most that they may."
        if self.size + more > MOST_KEPT_BYTES:
            return f"its proposals take {MOST_KEPT_BYTES:,} bytes here, which is the most that they may."
        return None


@dataclass
class Allowance:
    """A token bucket that holds and refills ``a_day`` tokens a day."""

    a_day: int = MOST_WORDS_A_DAY
    _left: float = float(MOST_WORDS_A_DAY)
    _since: float | None = None

    def take(self, now: float, tokens: float = 1.0) -> bool:
        """``now``: Unix seconds. False where there are too few. A clock set back refills nothing."""
        if self._since is not None:
            self._left += max(0.0, now - self._since) * self.a_day / DAY_SECONDS
        self._left = min(self._left, float(self.a_day))
        self._since = now
        if self._left < tokens:
            return False
        self._left -= tokens
        return True


# Without imported PSBTs, and without what was signed or exported, which stays whatever its size.
_THEIRS = """
FROM proposals p LEFT JOIN signatures s USING (psbt_id)
WHERE s.psbt_id IS NULL AND p.exported IS NULL AND p.imported_by IS NULL
"""

_SIZE = "length(p.psbt) + length(p.snapshot)"

_KEPT = (
    f"SELECT coalesce(sum(p.settled = 0), 0), coalesce(sum({_SIZE}), 0), "
    f"coalesce(sum(({_SIZE}) * (p.settled = 0)), 0), coalesce(sum(p.parts * (p.settled = 0)), 0) {_THEIRS}"
)

# Withdrawn by the platform, without a decision or an alarm. Not what others completed, which may have been
# paid (S6), nor what others signed, which may be paid yet (S27).
_OVER = f"""
SELECT p.psbt_id {_THEIRS} AND p.settled = 1 AND p.state IN ('expired', 'superseded', 'withdrawn')
  AND p.approval IS NULL AND p.decline IS NULL AND p.alarm = '' AND p.collected = 0 ORDER BY p.rowid LIMIT ?
"""

_UNFOLLOWED = """
SELECT count(*) + (SELECT count(*) FROM unfollowed_outputs) + (SELECT count(*) FROM unfollowed_spends),
  coalesce(sum(length(tx)), 0)
FROM unfollowed
"""

_TABLES = ("spends", "outputs", "proposals")


@dataclass
class QuotaBook:
    """Used only within the journal's transaction. The allowances are kept in memory."""

    connection: sqlite3.Connection
    undecided: Allowance = field(default_factory=Allowance)
    decided: Allowance = field(default_factory=Allowance)

    def require_words(self, known: Record | None, now: float, parts: int = 0) -> None:
        """One more word of the platform's is taken; by the work of judging it, one about a proposal of many
        ``parts`` (inputs and outputs) counts as several. Raises PlatformFloods.

        What the person decided about has an allowance of its own: no flood of others keeps its end from being
        heard.
        """
        if not (self.decided if _is_decided(known) else self.undecided).take(
            now, 1 + parts // PARTS_OF_A_WORD
        ):
            raise PlatformFloods(
                f"it has said {MOST_WORDS_A_DAY:,} new things in a day, which is the most that is kept."
            )

    def require_room_to_grow(self, known: Record, snapshot: Snapshot) -> None:
        """What is known can be shown with more words, and a larger PSBT of the same transaction. Raises
        PlatformFloods.
        """
        more = size_of(snapshot) - size_of(known.snapshot)
        why = None if more <= 0 or _is_decided(known) else self._kept().why_too_large(more)
        if why is not None:
            raise PlatformFloods(why)

    def make_room(self, snapshot: Snapshot, parts: int) -> Note | None:
        """For a new proposal of ``parts`` inputs and outputs; the note of what was deleted for it, if
        anything. Raises PlatformFloods.
        """
        more = size_of(snapshot)
        why = self._kept().why_full(more, parts)
        if why is None:
            return None
        forgotten = self._forget()
        still = self._kept().why_full(more, parts) if forgotten else why
        if still is not None:
            raise PlatformFloods(still)
        return Note("forgotten", "proposals", {"count": forgotten, "why": why})

    def _kept(self) -> StoredProposals:
        row = self.connection.execute(_KEPT).fetchone()
        return StoredProposals(*row)

    def _forget(self) -> int:
        over = [row[:1] for row in self.connection.execute(_OVER, (FORGOTTEN_AT_ONCE,)).fetchall()]
        for table in _TABLES:
            self.connection.executemany(f"DELETE FROM {table} WHERE psbt_id = ?", over)  # noqa: S608 - names of ours
        return len(over)

    def require_room_for_unfollowed(self, more: int) -> None:
        """For ``more`` bytes, as ``Unfollowed.size`` counts them. Raises PlatformFloods."""
        rows, transactions = self.connection.execute(_UNFOLLOWED).fetchone()
        kept = transactions + rows * UNFOLLOWED_ROW_BYTES
        if kept + more > MOST_UNFOLLOWED_BYTES:
            raise PlatformFloods(
                f"what others signed takes {MOST_UNFOLLOWED_BYTES:,} bytes here, which is the most that it "
                "may."
            )

    def require_room_for_vault(self, vault_id: str) -> None:
        """Raises PlatformFloods for a new vault where there is no room."""
        counted = "SELECT count(*), coalesce(sum(vault_id = ?), 0) FROM vault_claims"
        count, known = self.connection.execute(counted, (vault_id,)).fetchone()
        if count >= MOST_VAULTS and not known:
            raise PlatformFloods(f"it has shown {MOST_VAULTS:,} vaults, which is the most that are kept.")

    def require_room_for_token(self) -> None:
        """Raises PlatformFloods where there is no room."""
        counted = "SELECT max((SELECT count(*) FROM tokens), (SELECT count(*) FROM bytecodes))"
        if self.connection.execute(counted).fetchone()[0] >= MOST_TOKENS:
            raise PlatformFloods(f"it has shown {MOST_TOKENS:,} tokens, which is the most that are kept.")

    def has_room_for_change(self, code: str) -> bool:
        """``code``: the pinned vault's verification code."""
        counted = "SELECT count(*) FROM vault_changes WHERE code = ?"
        return int(self.connection.execute(counted, (code,)).fetchone()[0]) < MOST_CHANGES


def _is_decided(known: Record | None) -> bool:
    return known is not None and bool(known.approval or known.signature or known.decline)
