"""What the journal holds of vaults: the platform's word about each, what was pinned, and the changes nobody looked at."""

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from multisig import Network
from signerd.core.claims import VaultClaim
from signerd.core.text import canonical
from signerd.core.values import Pin
from signerd.journal.rows import read_pin


@dataclass(frozen=True)
class AtDevice:
    """What the device has done about a pinned vault: knows it under its own name, has shown its first address."""

    enrolled: bool = False
    address_shown: bool = False


def facts_of(claim: VaultClaim) -> dict[str, Any]:
    """What the chain keeps of the platform's word. An absent figure is left out."""
    told = {
        "descriptor": claim.descriptor,
        "first_address": claim.first_address,
        "name": claim.name,
        "signers": claim.signers,
        "threshold": claim.threshold,
        "workspace": claim.workspace_id,
    }
    return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class VaultBook:
    """Reads at any time; writes within the journal's transaction only."""

    connection: sqlite3.Connection
    network: Network

    # --- the platform's word -----------------------------------------------------------------------------------------

    def claim(self, vault_id: str) -> VaultClaim | None:
        row = self._one("SELECT * FROM vault_claims WHERE vault_id = ?", vault_id)
        return None if row is None else _claim(row)

    def claims(self) -> tuple[VaultClaim, ...]:
        found = self.connection.execute("SELECT * FROM vault_claims ORDER BY name, vault_id")
        return tuple(_claim(row) for row in found)

    def write_claim(self, claim: VaultClaim) -> None:
        self.connection.execute(
            "INSERT INTO vault_claims "
            "(vault_id, workspace_id, name, descriptor, threshold, signers, first_address) VALUES (?,?,?,?,?,?,?) "
            "ON CONFLICT (vault_id) DO UPDATE SET workspace_id=excluded.workspace_id, name=excluded.name, "
            "descriptor=excluded.descriptor, threshold=excluded.threshold, signers=excluded.signers, "
            "first_address=excluded.first_address",
            (
                claim.vault_id,
                claim.workspace_id,
                claim.name,
                claim.descriptor,
                claim.threshold,
                claim.signers,
                claim.first_address,
            ),
        )

    # --- pins --------------------------------------------------------------------------------------------------------

    def pin(self, vault_id: str) -> Pin | None:
        row = self._one("SELECT * FROM pins WHERE vault_id = ?", vault_id)
        return None if row is None else read_pin(row, self.network)

    def pins(self) -> tuple[Pin, ...]:
        found = self.connection.execute("SELECT * FROM pins ORDER BY name, vault_id")
        return tuple(read_pin(row, self.network) for row in found)

    def write_pin(self, pin: Pin, at_device: AtDevice) -> None:
        """A pinned vault is never replaced: sqlite3.IntegrityError."""
        self.connection.execute(
            "INSERT INTO pins (vault_id, workspace_id, name, descriptor, own_key, enrolled, address_shown) "
            "VALUES (?,?,?,?,?,?,?)",
            (
                pin.vault_id,
                pin.workspace_id,
                pin.name,
                pin.vault.descriptor,
                str(pin.own_key),
                int(at_device.enrolled),
                int(at_device.address_shown),
            ),
        )

    def delete_pin(self, vault_id: str) -> None:
        self.connection.execute("DELETE FROM vault_changes WHERE vault_id = ?", (vault_id,))
        self.connection.execute("DELETE FROM pins WHERE vault_id = ?", (vault_id,))

    def at_device(self, vault_id: str) -> AtDevice:
        row = self._one("SELECT enrolled, address_shown FROM pins WHERE vault_id = ?", vault_id)
        return AtDevice() if row is None else AtDevice(bool(row["enrolled"]), bool(row["address_shown"]))

    def write_at_device(self, vault_id: str, at_device: AtDevice) -> None:
        self.connection.execute(
            "UPDATE pins SET enrolled = ?, address_shown = ? WHERE vault_id = ?",
            (int(at_device.enrolled), int(at_device.address_shown), vault_id),
        )

    # --- changes that wait for the person ----------------------------------------------------------------------------

    def changes(self, vault_id: str) -> tuple[str, ...]:
        """In what the platform has shown the pinned vault otherwise, each sentence once, the oldest first."""
        found = self.connection.execute(
            "SELECT sentences FROM vault_changes WHERE vault_id = ? ORDER BY rowid", (vault_id,)
        )
        return tuple(dict.fromkeys(sentence for row in found for sentence in json.loads(row["sentences"])))

    def knows_change(self, vault_id: str, mark: str) -> bool:
        query = "SELECT 1 FROM vault_changes WHERE vault_id = ? AND mark = ?"
        return self.connection.execute(query, (vault_id, mark)).fetchone() is not None

    def write_change(self, vault_id: str, mark: str, sentences: tuple[str, ...]) -> None:
        self.connection.execute(
            "INSERT INTO vault_changes VALUES (?,?,?)", (vault_id, mark, canonical(list(sentences)).decode())
        )

    def _one(self, query: str, vault_id: str) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self.connection.execute(query, (vault_id,)).fetchone()
        return row


def _claim(row: sqlite3.Row) -> VaultClaim:
    return VaultClaim(
        row["vault_id"],
        row["workspace_id"],
        row["name"],
        row["descriptor"],
        row["threshold"],
        row["signers"],
        row["first_address"],
    )
