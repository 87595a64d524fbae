"""Reads and writes the journal's rows as frozen values."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from custody.schemas.vaults import MAX_SIGNERS
from multisig import MultisigError, Network, OriginKey, OutPoint, Psbt, Vault
from signerd.core.audit import GENESIS, Entry, Note
from signerd.core.following import is_settled
from signerd.core.states import AT_THE_DEVICE, DECIDED_YES, State
from signerd.core.text import canonical
from signerd.core.values import Approval, Decline, Neighbour, Pin, Record, Signature, Snapshot

_SNAPSHOT = TypeAdapter(Snapshot)
# The name of ``Snapshot.imported`` in journals.
STORED_IMPORTED = "brought"
# States in which a proposal may confirm without a signature stored here.
_LEAVING = ", ".join(f"'{state}'" for state in sorted({*DECIDED_YES, *AT_THE_DEVICE}))

RECORD_COLUMNS = """
SELECT p.*, s.psbt AS signed_psbt, s.idempotency_key
FROM proposals p LEFT JOIN signatures s USING (psbt_id)
"""


def read_record(row: sqlite3.Row) -> Record:
    stored = json.loads(row["snapshot"])
    stored["imported"] = stored.pop(STORED_IMPORTED, None)
    snapshot = _SNAPSHOT.validate_python({**stored, "psbt": row["psbt"]})
    return Record(
        snapshot=snapshot,
        state=State(row["state"]),
        identity=row["identity"],
        approval=_read_approval(row["approval"]),
        signature=_read_signature(row),
        decline=None if row["decline"] is None else Decline(**json.loads(row["decline"])),
        reason=row["reason"],
        alarm=row["alarm"],
        # A journal is checked before it is migrated, and an older one lacks these columns.
        exported=row["exported"] if "exported" in row.keys() else None,  # noqa: SIM118 - a row is no mapping
        let_go=bool(row["let_go"]) if "let_go" in row.keys() else False,  # noqa: SIM118
    )


def _read_approval(text: str | None) -> Approval | None:
    if text is None:
        return None
    stored = json.loads(text)
    return Approval(stored["digest"], frozenset(stored["acknowledged"]))


def _read_signature(row: sqlite3.Row) -> Signature | None:
    if row["signed_psbt"] is None:
        return None
    return Signature(row["signed_psbt"], row["idempotency_key"])


def write_record(connection: sqlite3.Connection, record: Record, quorum: str | None) -> None:
    """Store a record, and the verification code of its vault (``proposals.quorum`` in ``schema``).

    The platform's highest count of signatures stays (S27).
    """
    connection.execute(
        """
        INSERT INTO proposals (psbt_id, workspace_id, vault_id, state, identity, snapshot, psbt, approval,
          decline, reason, alarm, settled, brought_by, quorum, collected, exported, let_go)
        VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
        ON CONFLICT (psbt_id) DO UPDATE SET
          quorum=excluded.quorum, collected=max(collected, excluded.collected), state=excluded.state,
          identity=excluded.identity, snapshot=excluded.snapshot, psbt=excluded.psbt,
          approval=excluded.approval, decline=excluded.decline, reason=excluded.reason,
          alarm=excluded.alarm, settled=excluded.settled, exported=excluded.exported, let_go=excluded.let_go
        """,
        (
            record.psbt_id,
            record.snapshot.workspace_id,
            record.snapshot.vault_id,
            record.state.value,
            record.identity,
            _snapshot_text(record.snapshot),
            record.snapshot.psbt,
            _approval_text(record.approval),
            None if record.decline is None else canonical(asdict(record.decline)).decode(),
            record.reason,
            record.alarm,
            int(is_settled(record)),
            _importer(record.snapshot),
            quorum,
            _bounded(record.snapshot.collected),
            record.exported,
            int(record.let_go),
        ),
    )


def _snapshot_text(snapshot: Snapshot) -> str:
    """All but its PSBT."""
    told = asdict(snapshot)
    del told["psbt"]
    told[STORED_IMPORTED] = told.pop("imported")
    return canonical(told).decode()


def size_of(snapshot: Snapshot) -> int:
    """Its size in the journal: bytes of its PSBT plus characters of the rest."""
    return len(snapshot.psbt) + len(_snapshot_text(snapshot))


def _bounded(signatures: int) -> int:
    """The platform's count, within the limit of signers."""
    return max(0, min(signatures, MAX_SIGNERS))


def _importer(snapshot: Snapshot) -> str | None:
    return None if snapshot.imported is None else snapshot.imported.app_id or ""


def _approval_text(approval: Approval | None) -> str | None:
    if approval is None:
        return None
    return canonical({"acknowledged": sorted(approval.acknowledged), "digest": approval.digest}).decode()


def read_quorum(connection: sqlite3.Connection, psbt_id: str) -> str | None:
    """The verification code stored with the proposal; None where there is none, or no such proposal."""
    row = connection.execute("SELECT quorum FROM proposals WHERE psbt_id = ?", (psbt_id,)).fetchone()
    return None if row is None else row["quorum"]


