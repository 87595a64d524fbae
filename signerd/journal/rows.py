"""Reads and writes the journal's rows as frozen values."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from typing import Any

from pydantic import TypeAdapter

from custody.schemas.vaults import MAX_SIGNERS
from multisig import Network, OriginKey, OutPoint
from signerd.core.audit import GENESIS, Entry, Note
from signerd.core.claims import vault_of
from signerd.core.following import is_settled
from signerd.core.states import DECIDED_YES, State
from signerd.core.text import canonical
from signerd.core.values import (
    OPEN_STATES,
    Approval,
    Decline,
    Neighbour,
    Pin,
    Record,
    SignedPsbt,
    Snapshot,
    Uncompared,
    identity_of,
    parts_of,
    tx_of,
)

_SNAPSHOT = TypeAdapter(Snapshot)
# The output of a message's transaction (`multisig.bip322`): 0 to OP_RETURN, and no other. As a payment it
# would burn all of its coins, and is refused.
NOTHING_PAID = (b"\x6a", 0)
# States in which a proposal may confirm without a signature stored here.
_LEAVING = ", ".join(f"'{state}'" for state in sorted({*DECIDED_YES, State.SIGNING}))
_OPEN = ", ".join(f"'{state}'" for state in sorted(OPEN_STATES))

RECORD_COLUMNS = """
SELECT p.*, s.psbt AS signed_psbt, s.idempotency_key
FROM proposals p LEFT JOIN signatures s USING (psbt_id)
"""


def read_record(row: sqlite3.Row) -> Record:
    snapshot = _SNAPSHOT.validate_python({**json.loads(row["snapshot"]), "psbt": row["psbt"]})
    approval = None if row["approval"] is None else json.loads(row["approval"])
    signed = row["signed_psbt"]
    return Record(
        snapshot=snapshot,
        state=State(row["state"]),
        identity=row["identity"],
        approval=approval and Approval(approval["digest"], frozenset(approval["acknowledged"])),
        signature=None if signed is None else SignedPsbt(signed, row["idempotency_key"]),
        decline=None if row["decline"] is None else Decline(**json.loads(row["decline"])),
        reason=row["reason"],
        alarm=row["alarm"],
        exported=row["exported"],
        let_go=bool(row["let_go"]),
    )


def write_record(connection: sqlite3.Connection, record: Record, quorum: str | None) -> None:
    """Store a record, and the verification code of its vault (``proposals.quorum`` in ``schema.sql``).

    The platform's highest count of signatures, within the limit of signers, stays (S27).
    """
    snapshot, approval, decline = record.snapshot, record.approval, record.decline
    approved = approval and {"acknowledged": sorted(approval.acknowledged), "digest": approval.digest}
    columns = {
        "psbt_id": record.psbt_id,
        "workspace_id": snapshot.workspace_id,
        "vault_id": snapshot.vault_id,
        "imported_by": None if snapshot.imported is None else snapshot.imported.app_id or "",
        "collected": max(0, min(snapshot.collected, MAX_SIGNERS)),
        "judged": None,
        "state": record.state.value,
        "identity": record.identity,
        "snapshot": _snapshot_text(snapshot),
        "psbt": snapshot.psbt,
        "approval": approved and canonical(approved).decode(),
        "decline": decline and canonical(asdict(decline)).decode(),
        "reason": record.reason,
        "alarm": record.alarm,
        "settled": int(is_settled(record)),
        "quorum": quorum,
        "exported": record.exported,
        "let_go": int(record.let_go),
    }
    # The first four stay as they are, and the fifth only grows.
    changed = ", ".join(f"{name}=excluded.{name}" for name in (*columns,)[5:])
    connection.execute(
        f"INSERT INTO proposals ({', '.join(columns)}) VALUES (:{', :'.join(columns)}) "  # noqa: S608 - names of ours
        f"ON CONFLICT (psbt_id) DO UPDATE SET collected=max(collected, excluded.collected), {changed}",
        columns,
    )


def _snapshot_text(snapshot: Snapshot) -> str:
    """All but its PSBT."""
    fields = asdict(snapshot)
    del fields["psbt"]
    return canonical(fields).decode()


def size_of(snapshot: Snapshot) -> int:
    """Its size in the journal: bytes of its PSBT plus characters of the rest."""
    return len(snapshot.psbt) + len(_snapshot_text(snapshot))


def read_quorum(connection: sqlite3.Connection, psbt_id: str) -> str | None:
    """The verification code stored with the proposal; None where there is none, or no such proposal."""
    row = connection.execute("SELECT quorum FROM proposals WHERE psbt_id = ?", (psbt_id,)).fetchone()
    return None if row is None else row["quorum"]


def write_coins(connection: sqlite3.Connection, snapshot: Snapshot) -> None:
    """Store what the transaction spends and pays, for finding neighbours. Nothing for an unreadable PSBT."""
    tx = tx_of(snapshot.psbt)
    if tx is None:
        return
    connection.executemany(
        "INSERT OR IGNORE INTO spends VALUES (?,?,?)",
        [(snapshot.psbt_id, i.outpoint.txid, i.outpoint.vout) for i in tx.inputs],
    )
    connection.executemany(
        "INSERT OR IGNORE INTO outputs VALUES (?,?,?)",
        [(o.script_pubkey, int(o.amount), snapshot.psbt_id) for o in tx.outputs],
    )
    query = "UPDATE proposals SET parts = ? WHERE psbt_id = ?"
    connection.execute(query, (parts_of(snapshot.psbt), snapshot.psbt_id))


# Of each kind of neighbour so many are compared, those signed here first, then the newest; the rest is
# counted. More fee bumps of one payment than anybody makes.
MOST_COMPARED = 24

# Coins are compared across vaults. Payments are compared within a quorum, whatever id the platform gives it,
# and with those whose vault could not be read. Imported ones are compared with everything: a
# bill presented a second time may name other coins to pay it from. Each row of ``spends`` and ``outputs`` is
# read once at most (S34).
_NEIGHBOURS = f"""
WITH near AS MATERIALIZED (
  SELECT theirs.psbt_id, min(theirs.txid || ':' || theirs.vout) AS coin
  FROM spends mine CROSS JOIN spends theirs USING (txid, vout)
  WHERE mine.psbt_id = :id AND theirs.psbt_id <> :id GROUP BY theirs.psbt_id
), same AS MATERIALIZED (
  SELECT DISTINCT theirs.psbt_id FROM outputs mine CROSS JOIN outputs theirs USING (script, amount)
  WHERE mine.psbt_id = :id AND theirs.psbt_id <> :id
)
SELECT p.psbt_id, p.state, p.collected, p.identity, near.coin, s.psbt_id IS NOT NULL AS signed,
  p.exported IS NOT NULL AS exported,
  (s.psbt_id IS NOT NULL OR p.exported IS NOT NULL OR p.state IN ({_LEAVING})) AS leaves
