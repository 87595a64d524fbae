"""The signer's keys, vaults and their pins, devices' screens, tokens.

When one changes, unsigned proposals are judged again.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from multisig import Fingerprint
from multisig.tokens import Payload, bytecode_hash
from signerd.core.audit import Note
from signerd.core.claims import VaultClaim, changes, fingerprint_of_change
from signerd.core.events import REGISTRATION, JudgeAgain, Level, News, Notify
from signerd.core.keys import Revocation
from signerd.core.tokens import ModelScreen, PublishedToken, subject_of
from signerd.core.values import OwnKey, Pin, Record, Snapshot
from signerd.journal import rows
from signerd.journal.books import read_screen, screen_note
from signerd.journal.chain import ChainedJournal
from signerd.journal.keys import AtDevice, facts_of

NOT_AT_DEVICE = AtDevice()


@dataclass(frozen=True)
class ClaimOutcome:
    """Whether the platform's claim about a vault is new, and the news for the person."""

    is_new: bool
    news: tuple[News, ...] = ()


class KeysAndVaults(ChainedJournal, ABC):
    """The part of the journal that does not concern a single proposal."""

    @abstractmethod
    def _decided_of(self, code: str) -> tuple[Record, ...]:
        """The decided and unsigned proposals judged by the vault pinned under this code."""

    @abstractmethod
    def _judge_anew(self, records: Sequence[Record] | None = None) -> tuple[News, ...]:
        """Within a transaction: judge these, or all decided and unsigned proposals, again at once; with
        ``JudgeAgain`` for those that wait for the person.
        """

    # --- keys and vaults ------------------------------------------------------------------------------------

    def own_keys(self) -> tuple[OwnKey, ...]:
        """The keys of the registered device."""
        return self.keys.registered()

    def add_own_keys(self, keys: Sequence[OwnKey], platform_key_id: str, note: Note) -> tuple[News, ...]:
        """The keys that the device itself gave, under the key's id at the platform.

        Keys under another id are replaced, and every approval that waits for a device lapses: that device may
        be lost.
        """
        with self._transaction("own-keys"):
            replaced = self.keys.write(keys, platform_key_id, self._stamp())
            self._append(note)
            return self._judge_anew() if replaced else ()

    def revoke(self, told: Revocation) -> tuple[News, ...]:
        """The platform revoked the registered key: recorded and reported once, and the device is asked
        nothing more.

        The keys stay known; an existing signature is still submitted.
        """
        if self.keys.revocation() is not None or told.key_id != self.keys.platform_key_id():
            return ()
        facts = {"fingerprint": told.fingerprint, "successor": told.successor, "why": told.why.value}
        with self._transaction("key-revoked"):
            self.keys.write_revocation(told)
            self._append(Note("key-revoked", told.key_id, facts))
            sentence = f"{told.sentence} {told.advice}"
            return (Notify(REGISTRATION, Level.ALARM, sentence), *self._judge_anew())

    def pins(self) -> tuple[Pin, ...]:
        return self._vaults.pins()

    def pin(self, vault_id: str) -> Pin | None:
        """The pinned vault that the platform means by this id: pinned under it, or else shown under it now
        (S26).
        """
        return self._vaults.pin(vault_id)

    def pin_of(self, snapshot: Snapshot) -> Pin | None:
        """The pinned vault by which a proposal is judged. An imported PSBT keeps its quorum, whatever ids
        mean later.
        """
        if snapshot.is_of_profile:
            return None
        kept = None if snapshot.imported is None else rows.read_quorum(self._db, snapshot.psbt_id)
        return self.pin(snapshot.vault_id) if kept is None else self._vaults.pin_by_code(kept)

    def pinned_codes(self) -> Mapping[str, frozenset[str]]:
        """As ``rows.read_pinned_codes``."""
        return rows.read_pinned_codes(self._db)

    def add_pin(self, pin: Pin, note: Note, at_device: AtDevice = NOT_AT_DEVICE) -> None:
        """Pin a vault that the person compared. A pin is never replaced: sqlite3.IntegrityError is the
        caller's bug.

        The chain keeps its code and descriptor beyond the pin itself.
        """
        code = pin.vault.verification_code
        facts = {"code": code, "descriptor": pin.vault.descriptor, **note.facts}
        with self._transaction("pin"):
            self._vaults.write_pin(pin, at_device)
            self._append(replace(note, facts=facts))
        self.rules = self.rules.pinned(pin.vault_id, code)

    def unpin(self, vault_id: str, note: Note) -> tuple[News, ...]:
        """Forget a pinned vault and its changes; its approvals that wait for a device lapse."""
        pin = self.pin(vault_id)
        if pin is None:
            return ()
        code = pin.vault.verification_code
        with self._transaction("unpin"):
            affected = self._decided_of(code)
            self._vaults.delete_pin(code)
            self._append(note)
            return self._judge_anew(affected)

    def at_device(self, vault_id: str) -> AtDevice:
        """Whether the device registered the vault and showed its address; neither where it is not pinned."""
        pin = self.pin(vault_id)
        return AtDevice() if pin is None else self._vaults.at_device(pin.vault.verification_code)

    def set_at_device(self, vault_id: str, at_device: AtDevice, note: Note) -> None:
        pin = self.pin(vault_id)
        if pin is None:
            return
        with self._transaction("at-device"):
            self._vaults.write_at_device(pin.vault.verification_code, at_device)
            self._append(note)

    def learn(self, claim: VaultClaim) -> ClaimOutcome:
        """Take the platform's claim about a vault. A change of a pinned one is recorded and reported once
        (S16).

        Raises PlatformFloods where there is no room: nothing was recorded.
        """
        pin = self._vaults.pin_of(claim)
        told = () if pin is None else changes(pin, claim)
        code = "" if pin is None else pin.vault.verification_code
        mark = fingerprint_of_change(claim, self.network)
        unknown = bool(told) and not self._vaults.knows_change(code, mark)
        fresh = unknown and self._quota.has_room_for_change(code)
        known = self._vaults.claim(claim.vault_id)
        news = known != claim
        if not (news or fresh):
            return ClaimOutcome(is_new=False)
        if news and not fresh:  # An alarm has no daily allowance.
            if known is None:
                self._quota.require_room_for("vaults")
            self._quota.require_word(None, self.now().timestamp())
        with self._transaction("vault-claim"):
            if news:
                self._vaults.write_claim(claim)
                self._append(Note("vault-claim", claim.vault_id, facts_of(claim)))
            return ClaimOutcome(is_new=True, news=self._alarm(code, claim, mark, told) if fresh else ())

    def _alarm(self, code: str, claim: VaultClaim, mark: str, told: tuple[str, ...]) -> tuple[News, ...]:
        self._vaults.write_change(code, mark, told)
        self._append(Note("vault-changed", claim.vault_id, {**facts_of(claim), "changes": list(told)}))
        sentence = (
            f"ALARM: the platform shows a pinned vault changed. {' '.join(told)} Nothing of it is signed."
        )
        return (Notify(claim.vault_id, Level.ALARM, sentence), *self._judge_anew(self._decided_of(code)))

    def claim(self, vault_id: str) -> VaultClaim | None:
        return self._vaults.claim(vault_id)

    def claims(self) -> tuple[VaultClaim, ...]:
        """The platform's latest claim about every vault that it ever showed."""
        return self._vaults.claims()

    def vault_changes(self, vault_id: str) -> tuple[str, ...]:
        """How the platform has shown a pinned vault differently since it was pinned."""
        pin = self.pin(vault_id)
        return () if pin is None else self._vaults.changes(pin.vault.verification_code)

    def see_screen(self, fingerprint: Fingerprint, screen: ModelScreen) -> tuple[News, ...]:
        """Record what the screen of a connected device shows, and judge again what waits for the person.

        What waits for the device is judged again before the device is asked.
        """
        if read_screen(self._db, fingerprint) == screen:
            return ()
        self.note(screen_note(fingerprint, screen))
        return (JudgeAgain(),)

    def learn_token(self, payload: Payload, published: PublishedToken) -> tuple[News, ...]:
        """Store the token that these bytes prove, and judge what waits again.

        Raises NotProven, and PlatformFloods where there is no room: nothing is stored.
        """
        self._quota.require_room_for("tokens")
        with self._transaction("token"):
            proven = self.tokens.write(payload, published)
            facts = {"hash": bytecode_hash(published.bytecode).hex(), "ticker": proven.ticker}
            self._append(Note("token-proven", subject_of(payload), facts))
            return self._judge_anew()
