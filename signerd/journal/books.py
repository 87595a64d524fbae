"""The journal's data besides proposals, one book for each kind.

Screens and spending are read from the audit chain when they are asked for. Used addresses.
Tokens: bytecode by its hash and its contract, proven before it is stored. Proposals that this machine never
followed, and how far the platform's whole list was read (S27). Whether this journal was restored from a
backup: what was signed since the backup is only in the platform's list, and until that is read nothing is
approved (ADR 26).
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from custody.schemas.proposals import ProposalStatus
from multisig import Fingerprint, Transaction
from multisig.tokens import Bytecode, Deploy, Payload, TokenCall, bytecode_hash, parse_bytecode
from signerd.core.audit import Note
from signerd.core.places import NEW_POLICY, Places, joined
from signerd.core.rules.spending import Spent
from signerd.core.text import canonical
from signerd.core.tokens import ModelScreen, PublishedToken, payload_of_bytes, prove_blob, prove_token
from signerd.core.values import Snapshot, Unfollowed
from signerd.journal import rows

KIND = "device-screen"


def screen_note(fingerprint: Fingerprint, screen: ModelScreen) -> Note:
    """``whole`` is -1 where unknown: facts are text and integers."""
    whole = -1 if screen.whole is None else screen.whole
    facts = {
        "first": screen.first,
        "model": screen.name,
        "no_funds": screen.no_funds,
        "no_proof": screen.no_proof,
        "whole": whole,
    }
    return Note(KIND, str(fingerprint), facts)


def read_screen(connection: sqlite3.Connection, fingerprint: Fingerprint) -> ModelScreen | None:
    """As it was noted last; None where no device with this master key was seen."""
    query = "SELECT facts FROM audit WHERE subject = ? AND kind = ? ORDER BY sequence DESC LIMIT 1"
    row = connection.execute(query, (str(fingerprint), KIND)).fetchone()
    if row is None:
        return None
    facts = json.loads(row["facts"])
    whole = None if facts["whole"] < 0 else facts["whole"]
    return ModelScreen(facts["model"], whole, facts["first"], facts["no_proof"], facts["no_funds"])


def read_places(connection: sqlite3.Connection, codes: Iterable[str]) -> dict[str, Places]:
    """The addresses that are known to be used, by the policy's code; no entry for a policy for which nothing
    was signed here.
    """
    query = "SELECT places FROM places WHERE policy = ?"
    rows_of = ((code, connection.execute(query, (code,)).fetchone()) for code in codes)
    return {code: _places(json.loads(row["places"])) for code, row in rows_of if row is not None}


def write_places(connection: sqlite3.Connection, facts: Mapping[str, Any]) -> None:
    """``facts``: of the entry *signed*."""
    code = facts["policy"]
    known = read_places(connection, (code,)).get(code, NEW_POLICY)
    places = canonical(joined(known, _places(facts["places"]))).decode()
    connection.execute("INSERT OR REPLACE INTO places VALUES (?,?)", (code, places))


def rebuild_places(connection: sqlite3.Connection) -> None:
    """From the chain."""
    connection.execute("DELETE FROM places")
    for row in connection.execute("SELECT facts FROM audit WHERE kind = 'signed'").fetchall():
        write_places(connection, json.loads(row["facts"]))


def _places(told: Any) -> Places:
    receive, change = (tuple((first, last) for first, last in spans) for spans in told)
    return receive, change


# A rolling window, so that the limit cannot be spent twice around midnight; by the latest time that the chain
# has seen, so that a clock that is set back frees nothing. What a device was asked and did not sign is left
# out by its state.
_SPENT = """
SELECT p.psbt_id, p.quorum, (
  SELECT facts FROM audit WHERE subject = p.psbt_id AND kind IN ('approved', 'recalled')
  ORDER BY sequence DESC LIMIT 1
) AS approved
FROM proposals p LEFT JOIN signatures s USING (psbt_id)
WHERE (s.psbt_id IS NOT NULL OR p.exported IS NOT NULL OR p.state = 'signing')
  AND p.psbt_id IN (
    SELECT subject FROM audit INDEXED BY audit_by_kind
    WHERE kind IN ('device-asked', 'exported', 'signed')
      AND sequence >= (SELECT min(sequence) FROM audit INDEXED BY audit_times WHERE at > ?)
  )