FROM (
  SELECT psbt_id FROM near UNION
  SELECT psbt_id FROM same JOIN proposals p USING (psbt_id)
  WHERE p.quorum = :quorum OR p.quorum IS NULL OR p.imported_by IS NOT NULL OR :imported UNION
  SELECT psbt_id FROM proposals WHERE psbt_id = :replaces AND quorum = :quorum AND psbt_id <> :id
) other
JOIN proposals p USING (psbt_id)
LEFT JOIN signatures s USING (psbt_id)
LEFT JOIN near USING (psbt_id)
WHERE leaves OR (p.psbt_id = :replaces AND (p.quorum = :quorum OR near.coin IS NOT NULL))
  OR (near.coin IS NOT NULL AND p.state IN ({_OPEN})) OR (near.coin IS NULL AND p.collected > 0)
ORDER BY signed DESC, p.exported IS NOT NULL DESC, p.rowid DESC
"""  # noqa: S608 - the states are ours

_DETAILS = """
SELECT CASE WHEN :whole THEN coalesce(s.psbt, p.exported, p.psbt) ELSE x'' END AS psbt,
  CASE WHEN p.collected > 0 THEN json_extract(p.snapshot, '$.required') ELSE 0 END AS required,
  coalesce(
    (SELECT min(at) FROM audit WHERE kind = 'signed' AND subject = :id),
    (SELECT min(at) FROM audit WHERE kind = 'exported' AND subject = :id)
  ) AS signed_at
