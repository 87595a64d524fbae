"""What a proposal is judged by, beside keys, vaults and other proposals.

Screens and spending are read from the audit chain when they are asked for. Used addresses. Proposals that
this machine never followed (S27).
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

from custody.schemas.proposals import ProposalStatus
from multisig import RECEIVE, Fingerprint, Network, OutPoint, Transaction, encode_address, ends_of, resembled
from multisig.tokens import parse_bytecode
from signerd.core.places import NEW_POLICY, Places, joined
from signerd.core.rules.values import Spent
from signerd.core.text import canonical
from signerd.core.tokens import ModelScreen
from signerd.core.values import Unfollowed
from signerd.journal.rows import read_pin

# Kinds of entries of the chain: what a device's screen shows; the last one of a backup's own chain, and that
# one was made, in the journal that it is of; that a workspace's whole list was read since a restore.
SCREEN, BACKUP, BACKED_UP, CAUGHT_UP = "device-screen", "backup", "backed-up", "caught-up"
SUBJECT = "journal"


def read_screen(connection: sqlite3.Connection, fingerprint: Fingerprint) -> ModelScreen | None:
    """As it was noted last; None where no device with this master key was seen."""
    query = "SELECT facts FROM audit WHERE subject = ? AND kind = ? ORDER BY sequence DESC LIMIT 1"
    row = connection.execute(query, (str(fingerprint), SCREEN)).fetchone()
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


def _places(stored: Any) -> Places:
    receive, change = (tuple((first, last) for first, last in spans) for spans in stored)
    return receive, change


def write_payees(connection: sqlite3.Connection, psbt_id: str, network: Network) -> None:
    """What it pays was paid before, from now on."""
    rows_of = ((ends_of(address), address, psbt_id) for address in read_paid(connection, psbt_id, network))
    connection.executemany("INSERT OR IGNORE INTO payees VALUES (?,?,?)", rows_of)


def rebuild_payees(connection: sqlite3.Connection, network: Network) -> None:
    """From the outputs of what is signed or exported."""
    connection.execute("DELETE FROM payees")
    query = (
        "SELECT psbt_id FROM proposals LEFT JOIN signatures s USING (psbt_id) "
        "WHERE exported IS NOT NULL OR s.psbt IS NOT NULL ORDER BY proposals.rowid"
    )
    for row in connection.execute(query).fetchall():
        write_payees(connection, row["psbt_id"], network)


def read_resembled(
    connection: sqlite3.Connection,
    network: Network,
    paid: Collection[str],
    book: Collection[str],
    besides: str = "",
) -> dict[str, str]:
    """Of the addresses, what only resembles the first one of a pinned vault, one of the book, or one that
    another payment than ``besides`` was signed to.
    """
    query = "SELECT address FROM payees WHERE ends IN (SELECT value FROM json_each(?)) AND psbt_id <> ?"
    signed = connection.execute(query, (json.dumps([ends_of(address) for address in paid]), besides))
    pins = (read_pin(row, network) for row in connection.execute("SELECT * FROM pins"))
    known = {pin.vault.address(RECEIVE, 0) for pin in pins}.union(row["address"] for row in signed)
    return resembled(paid, known, book)


def read_paid(connection: sqlite3.Connection, psbt_id: str, network: Network) -> list[str]:
    """The addresses that it pays."""
    query = "SELECT DISTINCT script FROM outputs WHERE psbt_id = ?"
    addresses = (encode_address(row["script"], network) for row in connection.execute(query, (psbt_id,)))
    return [address for address in addresses if address is not None]


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
    coins = "SELECT txid, vout FROM spends WHERE psbt_id = ?"
    return tuple(
        Spent(
            row["psbt_id"],
            row["quorum"],
            sum(amount for _script, amount in json.loads(row["approved"])["payments"]),
            frozenset(OutPoint(*coin) for coin in connection.execute(coins, (row["psbt_id"],))),
        )
        for row in connection.execute(_SPENT, (begin,)).fetchall()
    )


# A list of a thousand addresses takes milliseconds to parse, at every view of a proposal.
parsed_bytecode = lru_cache(maxsize=32)(parse_bytecode)


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


def read_unfollowed(
    connection: sqlite3.Connection, psbt_id: str, quorum: str | None, *, imported: bool
) -> tuple[Unfollowed, ...]:
    """Those of the quorum with an equal output; of any vault where the proposal was imported (``imported``).

    One that is followed by now counts here until its record has others' signatures itself.
    """
    named = {"id": psbt_id, "quorum": quorum, "imported": imported, "most": MOST_COMPARED}
    return tuple(_unfollowed(row) for row in connection.execute(_PAYING_THE_SAME, named))


def write_unfollowed(connection: sqlite3.Connection, quorum: str, one: Unfollowed) -> None:
    """The highest count of signatures and the first transaction reported are kept."""
    values = one.psbt_id, quorum, one.status.value, one.collected, one.required, one.tx.serialize()
    connection.execute(
        "INSERT INTO unfollowed VALUES (?,?,?,?,?,?) ON CONFLICT (psbt_id) DO UPDATE SET "
        "status = excluded.status, collected = max(collected, excluded.collected)",
        values,
    )


def write_unfollowed_parts(connection: sqlite3.Connection, psbt_id: str) -> None:
    """The rows by which it is found, from its transaction."""
    one = _unfollowed(connection.execute("SELECT * FROM unfollowed WHERE psbt_id = ?", (psbt_id,)).fetchone())
    connection.executemany(
        "INSERT OR IGNORE INTO unfollowed_outputs VALUES (?,?,?)",
        [(script, amount, one.psbt_id) for script, amount in one.payments],
    )
    connection.executemany(
        "INSERT OR IGNORE INTO unfollowed_spends VALUES (?,?,?)",
        [(one.psbt_id, coin.txid, coin.vout) for coin in one.outpoints],
    )


def _unfollowed(row: sqlite3.Row) -> Unfollowed:
    status, tx = ProposalStatus(row["status"]), _transaction(row["tx"])
    return Unfollowed(row["psbt_id"], status, row["collected"], row["required"], tx)


# A hundred of a hundred kilobytes may stand beside every proposal.
_transaction = lru_cache(maxsize=MOST_COMPARED)(partial(Transaction.parse, witness=False))