ORDER BY p.rowid
"""


def spent_since(connection: sqlite3.Connection, begin: str) -> tuple[Spent, ...]:
    """What was signed or exported, or is at a device, from the first entry after ``begin`` on (RFC 3339
    UTC).
    """
    return tuple(
        Spent(
            row["psbt_id"],
            row["quorum"],
            sum(amount for _script, amount in json.loads(row["approved"])["payments"]),
            frozenset(rows.read_coins(connection, row["psbt_id"])),
        )
        for row in connection.execute(_SPENT, (begin,)).fetchall()
    )


@dataclass(frozen=True)
class TokenBook:
    """Reads at any time; writes within the journal's transaction only."""

    connection: sqlite3.Connection

    def named_by(self, snapshot: Snapshot) -> Bytecode | None:
        """The bytecode of the token in a proposal's payload; None without a payload, or where it is not
        proven here.
        """
        payload = payload_of_bytes(snapshot.psbt) if snapshot.is_of_token else None
        return None if payload is None else self.bytecode(payload)

    def bytecode(self, payload: Payload) -> Bytecode | None:
        digest = payload.bytecode_hash if isinstance(payload, Deploy) else self._hash(payload.contract_id)
        if digest is None:
            return None
        row = self.connection.execute("SELECT blob FROM bytecodes WHERE hash = ?", (digest,)).fetchone()
        return None if row is None else _bytecode(row["blob"])

    def _hash(self, contract_id: str) -> bytes | None:
        query = "SELECT hash FROM tokens WHERE contract_id = ?"
        row = self.connection.execute(query, (contract_id,)).fetchone()
        return None if row is None else bytes(row["hash"])

    def write(self, payload: Payload, published: PublishedToken) -> Bytecode:
        """Store the proof of the payload's token for good. Raises NotProven."""
        if isinstance(payload, TokenCall):
            proven = prove_token(payload.contract_id, published)
        else:
            proven = prove_blob(payload.bytecode_hash, published.bytecode)
        digest = bytecode_hash(published.bytecode)
        self.connection.execute("INSERT OR IGNORE INTO bytecodes VALUES (?,?)", (digest, published.bytecode))
        if isinstance(payload, TokenCall):
            self.connection.execute(
                "INSERT OR IGNORE INTO tokens VALUES (?,?,?)",
                (payload.contract_id, digest, published.deployment),
            )
        return proven


@lru_cache(maxsize=32)
def _bytecode(blob: bytes) -> Bytecode:
    """Cached: a list of a thousand addresses takes milliseconds to parse, at every view of a proposal."""
    return parse_bytecode(blob)


# Years of fee bumps in a large workspace.
MOST_VERSIONS = 20_000


@dataclass(frozen=True)
class VersionBook:
    """Replacements of payments, and whether this machine had signed the replaced one when it first heard of
    them. Writes only within the journal's transaction.
    """

    connection: sqlite3.Connection

    def is_news(self, psbt_id: str, replaces: str, *, after_signature: bool) -> bool:
        """Whether to write it: only the first time counts. After a signature one replacement is enough; of
        the others ``MOST_VERSIONS`` are stored. One beyond them counts as after the signature, and stops it.
        """
        query = "SELECT 1 FROM newer_versions WHERE psbt_id = ?"
        if self.connection.execute(query, (psbt_id,)).fetchone() is not None:
            return False
        if after_signature:
            return self.after_signature(replaces) is None
        (count,) = self.connection.execute("SELECT count(*) FROM newer_versions").fetchone()
        return bool(count < MOST_VERSIONS)

    def write(self, psbt_id: str, replaces: str, *, after_signature: bool) -> None:
        values = (psbt_id, replaces, int(after_signature))
        self.connection.execute("INSERT INTO newer_versions VALUES (?,?,?)", values)

    def after_signature(self, psbt_id: str) -> str | None:
        """A replacement of the proposal first heard of after the signature; None where there is none."""
        query = "SELECT psbt_id FROM newer_versions WHERE replaces = ? AND after_signature = 1 LIMIT 1"
        row = self.connection.execute(query, (psbt_id,)).fetchone()
        return None if row is None else str(row["psbt_id"])


# A rent of eight years. The first are compared; a person is shown three.
MOST_COMPARED = 100

