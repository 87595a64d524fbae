"""What the journal holds of our own keys and of vaults.

Keys: the registered ones, those before them, and what the platform said against them. Vaults: the platform's
word about each, what was pinned, and the changes that the person has not looked at.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any

from multisig import Network
from signerd.core.claims import VaultClaim
from signerd.core.keys import Revocation, RevocationReason
from signerd.core.text import canonical
from signerd.core.values import FormerKey, OwnKey, Pin
from signerd.journal.rows import code_of, read_origin_key, read_pin

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
        """The keys of one device from now on, under their id at the platform. True: another's were replaced
        by them.

        Another's are those under another id, and those of another master key: the platform can give two
        devices one id. Registering a device proves its keys: what the platform said against this id no longer
        counts.
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

    # --- the platform's word against them -------------------------------------------------------------------

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
        return Revocation(
            row["platform_key_id"], row["fingerprint"], RevocationReason(row["why"]), told, row["successor"]
        )

    def write_revocation(self, told: Revocation) -> None:
        """The first word stays: sqlite3.IntegrityError."""
        self.connection.execute(
            "INSERT INTO revocations VALUES (?,?,?,?,?)",
            (told.key_id, told.fingerprint, told.why.value, told.told.isoformat(), told.successor),
        )

    # --- rows -----------------------------------------------------------------------------------------------

    def _own(self, row: sqlite3.Row) -> OwnKey:
        return OwnKey(read_origin_key(row["origin_key"], self.network), row["purpose"], row["account"])

    def _former(self, row: sqlite3.Row) -> FormerKey:
        at = row["replaced_at"]
        return FormerKey(self._own(row), None if at is None else datetime.fromisoformat(at))


@dataclass(frozen=True)
class AtDevice:
    """What the device has done about a pinned vault: knows it under its own name, has shown its first
    address.
    """

    enrolled: bool = False
    address_shown: bool = False


def facts_of(claim: VaultClaim) -> dict[str, Any]:
    """What the chain keeps of the platform's word. An absent figure is left out."""
    told = {
        "descriptor": claim.descriptor,
        "first_address": claim.first_address,
        "name": claim.name,
        "replaced_by": claim.replaced_by,
        "signers": claim.signers,
        "threshold": claim.threshold,
        "workspace": claim.workspace_id,
    }
    return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class VaultBook:
    """Reads at any time; writes within the journal's transaction only. A pin is the quorum's, by its
    verification code.
    """

    connection: sqlite3.Connection
    network: Network

    # --- the platform's word --------------------------------------------------------------------------------

    def claim(self, vault_id: str) -> VaultClaim | None:
        row = self._one("SELECT * FROM vault_claims WHERE vault_id = ?", vault_id)
        return None if row is None else _claim(row)

    def claims(self) -> tuple[VaultClaim, ...]:
        found = self.connection.execute("SELECT * FROM vault_claims ORDER BY name, vault_id")
        return tuple(_claim(row) for row in found)

    def write_claim(self, claim: VaultClaim) -> None:
        self.connection.execute(
            "INSERT INTO vault_claims VALUES (?,?,?,?,?,?,?,?) "
            "ON CONFLICT (vault_id) DO UPDATE SET workspace_id=excluded.workspace_id, name=excluded.name, "
            "descriptor=excluded.descriptor, threshold=excluded.threshold, signers=excluded.signers, "
            "first_address=excluded.first_address, replaced_by=excluded.replaced_by",
            astuple(claim),
        )

    # --- pins -----------------------------------------------------------------------------------------------

    def pin(self, vault_id: str) -> Pin | None:
        """What was pinned under that id, else the pinned quorum that the platform shows under it now."""
        row = self._one("SELECT * FROM pins WHERE vault_id = ?", vault_id)
        return self._pin_shown(self.claim(vault_id)) if row is None else read_pin(row, self.network)

    def pin_of(self, claim: VaultClaim) -> Pin | None:
        """The pin that the platform's word is about: by what its id meant before, else by what it
        says now.
        """
        return self.pin(claim.vault_id) or self._pin_shown(claim)

    def _pin_shown(self, claim: VaultClaim | None) -> Pin | None:
        code = None if claim is None else code_of(claim.descriptor, self.network)
        pin = None if code is None else self.pin_by_code(code)
        # A pin is made for one workspace and does not count in another.
        return (
            pin if pin is not None and claim is not None and pin.workspace_id == claim.workspace_id else None
        )

    def pin_by_code(self, code: str) -> Pin | None:
        row = self._one("SELECT * FROM pins WHERE code = ?", code)
        return None if row is None else read_pin(row, self.network)

    def pins(self) -> tuple[Pin, ...]:
        found = self.connection.execute("SELECT * FROM pins ORDER BY name, vault_id")
        return tuple(read_pin(row, self.network) for row in found)

    def write_pin(self, pin: Pin, at_device: AtDevice) -> None:
        """A pinned vault is never replaced: sqlite3.IntegrityError."""
        self.connection.execute(
            "INSERT INTO pins VALUES (?,?,?,?,?,?,?,?)",
            (
                pin.vault.verification_code,
                pin.vault_id,
                pin.workspace_id,
                pin.name,
                pin.vault.descriptor,
                str(pin.own_key),
                int(at_device.enrolled),
                int(at_device.address_shown),
            ),
        )

    def delete_pin(self, code: str) -> None:
        self.connection.execute("DELETE FROM vault_changes WHERE code = ?", (code,))
        self.connection.execute("DELETE FROM pins WHERE code = ?", (code,))

    def at_device(self, code: str) -> AtDevice:
        row = self._one("SELECT enrolled, address_shown FROM pins WHERE code = ?", code)
        return AtDevice() if row is None else AtDevice(bool(row["enrolled"]), bool(row["address_shown"]))

    def write_at_device(self, code: str, at_device: AtDevice) -> None:
        self.connection.execute(
            "UPDATE pins SET enrolled = ?, address_shown = ? WHERE code = ?",
            (int(at_device.enrolled), int(at_device.address_shown), code),
        )

    # --- changes that wait for the person -------------------------------------------------------------------

    def changes(self, code: str) -> tuple[str, ...]:
        """In what the platform has shown the pinned vault otherwise, each sentence once, the oldest first."""
        found = self.connection.execute(
            "SELECT sentences FROM vault_changes WHERE code = ? ORDER BY rowid", (code,)
        )
        return tuple(dict.fromkeys(sentence for row in found for sentence in json.loads(row["sentences"])))

    def knows_change(self, code: str, mark: str) -> bool:
        query = "SELECT 1 FROM vault_changes WHERE code = ? AND mark = ?"
        return self.connection.execute(query, (code, mark)).fetchone() is not None

    def write_change(self, code: str, mark: str, sentences: tuple[str, ...]) -> None:
        self.connection.execute(
            "INSERT INTO vault_changes VALUES (?,?,?)", (code, mark, canonical(list(sentences)).decode())
        )

    def _one(self, query: str, value: str) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self.connection.execute(query, (value,)).fetchone()
        return row


def _claim(row: sqlite3.Row) -> VaultClaim:
    """The table has the fields of the value, in their order."""
    return VaultClaim(*row)
