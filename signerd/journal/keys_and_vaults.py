"""What the journal knows of our own keys and of vaults.

Keys: the registered ones, those before them, and what the platform said against them. Vaults: the platform's
word about each, what was pinned, and the changes that the person has not looked at. A pin is the quorum's, by
its verification code.
"""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from signerd.core.audit import Note
from signerd.core.claims import code_of
from signerd.core.keys import Revocation, RevocationReason, with_lost
from signerd.core.values import FormerKey, OwnKey, Pin, VaultClaim
from signerd.journal import rows
from signerd.journal.chain import ChainedJournal

_KEYS = (
    "SELECT own_keys.*, why FROM own_keys LEFT JOIN revocations ON revocations.platform_key_id = "
    "own_keys.platform_key_id AND origin_key LIKE '[' || fingerprint || '/%' "
    "WHERE replaced = ? ORDER BY purpose, account, origin_key"
)


@dataclass(frozen=True)
class AtDevice:
    """What the device has done about a pinned vault: knows it under its own name, has shown its first
    address.
    """

    enrolled: bool = False
    address_shown: bool = False


NOT_AT_DEVICE = AtDevice()


class KeysAndVaults(ChainedJournal):
    """The part of the journal that does not concern a proposal."""

    # --- keys -----------------------------------------------------------------------------------------------

    def own_keys(self) -> tuple[OwnKey, ...]:
        """Those of the device that is registered now, in a fixed order."""
        return tuple(self._own(row) for row in self._db.execute(_KEYS, (False,)))

    def former_keys(self) -> tuple[FormerKey, ...]:
        """Those of the devices before it."""
        return tuple(
            FormerKey(
                self._own(row),
                None if row["replaced_at"] is None else datetime.fromisoformat(row["replaced_at"]),
                row["platform_key_id"],
                lost=row["why"] == RevocationReason.LOST,
            )
            for row in self._db.execute(_KEYS, (True,))
        )

    def _own(self, row: sqlite3.Row) -> OwnKey:
        return OwnKey(rows.read_origin_key(row["origin_key"], self.network), row["purpose"], row["account"])

    def platform_key_id(self) -> str | None:
        """Under which id the platform knows the registered keys: it has one active key on a network."""
        row = self._row("SELECT platform_key_id FROM own_keys WHERE replaced = 0 LIMIT 1")
        return None if row is None else str(row["platform_key_id"])

    def revocation(self) -> Revocation | None:
        """What the platform said against the keys that are registered now."""
        row = self._row(
            "SELECT * FROM revocations WHERE platform_key_id IN "
            "(SELECT platform_key_id FROM own_keys WHERE replaced = 0)"
        )
        if row is None:
            return None
        key_id, fingerprint, why, at, successor = row
        return Revocation(key_id, fingerprint, RevocationReason(why), datetime.fromisoformat(at), successor)

    def lost(self) -> str | None:
        """The sentence about a vault with the registered key, where the platform calls that lost."""
        revoked = self.revocation()
        is_lost = revoked is not None and revoked.why is RevocationReason.LOST
        return with_lost(revoked.fingerprint) if revoked is not None and is_lost else None

    # --- the platform's word about vaults -------------------------------------------------------------------

    def claim(self, vault_id: str) -> VaultClaim | None:
        row = self._row("SELECT * FROM vault_claims WHERE vault_id = ?", vault_id)
        return None if row is None else VaultClaim(*row)

    def claims(self) -> tuple[VaultClaim, ...]:
        """The platform's latest claim about every vault that it ever showed."""
        rows = self._db.execute("SELECT * FROM vault_claims ORDER BY name, vault_id")
        return tuple(VaultClaim(*row) for row in rows)

    # --- pins -----------------------------------------------------------------------------------------------

    def pins(self) -> tuple[Pin, ...]:
        pin_rows = self._db.execute("SELECT * FROM pins ORDER BY name, vault_id")
        return tuple(rows.read_pin(row, self.network) for row in pin_rows)

    def pin(self, vault_id: str) -> Pin | None:
        """The pinned vault that the platform means by this id: pinned under it, or else shown under it now
        (S26).
        """
        return self._pin_where("vault_id", vault_id) or self._pin_shown(self.claim(vault_id))

    def _pin_where(self, column: str, value: str) -> Pin | None:
        row = self._row(f"SELECT * FROM pins WHERE {column} = ?", value)  # noqa: S608 - a column of ours
        return None if row is None else rows.read_pin(row, self.network)

    def _pin_shown(self, claim: VaultClaim | None) -> Pin | None:
        code = None if claim is None else code_of(claim.descriptor, self.network)
        pin = None if code is None else self._pin_where("code", code)
        # A pin is made for one workspace and does not count in another.
        return pin if pin and claim and pin.workspace_id == claim.workspace_id else None

    def pinned_codes(self) -> Mapping[str, frozenset[str]]:
        """As ``rows.read_pinned_codes``."""
        return rows.read_pinned_codes(self._db)

    def add_pin(self, pin: Pin, note: Note, at_device: AtDevice = NOT_AT_DEVICE) -> None:
        """Pin a vault that the person compared. A pin is never replaced: sqlite3.IntegrityError is the
        caller's bug.

        The chain keeps its code and descriptor beyond the pin itself.
        """
        code, descriptor = pin.vault.verification_code, pin.vault.descriptor
        whose = code, pin.vault_id, pin.workspace_id, pin.name, descriptor, str(pin.own_key)
        with self.noted("pin", replace(note, facts={"code": code, "descriptor": descriptor, **note.facts})):
            self._db.execute(
                "INSERT INTO pins VALUES (?,?,?,?,?,?,?,?)",
                (*whose, at_device.enrolled, at_device.address_shown),
            )
        self.rules = self.rules.pinned(pin.vault_id, code)

    def at_device(self, pin: Pin) -> AtDevice:
        query = "SELECT enrolled, address_shown FROM pins WHERE code = ?"
        row = self._row(query, pin.vault.verification_code)
        return NOT_AT_DEVICE if row is None else AtDevice(bool(row["enrolled"]), bool(row["address_shown"]))

    def set_at_device(self, pin: Pin, at_device: AtDevice, note: Note) -> None:
        with self.noted("at-device", note):
            self._db.execute(
                "UPDATE pins SET enrolled = ?, address_shown = ? WHERE code = ?",
                (at_device.enrolled, at_device.address_shown, pin.vault.verification_code),
            )

    def changes_of(self, pin: Pin | None) -> tuple[str, ...]:
        """In what the platform has shown the pinned vault otherwise since it was pinned, each sentence once,
        the oldest first.
        """
        if pin is None:
            return ()
        query = "SELECT sentences FROM vault_changes WHERE code = ? ORDER BY rowid"
        rows = self._db.execute(query, (pin.vault.verification_code,))
        return tuple(dict.fromkeys(sentence for row in rows for sentence in json.loads(row["sentences"])))
