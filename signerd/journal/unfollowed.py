"""What the journal holds of proposals that this machine never followed, and how far the platform's whole list was read (S27)."""

import json
import sqlite3
from dataclasses import dataclass

from custody.schemas.proposals import ProposalStatus
from multisig import Transaction
from signerd.core.text import canonical
from signerd.core.values import Unfollowed

# A rent of eight years. Of more that pay the same the first are compared; a person reads three of them.
MOST_COMPARED = 100

# What spends a coin of the proposal's cannot be paid beside it, and is left out before the bound: else the platform could push
# the others out of it with copies of the proposal itself. The first that were told stay for the same reason.
_PAYING_THE_SAME = """
SELECT theirs.* FROM unfollowed theirs
WHERE theirs.psbt_id IN (
    SELECT unfollowed_outputs.psbt_id FROM outputs mine JOIN unfollowed_outputs USING (script, amount)
    WHERE mine.psbt_id = :id
  )
  AND theirs.psbt_id <> :id AND (theirs.quorum = :quorum OR :brought)
  AND NOT EXISTS (SELECT 1 FROM proposals p WHERE p.psbt_id = theirs.psbt_id AND p.collected > 0)
  AND NOT EXISTS (
    SELECT 1 FROM unfollowed_spends JOIN spends mine USING (txid, vout)
    WHERE unfollowed_spends.psbt_id = theirs.psbt_id AND mine.psbt_id = :id
  )
ORDER BY theirs.rowid LIMIT :most
"""


@dataclass(frozen=True)
class UnfollowedBook:
    """Reads at any time; writes within the journal's transaction only."""

    connection: sqlite3.Connection

    def paying_the_same(self, psbt_id: str, quorum: str | None, *, brought: bool) -> tuple[Unfollowed, ...]:
        """Those of the quorum that have an output of the proposal's; of any vault beside what was ``brought``.

        One that is followed since counts here until its record has signatures of others itself.
        """
        named = {"id": psbt_id, "quorum": quorum, "brought": brought, "most": MOST_COMPARED}
        return tuple(_read(row) for row in self.connection.execute(_PAYING_THE_SAME, named))

    def heard_until(self, workspace_id: int, codes: frozenset[str]) -> str | None:
        """The last proposal that need not be looked at again; None where none is, or one of these vaults was pinned since."""
        query = "SELECT psbt_id, codes FROM heard WHERE workspace_id = ?"
        row = self.connection.execute(query, (workspace_id,)).fetchone()
        return None if row is None or not codes <= set(json.loads(row["codes"])) else row["psbt_id"]

    def write_heard(self, workspace_id: int, codes: frozenset[str], psbt_id: str) -> None:
        self.connection.execute(
            "INSERT OR REPLACE INTO heard VALUES (?,?,?)",
            (workspace_id, psbt_id, canonical(sorted(codes)).decode()),
        )

    def forget_heard(self, workspace_id: int) -> None:
        self.connection.execute("DELETE FROM heard WHERE workspace_id = ?", (workspace_id,))

    def knows(self, psbt_id: str) -> bool:
        query = "SELECT 1 FROM unfollowed WHERE psbt_id = ?"
        return self.connection.execute(query, (psbt_id,)).fetchone() is not None

    def write(self, quorum: str, one: Unfollowed) -> None:
        """The most signatures that were ever told of stay, and so does the transaction that was told first."""
        if self.knows(one.psbt_id):
            query = "UPDATE unfollowed SET status = ?, collected = max(collected, ?) WHERE psbt_id = ?"
            self.connection.execute(query, (one.status.value, one.collected, one.psbt_id))
            return
        self.connection.execute(
            "INSERT INTO unfollowed VALUES (?,?,?,?,?,?)",
            (one.psbt_id, quorum, one.status.value, one.collected, one.required, one.tx.serialize()),
        )
        self.connection.executemany(
            "INSERT INTO unfollowed_outputs VALUES (?,?,?)",
            [(script, amount, one.psbt_id) for script, amount in one.payments],
        )
        self.connection.executemany(
            "INSERT INTO unfollowed_spends VALUES (?,?,?)",
            [(one.psbt_id, coin.txid, coin.vout) for coin in one.outpoints],
        )


def _read(row: sqlite3.Row) -> Unfollowed:
    status, tx = ProposalStatus(row["status"]), Transaction.parse(row["tx"], witness=False)
    return Unfollowed(row["psbt_id"], status, row["collected"], row["required"], tx)