def write_signature(connection: sqlite3.Connection, psbt_id: str, signature: Signature) -> None:
    connection.execute(
        "INSERT INTO signatures VALUES (?,?,?)", (psbt_id, signature.psbt, signature.idempotency_key)
    )


def write_coins(connection: sqlite3.Connection, snapshot: Snapshot) -> None:
    """Store what the transaction spends and pays, for finding neighbours. Nothing for an unreadable PSBT."""
    try:
        tx = Psbt.parse(snapshot.psbt).tx
    except MultisigError:
        return
    connection.executemany(
        "INSERT OR IGNORE INTO spends VALUES (?,?,?)",
        [(snapshot.psbt_id, i.outpoint.txid, i.outpoint.vout) for i in tx.inputs],
    )
    connection.executemany(
        "INSERT INTO outputs VALUES (?,?,?,?)",
        [(snapshot.psbt_id, n, o.script_pubkey, int(o.amount)) for n, o in enumerate(tx.outputs)],
    )


# Coins are compared across vaults. Payments are compared within a quorum, whatever id the platform gives it,
# and with those whose quorum an older journal did not record. Imported ones are compared with everything: a
# bill presented a second time may name other coins to pay it from.
_NEIGHBOURS = f"""
SELECT other.psbt_id, p.state, p.collected, p.snapshot, coalesce(s.psbt, p.exported, p.psbt) AS psbt,
  s.psbt_id IS NOT NULL AS signed, p.exported IS NOT NULL AS exported,
  coalesce(
    (SELECT min(at) FROM audit WHERE kind = 'signed' AND subject = other.psbt_id),
    (SELECT min(at) FROM audit WHERE kind = 'exported' AND subject = other.psbt_id)
  ) AS signed_at
FROM (
  SELECT theirs.psbt_id FROM spends mine JOIN spends theirs USING (txid, vout) WHERE mine.psbt_id = :id
  UNION
  SELECT theirs.psbt_id FROM outputs mine JOIN outputs theirs USING (script, amount)
  JOIN proposals p ON p.psbt_id = theirs.psbt_id
    AND (p.quorum = :quorum OR p.quorum IS NULL OR p.brought_by IS NOT NULL OR :imported)
  LEFT JOIN signatures s ON s.psbt_id = theirs.psbt_id
  WHERE mine.psbt_id = :id
    AND (s.psbt_id IS NOT NULL OR p.exported IS NOT NULL OR p.state IN ({_LEAVING}) OR p.collected > 0)
  UNION
  SELECT psbt_id FROM proposals WHERE psbt_id = :replaces AND quorum = :quorum
) other
JOIN proposals p ON p.psbt_id = other.psbt_id
LEFT JOIN signatures s ON s.psbt_id = other.psbt_id
WHERE other.psbt_id <> :id ORDER BY other.psbt_id
"""  # noqa: S608 - the states are ours


def read_neighbours(
    connection: sqlite3.Connection,
    psbt_id: str,
    quorum: str | None,
    replaces: str | None = None,
    *,
    imported: bool = False,
) -> tuple[Neighbour, ...]:
    """Other proposals that spend one of its coins, that pay the same from the same quorum and may confirm or
    have others' signatures, or that ``replaces`` names.

    Where one of two was imported, payments are compared across vaults.
    """
    named = {"id": psbt_id, "quorum": quorum, "replaces": replaces, "imported": imported}
    return tuple(_neighbour(connection, row) for row in connection.execute(_NEIGHBOURS, named).fetchall())


def _neighbour(connection: sqlite3.Connection, row: sqlite3.Row) -> Neighbour:
    psbt_id, at = row["psbt_id"], row["signed_at"]
    return Neighbour(
        psbt_id,
        State(row["state"]),
        bool(row["signed"]),
        frozenset(read_coins(connection, psbt_id)),
        frozenset(_payments(connection, psbt_id)),
        row["psbt"],
        None if at is None else datetime.fromisoformat(at),
        row["collected"],
        json.loads(row["snapshot"])["required"],
        bool(row["exported"]),
    )


# Signed but not accepted by the platform, by the time of the signature; ended, by the time of the last entry.
_OVERDUE = """
SELECT p.psbt_id FROM proposals p JOIN audit a ON a.subject = p.psbt_id AND a.kind = 'signed'
WHERE p.state IN ('kept', 'signed') AND p.brought_by IS NULL
GROUP BY p.psbt_id HAVING min(a.at) < :kept_before
UNION ALL
SELECT p.psbt_id FROM proposals p JOIN audit a ON a.subject = p.psbt_id
WHERE p.settled = 0 AND p.state IN ('expired', 'superseded', 'withdrawn') AND p.brought_by IS NULL
GROUP BY p.psbt_id HAVING max(a.at) < :over_before
"""


def overdue(connection: sqlite3.Connection, *, kept_before: str, over_before: str) -> tuple[str, ...]:
    """Ids of proposals signed before ``kept_before`` and never accepted, and of those ended before
    ``over_before`` (RFC 3339 UTC).
    """
    named = {"kept_before": kept_before, "over_before": over_before}
    return tuple(row["psbt_id"] for row in connection.execute(_OVERDUE, named))