FROM proposals p LEFT JOIN signatures s USING (psbt_id) WHERE p.psbt_id = :id
"""

_SHARED = """
SELECT theirs.script, theirs.amount FROM outputs theirs JOIN outputs mine USING (script, amount)
WHERE theirs.psbt_id = ? AND mine.psbt_id = ?
"""


def read_neighbours(
    connection: sqlite3.Connection,
    psbt_id: str,
    quorum: str | None,
    replaces: str | None = None,
    *,
    imported: bool = False,
) -> tuple[tuple[Neighbour, ...], Uncompared]:
    """Other proposals that spend one of its coins, that pay the same from the same quorum and may confirm or
    have others' signatures, or that ``replaces`` names; and how many more there are.

    Where one of two was imported, payments are compared across vaults.
    """
    named = {"id": psbt_id, "quorum": quorum, "replaces": replaces, "imported": imported}
    groups: dict[str, list[sqlite3.Row]] = {name: [] for name in ("rivals", "open", "payments", "others", "")}
    for row in connection.execute(_NEIGHBOURS, named):
        groups[_group(row, replaces)].append(row)
    left = {name: max(0, len(rows) - MOST_COMPARED) for name, rows in groups.items() if name}
    compared = (row for rows in groups.values() for row in rows[:MOST_COMPARED])
    neighbours = (
        _neighbour(connection, row, psbt_id, is_named=row["psbt_id"] == replaces)
        for row in sorted(compared, key=itemgetter("psbt_id"))
    )
    return tuple(neighbours), Uncompared(**left)


def _group(row: sqlite3.Row, replaces: str | None) -> str:
    """As the fields of ``Uncompared``. The one that is named is in none: it is always compared."""
    if row["psbt_id"] == replaces:
        return ""
    if row["coin"] is not None:
        return "rivals" if row["leaves"] else "open"
    return "payments" if row["leaves"] else "others"


def _neighbour(connection: sqlite3.Connection, row: sqlite3.Row, beside: str, *, is_named: bool) -> Neighbour:
    psbt_id, coin = row["psbt_id"], row["coin"]
    # The figures of what cannot confirm, or pays the same from other coins, are not compared.
    whole = coin is not None and bool(row["leaves"])
    details = connection.execute(_DETAILS, {"id": psbt_id, "whole": whole or is_named}).fetchone()
    at, (txid, _, vout) = details["signed_at"], (coin or "").partition(":")
    paid = connection.execute("SELECT script, amount FROM outputs WHERE psbt_id = ? LIMIT 2", (psbt_id,))
    return Neighbour(
        psbt_id,
        State(row["state"]),
        bool(row["signed"]),
        frozenset() if coin is None else frozenset({OutPoint(txid, int(vout))}),
        frozenset((one["script"], one["amount"]) for one in connection.execute(_SHARED, (psbt_id, beside))),
        details["psbt"],
        None if at is None else datetime.fromisoformat(at),
        row["collected"],
        details["required"],
        bool(row["exported"]),
        row["identity"],
        is_proof=[tuple(one) for one in paid] == [NOTHING_PAID],
    )


# Signed but not accepted by the platform, by the time of the signature; ended, by the time of the last entry.
OVERDUE = """
SELECT p.psbt_id FROM proposals p JOIN audit a ON a.subject = p.psbt_id AND a.kind = 'signed'
WHERE p.state IN ('kept', 'signed') AND p.imported_by IS NULL
GROUP BY p.psbt_id HAVING min(a.at) < :kept_before
UNION ALL
SELECT p.psbt_id FROM proposals p JOIN audit a ON a.subject = p.psbt_id
WHERE p.settled = 0 AND p.state IN ('expired', 'superseded', 'withdrawn') AND p.imported_by IS NULL
GROUP BY p.psbt_id HAVING max(a.at) < :over_before
"""


def read_pin(row: sqlite3.Row, network: Network) -> Pin:
    return Pin(
        row["vault_id"],
        row["workspace_id"],
        row["name"],
        vault_of(row["descriptor"], network),
        read_origin_key(row["own_key"], network),
    )


read_origin_key = lru_cache(maxsize=256)(OriginKey.parse)


def read_pinned_codes(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """By vault id, the codes of all vaults ever pinned under it, unpinned ones included."""
    codes_by_vault: dict[str, set[str]] = {}
    query = (
        "SELECT subject, json_extract(facts, '$.code') FROM audit WHERE kind = 'pinned' "
        "UNION SELECT vault_id, code FROM pins"
    )
    for vault_id, code in connection.execute(query):
        codes_by_vault.setdefault(vault_id, set()).add(code)
    return {vault_id: frozenset(codes) for vault_id, codes in codes_by_vault.items()}


def audit_entries(connection: sqlite3.Connection, after: int = 0) -> Iterator[Entry]:
    """The chain in order. Raises sqlite3.DatabaseError, ValueError or KeyError where a row cannot be read."""
    return entries_of(
        connection.execute("SELECT * FROM audit WHERE sequence > ? ORDER BY sequence", (after,))
    )


def audit_head(connection: sqlite3.Connection) -> tuple[int, bytes]:
    """The chain's length and its last hash."""
    row = connection.execute("SELECT sequence, digest FROM audit ORDER BY sequence DESC LIMIT 1").fetchone()
    return (0, GENESIS) if row is None else (row["sequence"], row["digest"])