# A conflicting transaction cannot be paid as well and is left out before the limit: otherwise the platform
# could push the others past the limit with copies of the proposal. The oldest count first, for the same
# reason.
_PAYING_THE_SAME = """
SELECT theirs.* FROM unfollowed theirs
WHERE theirs.psbt_id IN (
    SELECT unfollowed_outputs.psbt_id FROM outputs mine JOIN unfollowed_outputs USING (script, amount)
    WHERE mine.psbt_id = :id
  )
  AND theirs.psbt_id <> :id AND (theirs.quorum = :quorum OR :imported)
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

    def paying_the_same(self, psbt_id: str, quorum: str | None, *, imported: bool) -> tuple[Unfollowed, ...]:
        """Those of the quorum with an equal output; of any vault where the proposal was imported
        (``imported``).

        One that is followed by now counts here until its record has others' signatures itself.
        """
        named = {"id": psbt_id, "quorum": quorum, "imported": imported, "most": MOST_COMPARED}
        return tuple(_read(row) for row in self.connection.execute(_PAYING_THE_SAME, named))

    def heard_until(self, workspace_id: int, codes: frozenset[str]) -> str | None:
        """The last proposal that was read; None where none was, or one of these vaults was pinned since."""
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

    def forget_all_heard(self) -> None:
        self.connection.execute("DELETE FROM heard")

    def rebuild(self) -> None:
        """The rows by which they are found, from the transactions."""
        for row in self.connection.execute("SELECT * FROM unfollowed").fetchall():
            self._write_parts(_read(row))

    def knows(self, psbt_id: str) -> bool:
        query = "SELECT 1 FROM unfollowed WHERE psbt_id = ?"
        return self.connection.execute(query, (psbt_id,)).fetchone() is not None

    def write(self, quorum: str, one: Unfollowed) -> None:
        """The highest count of signatures and the first transaction reported are kept."""
        if self.knows(one.psbt_id):
            query = "UPDATE unfollowed SET status = ?, collected = max(collected, ?) WHERE psbt_id = ?"
            self.connection.execute(query, (one.status.value, one.collected, one.psbt_id))
            return
        self.connection.execute(
            "INSERT INTO unfollowed VALUES (?,?,?,?,?,?)",
            (one.psbt_id, quorum, one.status.value, one.collected, one.required, one.tx.serialize()),
        )
        self._write_parts(one)

    def _write_parts(self, one: Unfollowed) -> None:
        self.connection.executemany(
            "INSERT INTO unfollowed_outputs VALUES (?,?,?)",
            [(script, amount, one.psbt_id) for script, amount in one.payments],
        )
        self.connection.executemany(
            "INSERT INTO unfollowed_spends VALUES (?,?,?)",
            [(one.psbt_id, coin.txid, coin.vout) for coin in one.outpoints],
        )


def _read(row: sqlite3.Row) -> Unfollowed:
    status, tx = ProposalStatus(row["status"]), _transaction(row["tx"])
    return Unfollowed(row["psbt_id"], status, row["collected"], row["required"], tx)


@lru_cache(maxsize=MOST_COMPARED)
def _transaction(raw: bytes) -> Transaction:
    """Cached: a hundred of a hundred kilobytes may stand beside every proposal."""
    return Transaction.parse(raw, witness=False)


RESTORED, CAUGHT_UP = "restored", "caught-up"
# The last entry of a backup's own chain; and that one was made, in the journal that it is of.
BACKUP, BACKED_UP = "backup", "backed-up"
SUBJECT = "journal"

_LAST = "SELECT sequence, facts FROM audit WHERE kind = ? ORDER BY sequence DESC LIMIT 1"
_SINCE = "SELECT subject, facts FROM audit WHERE kind = ? AND sequence > ?"


def restored_note(made_at: datetime, entries: int, head: bytes) -> Note:
    """``made_at``: the backup's time. ``entries``, ``head``: its chain's length and last hash."""
    facts = {"entries": entries, "head": head.hex(), "made_at": made_at.isoformat()}
    return Note(RESTORED, SUBJECT, facts)


def backed_up_note(made_at: str, fingerprint: str) -> Note:
    return Note(BACKED_UP, SUBJECT, {"fingerprint": fingerprint, "made_at": made_at})


def caught_up_note(workspace_id: int, codes: Iterable[str]) -> Note:
    """The workspace's whole list was compared with the vaults of these codes."""
    return Note(CAUGHT_UP, str(workspace_id), {"codes": sorted(codes)})


@dataclass(frozen=True)
class Restored:
    """The last restore: its position in the chain, and the backup's time."""

    sequence: int
    made_at: datetime


def read_restored(connection: sqlite3.Connection) -> Restored | None:
    row = connection.execute(_LAST, (RESTORED,)).fetchone()
    if row is None:
        return None
    return Restored(row["sequence"], datetime.fromisoformat(json.loads(row["facts"])["made_at"]))


def behind(
    connection: sqlite3.Connection, restored: Restored | None, pins: Iterable[tuple[int, str]]
) -> frozenset[int]:
    """``pins``: workspaces with the codes of their vaults. Those workspaces whose whole list was not read for
    each of their vaults since the restore; empty without a restore.
    """
    if restored is None:
        return frozenset()
    found = connection.execute(_SINCE, (CAUGHT_UP, restored.sequence))
    covered = {
        (int(row["subject"]), code) for row in found for code in json.loads(row["facts"]).get("codes", ())
    }
    return frozenset(workspace for workspace, code in set(pins) - covered)
