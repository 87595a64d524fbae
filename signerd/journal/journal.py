"""What this machine learns and the person decides beside single proposals: keys and their revocation, vaults,
devices' screens, tokens, what others signed, and a restore.

When a key, a vault or a token changes, unsigned proposals are judged again.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime

from custody.schemas.proposals import ProposalStatus
from multisig import Fingerprint
from multisig.tokens import Payload, TokenCall, bytecode_hash
from signerd.core.audit import Note
from signerd.core.claims import changes, fingerprint_of_change
from signerd.core.events import REGISTRATION, JudgeAgain, Level, News, Notify, Recalled, Replaced, Step
from signerd.core.following import FORGOTTEN, own_signature, withdrawn
from signerd.core.keys import Revocation, RevocationReason
from signerd.core.states import NOT_TAKEN, TO_SUBMIT
from signerd.core.text import canonical
from signerd.core.tokens import ModelScreen, PublishedToken, prove_blob, prove_token, subject_of
from signerd.core.values import OwnKey, Pin, Record, Snapshot, Unfollowed, VaultClaim
from signerd.journal import rows
from signerd.journal.books import (
    BACKED_UP,
    CAUGHT_UP,
    SCREEN,
    SUBJECT,
    read_screen,
    rebuild_payees,
    rebuild_places,
    write_unfollowed,
    write_unfollowed_parts,
)
from signerd.journal.chain import RESTORED
from signerd.journal.proposals import DECIDED, Proposals

# Of replacements that came before a signature. Years of fee bumps in a large workspace.
MOST_VERSIONS = 20_000


class Journal(Proposals):
    """What this signer knows and has decided. Use as a context manager; the folder must be held."""

    # --- keys -----------------------------------------------------------------------------------------------

    def add_own_keys(self, keys: Sequence[OwnKey], platform_key_id: str, note: Note) -> tuple[News, ...]:
        """The keys that the device itself gave, under the key's id at the platform.

        Keys under another id, or of another master key (the platform can give two devices one id), are
        replaced, and every approval that waits for a device lapses: that device may be lost. Registering a
        device proves its keys: what the platform said against this id no longer counts.
        """
        with self._transaction("own-keys"):
            self._db.executemany(
                "INSERT INTO own_keys (origin_key, purpose, account, platform_key_id) VALUES (?,?,?,?) "
                "ON CONFLICT (origin_key) DO UPDATE SET "
                "platform_key_id=excluded.platform_key_id, replaced=0, replaced_at=NULL",
                [(str(own.key), own.purpose, own.account, platform_key_id) for own in keys],
            )
            self._db.execute("DELETE FROM revocations WHERE platform_key_id = ?", (platform_key_id,))
            replaced = self._db.execute(
                "UPDATE own_keys SET replaced = 1, replaced_at = ? "
                "WHERE replaced = 0 AND (platform_key_id <> ? OR origin_key NOT LIKE ?)",
                (self._stamp(), platform_key_id, f"[{keys[0].key.fingerprint}/%"),
            ).rowcount
            self._append(note)
            return self._judge_anew() if replaced else ()

    def revoke(self, revocation: Revocation) -> tuple[News, ...]:
        """The platform revoked the registered key, or one before it: recorded and reported once, and once
        more where it was lost. The device is asked nothing more.

        The keys stay known; an existing signature is still submitted.
        """
        ours = {self.platform_key_id(), *(former.platform_key_id for former in self.former_keys())}
        known = self._row("SELECT why FROM revocations WHERE platform_key_id = ?", revocation.key_id)
        lost = RevocationReason.LOST
        is_news = known is None or (revocation.why is lost and known["why"] != lost)
        if revocation.key_id not in ours or not is_news:
            return ()
        fingerprint, why, successor = revocation.fingerprint, revocation.why.value, revocation.successor
        facts = {"fingerprint": fingerprint, "successor": successor, "why": why}
        row = revocation.key_id, fingerprint, why, revocation.at.isoformat(), successor
        with self._transaction("key-revoked"):
            self._db.execute("INSERT OR REPLACE INTO revocations VALUES (?,?,?,?,?)", row)
            self._append(Note("key-revoked", revocation.key_id, facts))
            sentence = f"{revocation.sentence} {revocation.advice}"
            return (Notify(REGISTRATION, Level.ALARM, sentence), *self._judge_anew())

    def see_screen(self, fingerprint: Fingerprint, screen: ModelScreen) -> tuple[News, ...]:
        """Record what the screen of a connected device shows, and judge again what waits for the person.

        What waits for the device is judged again before the device is asked.
        """
        if read_screen(self._db, fingerprint) == screen:
            return ()
        facts = {
            "first": screen.first,
            "model": screen.name,
            "no_funds": screen.no_funds,
            "no_proof": screen.no_proof,
            # Facts are text and integers.
            "whole": -1 if screen.whole is None else screen.whole,
        }
        self.note(Note(SCREEN, str(fingerprint), facts))
        return (JudgeAgain(),)

    # --- vaults and tokens ----------------------------------------------------------------------------------

    def unpin(self, vault_id: str, note: Note) -> tuple[News, ...]:
        """Forget a pinned vault and its changes; its approvals that wait for a device lapse."""
        pin = self.pin(vault_id)
        if pin is None:
            return ()
        with self._transaction("unpin"):
            affected = self._decided_of(pin)
            for table in ("vault_changes", "pins"):
                query = f"DELETE FROM {table} WHERE code = ?"  # noqa: S608 - names of ours
                self._db.execute(query, (pin.vault.verification_code,))
            self._append(note)
            return self._judge_anew(affected)

    def _decided_of(self, pin: Pin) -> tuple[Record, ...]:
        """What is decided and unsigned, and is judged by the pinned vault, or was when it was last judged:
        what the platform says of an id may be otherwise since, and otherwise again tomorrow.
        """
        code = pin.vault.verification_code
        return tuple(
            record
            for record in self.records(DECIDED)
            if self.pin_of(record.snapshot) == pin or rows.read_quorum(self._db, record.psbt_id) == code
        )

    def learn(self, claim: VaultClaim) -> tuple[News, ...]:
        """Take the platform's claim about a vault; no news where it is known. A change of a pinned one, by
        what its id meant before or by what it says now, is recorded and reported once (S16).

        Raises PlatformFloods where there is no room: nothing was recorded.
        """
        pin = self.pin(claim.vault_id) or self._pin_shown(claim)
        differences = () if pin is None else changes(pin, claim)
        fresh = pin is not None and bool(differences) and self._is_new_change(pin, claim)
        known = self.claim(claim.vault_id)
        if known == claim and not fresh:
            return ()
        if not fresh:  # An alarm has no daily allowance.
            if known is None:
                self._quota.require_room_for("vaults")
            self._quota.require_word(None, self.now().timestamp())
        facts = {name: value for name, value in vars(claim).items() if value is not None}
        facts["workspace"] = facts.pop("workspace_id")
        del facts["vault_id"]
        with self._transaction("vault-claim"):
            if known != claim:
                self._db.execute(
                    "INSERT OR REPLACE INTO vault_claims VALUES (?,?,?,?,?,?,?,?)",
                    tuple(vars(claim).values()),
                )
                self._append(Note("vault-claim", claim.vault_id, facts))
            if pin is None or not fresh:
                words = f"The platform shows {'a new' if known is None else 'another record of the'} vault."
                return Notify(claim.vault_id, Level.INFO, words), JudgeAgain()
            self._db.execute(
                "INSERT INTO vault_changes VALUES (?,?,?)",
                (*self._change(pin, claim), canonical(list(differences)).decode()),
            )
            self._append(Note("vault-changed", claim.vault_id, {**facts, "changes": list(differences)}))
            listed = " ".join(differences)
            sentence = f"ALARM: the platform shows a pinned vault changed. {listed} Nothing of it is signed."
            alarm = Notify(claim.vault_id, Level.ALARM, sentence)
            return (alarm, *self._judge_anew(self._decided_of(pin)))

    def _change(self, pin: Pin, claim: VaultClaim) -> tuple[str, str]:
        return pin.vault.verification_code, fingerprint_of_change(claim, self.network)

    def _is_new_change(self, pin: Pin, claim: VaultClaim) -> bool:
        known = self._row(
            "SELECT 1 FROM vault_changes WHERE code = ? AND mark = ?", *self._change(pin, claim)
        )
        return known is None and self._quota.has_room_for_change(pin.vault.verification_code)

    def learn_token(self, payload: Payload, published: PublishedToken) -> tuple[News, ...]:
        """Store the token that these bytes prove, for good, and judge what waits again.

        Raises NotProven, and PlatformFloods where there is no room: nothing is stored.
        """
        self._quota.require_room_for("tokens")
        contract_id = payload.contract_id if isinstance(payload, TokenCall) else None
        if isinstance(payload, TokenCall):
            proven = prove_token(payload.contract_id, published)
        else:
            proven = prove_blob(payload.bytecode_hash, published.bytecode)
        digest = bytecode_hash(published.bytecode)
        with self._transaction("token"):
            self._db.execute("INSERT OR IGNORE INTO bytecodes VALUES (?,?)", (digest, published.bytecode))
            if contract_id is not None:
                deployed = contract_id, digest, published.deployment
                self._db.execute("INSERT OR IGNORE INTO tokens VALUES (?,?,?)", deployed)
            facts = {"hash": digest.hex(), "ticker": proven.ticker}
            self._append(Note("token-proven", subject_of(payload), facts))
            return self._judge_anew()

    # --- what others signed ---------------------------------------------------------------------------------

    def is_followed(self, psbt_id: str) -> bool:
        return self._find(psbt_id) is not None

    def heard_until(self, workspace_id: int, codes: frozenset[str]) -> str | None:
        """The last proposal of the workspace's whole list that was read; None where none was, or one of these
        vaults was pinned since.
        """
        row = self._row("SELECT psbt_id, codes FROM heard WHERE workspace_id = ?", workspace_id)
        return None if row is None or not codes <= set(json.loads(row["codes"])) else row["psbt_id"]

    def hear(
        self,
        workspace_id: int,
        codes: frozenset[str],
        proposals: Sequence[tuple[str, Unfollowed]],
        until: str | None,
    ) -> None:
        """Keep what others signed and the person is not asked about, each with its quorum.

        ``until``: the last proposal of the workspace that need not be looked at again for the vaults of these
        ``codes``. Raises PlatformFloods where there is no room: nothing is kept.
        """
        query = "SELECT 1 FROM unfollowed WHERE psbt_id = ?"
        fresh = [one for _quorum, one in proposals if self._row(query, one.psbt_id) is None]
        if fresh:
            self._quota.require_room_for_unfollowed(fresh)
        with self._transaction("Heard"):
            for quorum, one in proposals:
                write_unfollowed(self._db, quorum, one)
            for one in fresh:
                write_unfollowed_parts(self._db, one.psbt_id)
            if until is not None:
                read = workspace_id, until, canonical(sorted(codes)).decode()
                self._db.execute("INSERT OR REPLACE INTO heard VALUES (?,?,?)", read)

    def hear_anew(self, workspace_id: int) -> None:
        """The workspace's whole list is to be read from its first proposal on."""
        with self._transaction("HeardAnew"):
            self._db.execute("DELETE FROM heard WHERE workspace_id = ?", (workspace_id,))

    def replaced(self, snapshot: Snapshot) -> Step | None:
        """Withdraw what this proposal was made to replace, where it is signed and not with the platform; None
        where there is nothing to withdraw. One that is over replaces what had been signed when this machine
        first heard of it.
        """
        if snapshot.replaces is None:
            return None
        known = self._find(snapshot.replaces)
        # The id is the platform's word, and so is the vault: of another's it is no replacement.
        if known is not None and (snapshot.workspace_id, snapshot.vault_id) != (
            known.snapshot.workspace_id,
            known.snapshot.vault_id,
        ):
            return None
        is_over = snapshot.status is not ProposalStatus.PENDING
        # What is on its way just now may come back, and this version be over by then.
        is_signed = known is not None and known.signature is not None
        if (is_over or is_signed) and self._is_news(snapshot.psbt_id, snapshot.replaces, is_signed=is_signed):
            with self._transaction("Heard"):
                self._db.execute(
                    "INSERT INTO newer_versions VALUES (?,?,?)",
                    (snapshot.psbt_id, snapshot.replaces, is_signed),
                )
        if is_over:
            return self.withdraw_replaced(snapshot.replaces)
        return None if known is None else self._replaced_by(known, snapshot.psbt_id)

    def _is_news(self, psbt_id: str, replaces: str, *, is_signed: bool) -> bool:
        """Whether to store a replacement: only the first time counts. After a signature one replacement is
        enough; of the others ``MOST_VERSIONS`` are stored. One beyond them counts as after the signature, and
        stops it.
        """
        if self._row("SELECT 1 FROM newer_versions WHERE psbt_id = ?", psbt_id) is not None:
            return False
        if is_signed:
            return self._came_after(replaces) is None
        (count,) = self._db.execute("SELECT count(*) FROM newer_versions").fetchone()
        return bool(count < MOST_VERSIONS)

    def _came_after(self, psbt_id: str) -> str | None:
        """A replacement of the proposal first heard of after the signature; None where there is none."""
        query = "SELECT psbt_id FROM newer_versions WHERE replaces = ? AND after_signature = 1 LIMIT 1"
        row = self._row(query, psbt_id)
        return None if row is None else str(row["psbt_id"])

    def withdraw_replaced(self, psbt_id: str) -> Step | None:
        """Withdraw what is signed and not with the platform, where a newer version came since and is over."""
        by, known = self._came_after(psbt_id), self._find(psbt_id)
        return None if by is None or known is None else self._replaced_by(known, by)

    def _replaced_by(self, known: Record, by: str) -> Step | None:
        return self.decide(known.psbt_id, Replaced(by)) if known.state in TO_SUBMIT else None

    # --- after a restore ------------------------------------------------------------------------------------

    def note_backup(self, made_at: str, fingerprint: str) -> None:
        """Record that a backup was made, once for each."""
        query = "SELECT 1 FROM audit WHERE kind = ? AND json_extract(facts, '$.fingerprint') = ?"
        if self._row(query, BACKED_UP, fingerprint) is None:
            self.note(Note(BACKED_UP, SUBJECT, {"fingerprint": fingerprint, "made_at": made_at}))

    def restore(self, made_at: datetime) -> None:
        """Begin anew with what a backup of that time remembers: its chain goes on with an entry that says so,
        nobody is let in, what was spent and paid is read from the stored PSBTs and transactions,
        every approval that no device has answered lapses, what was signed and not with the platform is
        withdrawn, and the platform's lists are read from their beginning.
        """
        entries, head = self.head()
        facts = {"entries": entries, "head": head.hex(), "made_at": made_at.isoformat()}
        with self._transaction("restored"):
            rows.rebuild(self._db)
            rebuild_places(self._db)
            rebuild_payees(self._db, self.network)
            for row in self._db.execute("SELECT psbt_id FROM unfollowed").fetchall():
                write_unfollowed_parts(self._db, row["psbt_id"])
            self._db.execute("DELETE FROM heard")
            self._append(Note(RESTORED, SUBJECT, facts))
            self._judge_anew()
            # The person may have declined since, and the platform not have heard of it.
            for record in self.records(NOT_TAKEN):
                self._stored(record, withdrawn(record, FORGOTTEN))

    def recall(self, snapshot: Snapshot) -> Step | None:
        """Take a proposal with a signature of ours that this journal has forgotten as signed here; None where
        there is none.

        Raises PlatformFloods where there is no room for it: nothing was recorded.
        """
        known = self._find(snapshot.psbt_id)
        if known is not None and known.signature is not None:
            return None
        if own_signature(snapshot, self.review_context(snapshot)) is None:
            return None
        self.poll(snapshot)
        return self.decide(snapshot.psbt_id, Recalled())

    def caught_up(self, workspace_id: int, codes: Iterable[str]) -> bool:
        """The workspace's list was read from its beginning to its end, for the vaults of these codes. Returns
        whether this was the last that was missing since a restore.
        """
        if workspace_id not in self.behind():
            return False
        self.note(Note(CAUGHT_UP, str(workspace_id), {"codes": sorted(codes)}))
        return not self.behind()