def entries_of(cursor: sqlite3.Cursor) -> Iterator[Entry]:
    for row in cursor:
        facts: dict[str, Any] = json.loads(row["facts"])
        note = Note(row["kind"], row["subject"], facts)
        yield Entry(row["sequence"], row["at"], note, row["previous"], row["digest"])


# SQLite's lower() folds ASCII only, which is all that kinds, ids and addresses use.
AUDIT_PAGE = """
SELECT * FROM audit WHERE sequence > :after AND sequence < :before
  AND instr(lower(kind || ' ' || subject || ' ' || facts), lower(:search)) > 0
ORDER BY sequence {order} LIMIT :limit
"""


_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'audit' AND name NOT LIKE 'sqlite_%' "
    "ORDER BY name"
)


def digest_of_tables(connection: sqlite3.Connection) -> str:
    """A SHA-256 over every row of every table but the audit chain, as 64 hexadecimal digits."""
    digest = hashlib.sha256(b"signerd-tables-v1")
    for (table,) in connection.execute(_TABLES).fetchall():
        digest.update(repr(table).encode())
        for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608 - names of ours
            digest.update(repr(tuple(row)).encode())
    return digest.hexdigest()


def why_unproven(connection: sqlite3.Connection) -> str | None:
    """What the audit chain says of a signature, an export or a proposal's transaction and the rows do not, or
    the reverse; None where they agree.
    """
    chained: dict[tuple[str, str], object] = {}
    for row in connection.execute(_PROVEN):
        kind, subject, facts = row["kind"], row["subject"], json.loads(row["facts"])
        chained[kind, subject] = facts["transaction" if kind == "received" else "psbt_sha256"]
        if kind == "signed":
            chained["submitted as", subject] = facts["idempotency_key"]
    kept: dict[tuple[str, str], object] = {}
    for row in connection.execute(RECORD_COLUMNS):
        record = read_record(row)
        kept["received", record.psbt_id] = identity_of(record.snapshot.psbt)
        if record.exported is not None:
            kept["exported", record.psbt_id] = hashlib.sha256(record.exported).hexdigest()
        if record.signature is not None:
            kept["signed", record.psbt_id] = hashlib.sha256(record.signature.psbt).hexdigest()
            kept["submitted as", record.psbt_id] = record.signature.idempotency_key
    # One that ended undecided may be forgotten; what was signed or exported never is.
    chained = {key: what for key, what in chained.items() if key in kept or key[0] != "received"}
    wrong = sorted(key for key in chained.keys() | kept.keys() if chained.get(key) != kept.get(key))
    return None if not wrong else f"the chain and the rows differ about what was {' '.join(wrong[0])}"


_PROVEN = "SELECT kind, subject, facts FROM audit WHERE kind IN ('received', 'exported', 'signed')"


def rebuild(connection: sqlite3.Connection) -> None:
    """What a restore does not take from the backup: the coins and payments are read from the stored PSBTs,
    and nobody is let in.
    """
    for table in ("spends", "outputs", "unfollowed_spends", "unfollowed_outputs", "apps", "origins"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
    connection.execute("UPDATE proposals SET judged = NULL")
    for row in connection.execute(RECORD_COLUMNS).fetchall():
        write_coins(connection, read_record(row).snapshot)


def write_entry(connection: sqlite3.Connection, entry: Entry) -> None:
    facts = canonical(dict(entry.note.facts)).decode()
    connection.execute(
        "INSERT INTO audit VALUES (?,?,?,?,?,?,?)",
        (entry.sequence, entry.at, entry.note.kind, entry.note.subject, facts, entry.previous, entry.digest),
    )