def read_coins(connection: sqlite3.Connection, psbt_id: str) -> Iterator[OutPoint]:
    """The outpoints that the proposal's transaction spends."""
    for row in connection.execute("SELECT txid, vout FROM spends WHERE psbt_id = ?", (psbt_id,)):
        yield OutPoint(row["txid"], row["vout"])


def _payments(connection: sqlite3.Connection, psbt_id: str) -> Iterator[tuple[bytes, int]]:
    for row in connection.execute("SELECT script, amount FROM outputs WHERE psbt_id = ?", (psbt_id,)):
        yield row["script"], row["amount"]


def read_pin(row: sqlite3.Row, network: Network) -> Pin:
    return Pin(
        row["vault_id"],
        row["workspace_id"],
        row["name"],
        _vault(row["descriptor"], network),
        read_origin_key(row["own_key"], network),
    )


@lru_cache(maxsize=256)
def read_origin_key(text: str, network: Network) -> OriginKey:
    return OriginKey.parse(text, network)


def code_of(descriptor: str, network: Network) -> str | None:
    """The verification code of a descriptor; None where it cannot be parsed."""
    try:
        return _vault(descriptor, network).verification_code
    except MultisigError:
        return None


@lru_cache(maxsize=256)
def _vault(descriptor: str, network: Network) -> Vault:
    """Cached, because a vault keeps the branch nodes from which every derivation starts."""
    return Vault.from_descriptor(descriptor, network)


def read_pinned_codes(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """By vault id, the codes of all vaults ever pinned under it, unpinned ones included."""
    found: dict[str, set[str]] = {}
    for row in connection.execute("SELECT subject, facts FROM audit WHERE kind = 'pinned'"):
        found.setdefault(row["subject"], set()).update(_code_told(row["facts"]))
    for row in connection.execute("SELECT vault_id, code FROM pins"):
        found.setdefault(row["vault_id"], set()).add(row["code"])
    return {vault_id: frozenset(codes) for vault_id, codes in found.items() if codes}


def _code_told(facts: str) -> set[str]:
    code = json.loads(facts).get("code")
    return {code} if isinstance(code, str) else set()


def audit_entries(connection: sqlite3.Connection, after: int = 0) -> Iterator[Entry]:
    """The chain in order. Raises sqlite3.DatabaseError, ValueError or KeyError where a row cannot be read."""
    return _entries(connection.execute("SELECT * FROM audit WHERE sequence > ? ORDER BY sequence", (after,)))


def audit_head(connection: sqlite3.Connection) -> tuple[int, bytes]:
    """The chain's length and its last hash."""
    row = connection.execute("SELECT sequence, digest FROM audit ORDER BY sequence DESC LIMIT 1").fetchone()
    return (0, GENESIS) if row is None else (row["sequence"], row["digest"])


def _entries(found: sqlite3.Cursor) -> Iterator[Entry]:
    for row in found:
        facts: dict[str, Any] = json.loads(row["facts"])
        note = Note(row["kind"], row["subject"], facts)
        yield Entry(row["sequence"], row["at"], note, row["previous"], row["digest"])


_OF_KIND = (
    "SELECT subject, facts FROM audit WHERE kind = ? AND sequence > ? AND sequence <= ? ORDER BY sequence"
)


def facts_since(
    connection: sqlite3.Connection, kind: str, after: int
) -> tuple[int, list[tuple[str, dict[str, Any]]]]:
    """The chain's length, and subject and facts of the entries of that kind after ``after``."""
    head = connection.execute("SELECT coalesce(max(sequence), 0) FROM audit").fetchone()[0]
    if head == after:
        return head, []
    found = connection.execute(_OF_KIND, (kind, after, head)).fetchall()
    return head, [(row["subject"], json.loads(row["facts"])) for row in found]


# SQLite's lower() folds ASCII only, which is all that kinds, ids and addresses use.
_AUDIT_PAGE = """
SELECT * FROM audit WHERE sequence > :after AND sequence < :before
  AND instr(lower(kind || ' ' || subject || ' ' || facts), lower(:search)) > 0
ORDER BY sequence {order} LIMIT :limit
"""


def audit_page(
    connection: sqlite3.Connection, search: str, limit: int, *, after: int | None, before: int | None
) -> Iterator[Entry]:
    """Entries that contain ``search``: in order after ``after`` where given, else the newest first, below
    ``before``.
    """
    order = "DESC" if after is None else "ASC"
    last = 2**63 - 1
    named = {"after": after or 0, "before": before or last, "search": search, "limit": limit}
    return _entries(connection.execute(_AUDIT_PAGE.format(order=order), named))


def write_entry(connection: sqlite3.Connection, entry: Entry) -> None:
    facts = canonical(dict(entry.note.facts)).decode()
    connection.execute(
        "INSERT INTO audit VALUES (?,?,?,?,?,?,?)",
        (entry.sequence, entry.at, entry.note.kind, entry.note.subject, facts, entry.previous, entry.digest),
    )
