"""What the journal holds of our own keys: the registered ones, those before them, and what the platform said against them."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from multisig import Network
from signerd.core.keys import Revocation, Why
from signerd.core.values import FormerKey, OwnKey
from signerd.journal.rows import read_origin_key

_IN_ORDER = "SELECT * FROM own_keys WHERE replaced = ? ORDER BY purpose, account, origin_key"


@dataclass(frozen=True)
class KeyBook:
    """Reads at any time; writes within the journal's transaction only."""

    connection: sqlite3.Connection
    network: Network

    def registered(self) -> tuple[OwnKey, ...]:
        """Those of the device that is registered now, in a fixed order."""
        return tuple(self._own(row) for row in self.connection.execute(_IN_ORDER, (False,)))

    def former(self) -> tuple[FormerKey, ...]:
        """Those of the devices before it."""
        return tuple(self._former(row) for row in self.connection.execute(_IN_ORDER, (True,)))

    def platform_key_id(self) -> str | None:
        """Under which id the platform knows the registered keys: it has one active key on a network."""
        query = "SELECT platform_key_id FROM own_keys WHERE replaced = 0 LIMIT 1"
        row = self.connection.execute(query).fetchone()
        return None if row is None else str(row["platform_key_id"])

    def write(self, keys: Sequence[OwnKey], platform_key_id: str, at: str) -> bool:
        """The keys of one device from now on, under their id at the platform. True: another's were replaced by them.

        Another's are those under another id, and those of another master key: the platform can give two devices one id.
        Who registers a device has proven it: whatever the platform said against this id is over.
        """
        self.connection.executemany(
            "INSERT INTO own_keys (origin_key, purpose, account, platform_key_id) VALUES (?,?,?,?) "
            "ON CONFLICT (origin_key) DO UPDATE SET "
            "platform_key_id=excluded.platform_key_id, replaced=0, replaced_at=NULL",
            [(str(own.key), own.purpose, own.account, platform_key_id) for own in keys],
        )
        self.connection.execute("DELETE FROM revocations WHERE platform_key_id = ?", (platform_key_id,))
        others = (
            "UPDATE own_keys SET replaced = 1, replaced_at = ? "
            "WHERE replaced = 0 AND (platform_key_id <> ? OR origin_key NOT LIKE ?)"
        )
        ours = f"[{keys[0].key.fingerprint}/%"
        return self.connection.execute(others, (at, platform_key_id, ours)).rowcount > 0

    # --- the platform's word against them ----------------------------------------------------------------------------

    def revocation(self) -> Revocation | None:
        """What it said against the keys that are registered now."""
        query = (
            "SELECT * FROM revocations WHERE platform_key_id IN "
            "(SELECT platform_key_id FROM own_keys WHERE replaced = 0)"
        )
        row = self.connection.execute(query).fetchone()
        if row is None:
            return None
        told = datetime.fromisoformat(row["told_at"])
        return Revocation(row["platform_key_id"], row["fingerprint"], Why(row["why"]), told, row["successor"])

    def write_revocation(self, told: Revocation) -> None:
        """The first word stays: sqlite3.IntegrityError."""
        self.connection.execute(
            "INSERT INTO revocations (platform_key_id, fingerprint, why, told_at, successor) VALUES (?,?,?,?,?)",
            (told.key_id, told.fingerprint, told.why.value, told.told.isoformat(), told.successor),
        )

    # --- rows --------------------------------------------------------------------------------------------------------

    def _own(self, row: sqlite3.Row) -> OwnKey:
        return OwnKey(read_origin_key(row["origin_key"], self.network), row["purpose"], row["account"])

    def _former(self, row: sqlite3.Row) -> FormerKey:
        at = row["replaced_at"]
        return FormerKey(self._own(row), None if at is None else datetime.fromisoformat(at))
