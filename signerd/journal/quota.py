"""Two bounds on what the platform can make this machine store: how many things, and how much work they are.

A platform that fills the journal stops the signer as surely as a theft. An honest one comes near neither.
Reaching one raises an alarm, and further data of the platform is left out until there is room. What the
person has signed or exported counts for neither, and the end of what they decided is always heard.
"""

import sqlite3
from dataclasses import dataclass, field

from custody.common.pace import Bucket
from signerd.core.audit import Note
from signerd.core.values import Record, Snapshot, Unfollowed, parts_of
from signerd.errors import PlatformFloods
from signerd.journal.rows import size_of

# Open proposals, vaults, tokens: of each so many. Twice the proposals that one workspace may have pending.
MOST = 2_000

# Work is counted in inputs and outputs, each of which is compared and derived; and so many bytes are as much.
BYTES_OF_ONE = 5_000
# Of open proposals: all are loaded at every start and in every round, and one look at a proposal may compare
# it with all of them. 250 MB, or a thousand payments of fifty.
MOST_OPEN_WORK = 50_000
# Of all that is stored without our signature, and once more of what others signed: 2 GB, or 20 usual payments
# a day for 18 years. And of what is new in a day.
MOST_WORK = 400_000
# Whatever a new word is about, it adds 2 kB to the audit chain, which is never cut: 20,000 in a day. 1,000
# proposals from their first signature to six confirmations in one day take 10,000.
WORK_OF_A_WORD = 20

# Of one pinned vault: the first change already raises an alarm, and stops signing.
MOST_CHANGES = 100

# Ended proposals without a decision that are deleted at a time to make room.
FORGOTTEN_AT_ONCE = 1_000

DAY_SECONDS = 86_400.0

# Without imported PSBTs, and without what was signed or exported, which stays whatever its size.
_THEIRS = """
FROM proposals p LEFT JOIN signatures s USING (psbt_id)
WHERE s.psbt_id IS NULL AND p.exported IS NULL AND p.imported_by IS NULL
"""

_WORK = f"(p.parts + (length(p.psbt) + length(p.snapshot)) / {BYTES_OF_ONE})"

_STORED = (
    "SELECT coalesce(sum(p.settled = 0), 0) AS open, "
    f"coalesce(sum({_WORK} * (p.settled = 0)), 0) AS open_work, coalesce(sum({_WORK}), 0) AS work {_THEIRS}"
)

# Withdrawn by the platform, without a decision or an alarm. Not what others completed, which may have been
# paid (S6), nor what others signed, which may be paid yet (S27).
_OVER = f"""
SELECT p.psbt_id {_THEIRS} AND p.settled = 1 AND p.state IN ('expired', 'superseded', 'withdrawn')
  AND p.approval IS NULL AND p.decline IS NULL AND p.alarm = '' AND p.collected = 0 ORDER BY p.rowid LIMIT ?
"""

_UNFOLLOWED = f"""
SELECT (SELECT count(*) FROM unfollowed_outputs) + (SELECT count(*) FROM unfollowed_spends)
  + coalesce(sum(length(tx)), 0) / {BYTES_OF_ONE}
FROM unfollowed
"""  # noqa: S608 - a number of ours

_KINDS = {
    "vaults": "SELECT count(*) FROM vault_claims",
    "tokens": "SELECT max((SELECT count(*) FROM tokens), (SELECT count(*) FROM bytecodes))",
}


def _a_day() -> Bucket:
    return Bucket(MOST_WORK, MOST_WORK / DAY_SECONDS, at=0.0, level=MOST_WORK)


def work_of(snapshot: Snapshot) -> int:
    return parts_of(snapshot.psbt) + size_of(snapshot) // BYTES_OF_ONE


@dataclass
class QuotaBook:
    """Used only within the journal's transaction. What was new today is kept in memory: ``decided``, about
    what the person decided, has a day of its own, so that no flood of others keeps its end from being heard.
    """

    connection: sqlite3.Connection
    undecided: Bucket = field(default_factory=_a_day)
    decided: Bucket = field(default_factory=_a_day)

    def require_word(self, known: Record | None, now: float, work: int = 0) -> None:
        """One more word of the platform's is taken, about a proposal of so much ``work``. ``now``: Unix
        seconds. Raises PlatformFloods.
        """
        day = (self.decided if _is_decided(known) else self.undecided).fill(now)
        if day.seconds_until(WORK_OF_A_WORD + work):
            raise PlatformFloods(
                f"it has said {MOST_WORK // WORK_OF_A_WORD:,} things that are new in a day, or fewer about "
                "large transactions, which is the most that is kept."
            )
        day.level -= WORK_OF_A_WORD + work

    def make_room(self, known: Record | None, snapshot: Snapshot) -> Note | None:
        """For a new proposal, or for more that is said of a ``known`` one; the note of what was deleted for a
        new one, if anything. Raises PlatformFloods.
        """
        more = work_of(snapshot) - (0 if known is None else work_of(known.snapshot))
        if known is not None and (more <= 0 or _is_decided(known)):
            return None
        why = self._why_full(more, is_new=known is None)
        if why is None:
            return None
        forgotten = self._forget() if known is None else 0
        if not forgotten or self._why_full(more, is_new=True) is not None:
            raise PlatformFloods(why)
        return Note("forgotten", "proposals", {"count": forgotten, "why": why})

    def _why_full(self, more: int, *, is_new: bool) -> str | None:
        stored = self.connection.execute(_STORED).fetchone()
        if is_new and stored["open"] >= MOST:
            return f"{MOST:,} of its proposals are open here, which is the most that are kept."
        for name, which, most in (("open_work", "open ", MOST_OPEN_WORK), ("work", "", MOST_WORK)):
            if stored[name] + more > most:
                return (
                    f"its {which}proposals have {most:,} inputs and outputs here, or as many times "
                    f"{BYTES_OF_ONE:,} bytes, which is the most that they may."
                )
        return None

    def _forget(self) -> int:
        over = [row[:1] for row in self.connection.execute(_OVER, (FORGOTTEN_AT_ONCE,)).fetchall()]
        for table in ("spends", "outputs", "proposals"):
            self.connection.executemany(f"DELETE FROM {table} WHERE psbt_id = ?", over)  # noqa: S608 - names of ours
        return len(over)

    def require_room_for_unfollowed(self, fresh: list[Unfollowed]) -> None:
        """Raises PlatformFloods."""
        more = sum(
            len(one.payments) + len(one.outpoints) + len(one.tx.serialize()) // BYTES_OF_ONE for one in fresh
        )
        if self.connection.execute(_UNFOLLOWED).fetchone()[0] + more > MOST_WORK:
            raise PlatformFloods(
                f"what others signed has {MOST_WORK:,} inputs and outputs here, which is the most that it "
                "may."
            )

    def require_room_for(self, kind: str) -> None:
        """For one more of the "vaults" or the "tokens" that it has shown. Raises PlatformFloods."""
        if self.connection.execute(_KINDS[kind]).fetchone()[0] >= MOST:
            raise PlatformFloods(f"it has shown {MOST:,} {kind}, which is the most that are kept.")

    def has_room_for_change(self, code: str) -> bool:
        """``code``: the pinned vault's verification code."""
        counted = "SELECT count(*) FROM vault_changes WHERE code = ?"
        return int(self.connection.execute(counted, (code,)).fetchone()[0]) < MOST_CHANGES


def _is_decided(known: Record | None) -> bool:
    return known is not None and bool(known.approval or known.signature or known.decline)
