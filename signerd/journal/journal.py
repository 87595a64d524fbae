"""Decide and record in one transaction: the engine is asked inside it, its answer and its notes are stored with it.

One thread uses a journal. Every public method that changes something is one transaction, on the disk when it returns.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from multisig import Fingerprint, Network
from multisig.tokens import Payload, bytecode_hash
from signerd.core.audit import GENESIS, Entry, Note, link
from signerd.core.claims import VaultClaim, changes, fingerprint_of_change
from signerd.core.effects import REGISTRATION, Effect, Level, Notify
from signerd.core.engine import Step, decide, receive, standing_effects
from signerd.core.events import Event, Polled, Reconsidered, Restarted
from signerd.core.key_status import Revocation
from signerd.core.places import policy_code
from signerd.core.review import Review, review
from signerd.core.rules.spending import NO_QUORUM
from signerd.core.rules.values import NO_RULES, Rules
from signerd.core.screens import Screen
from signerd.core.signing import PROFILE
from signerd.core.states import TABLE, UNDECIDED, Move, State
from signerd.core.tokens import Published, subject_of
from signerd.core.values import Limits, Neighbour, OwnKey, Pin, Record, Snapshot, Surroundings
from signerd.errors import JournalUnwritable, UnknownProposal
from signerd.faults import FaultPoint, no_fault
from signerd.journal import rows
from signerd.journal.apps import AppBook
from signerd.journal.chain_books import PlaceBook, ScreenBook, SpendingBook, screen_note
from signerd.journal.figures import JournalFigures, figures_of
from signerd.journal.imported import ImportedBook
from signerd.journal.keys import KeyBook
from signerd.journal.quota import QuotaBook
from signerd.journal.storage import open_journal
from signerd.journal.tokens import TokenBook
from signerd.journal.vaults import AtDevice, VaultBook, facts_of

# The states that a restart changes: how far an effect went is not known there.
INTERRUPTIBLE = tuple(state for state in State if (state, Move.RESTARTED) in TABLE)
# No signature of ours exists there yet, and none is on its way: what is known of the vault may still change everything.
UNSIGNED = (State.REFUSED, State.WAITING_PERSON, State.WAITING_DEVICE, State.INTERRUPTED)
# Nothing was decided about it: it is judged anew whenever something changes.
RECONSIDERED = (State.REFUSED, State.WAITING_PERSON)
NOT_AT_DEVICE = AtDevice()
Now = Callable[[], datetime]


def _nobody(_before: Record | None, _after: Record) -> None:
    pass


@dataclass(frozen=True)
class Learnt:
    """Whether the platform's word about a vault is ``news``, and what follows at once."""

    news: bool
    effects: tuple[Effect, ...] = ()


def utc_now() -> datetime:
    return datetime.now(UTC)


class Journal:
    """What this signer knows and has decided. Use as a context manager; the folder must be held."""

    def __init__(
        self,
        folder: Path,
        *,
        network: Network,
        limits: Limits,
        rules: Rules = NO_RULES,
        lowered: frozenset[str] = frozenset(),
        now: Now = utc_now,
        fault: FaultPoint = no_fault,
    ) -> None:
        """Open it. ``rules`` and ``lowered`` (checks, by name) are what its proposals are judged by, beside ``limits``.

        Raises:
            JournalCorrupted, JournalTooNew, JournalUnwritable: the daemon must not go on.
        """
        self.network = network
        self.limits = limits
        self.rules = rules
        self.lowered = lowered
        self._now = now
        self._fault = fault
        # Told of each record that was stored, with what it was before, once it is on the disk.
        self.stored: Callable[[Record | None, Record], None] = _nobody
        self._moves: list[tuple[Record | None, Record]] = []
        self._db = open_journal(folder, now())
        self._book = SpendingBook(self._db)
        self._places = PlaceBook(self._db)
        self._screens = ScreenBook(self._db)
        self._vaults = VaultBook(self._db, network)
        self.keys = KeyBook(self._db, network)
        self.apps = AppBook(self._db, self.noted)
        self.imported = ImportedBook(self._db)
        self.tokens = TokenBook(self._db)
        self._quota = QuotaBook(self._db)

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # --- proposals -------------------------------------------------------------------------------------------------

    def poll(self, snapshot: Snapshot) -> Step:
        """Take the platform's word about a proposal, known or new. What it said before is not written again.

        Raises PlatformFloods where there is no room for it: nothing was recorded.
        """
        known = self._find(snapshot.psbt_id)
        if known is not None and known.snapshot == snapshot:
            return Step(known)
        self._quota.require_words(known, self.now().timestamp())
        if known is not None:
            self._quota.require_room_to_grow(known, snapshot)
        with self._transaction("Polled"):
            if known is None:
                forgotten = self._quota.make_room(snapshot)
                if forgotten is not None:
                    self._append(forgotten)
                self._begin_record(snapshot)
                return self._stored(None, receive(snapshot, self.surroundings(snapshot)))
            return self._stored(known, decide(known, Polled(snapshot), self.surroundings(snapshot)))

    def preview(self, snapshot: Snapshot) -> Review:
        """What the person would be shown of something that is not here. Nothing is stored."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            # Its neighbours are found by the coins of rows: they are written, and never committed.
            self._begin_record(snapshot)
            return review(snapshot, self.surroundings(snapshot))
        finally:
            self._db.execute("ROLLBACK")

    def bring(self, snapshot: Snapshot) -> Step:
        """Store what somebody brings, judged at once. ``snapshot.psbt_id`` is fresh: sqlite3.IntegrityError is a bug above."""
        with self._transaction("Brought"):
            self._begin_record(snapshot)
            return self._stored(None, receive(snapshot, self.surroundings(snapshot)))

    def _begin_record(self, snapshot: Snapshot) -> None:
        quorum = self._quorum_now(snapshot)
        rows.write_record(self._db, Record(snapshot, State.RECEIVED, identity=""), quorum)
        rows.write_coins(self._db, snapshot)

    def decide(self, psbt_id: str, event: Event) -> Step:
        """Apply an event and record what follows from it.

        Raises:
            UnknownProposal, IllegalEvent, StaleApproval, RefusedByChecks, NeedsAcknowledgement: nothing changed.
            JournalUnwritable: nothing changed, and nothing may be done.
        """
        with self._transaction(type(event).__name__):
            record = self.record(psbt_id)
            return self._stored(record, decide(record, event, self.surroundings(record.snapshot)))

    def restart(self) -> tuple[Effect, ...]:
        """Tell the proposals that were being acted on that the daemon starts; returns all that is to be done now."""
        for record in self.records(INTERRUPTIBLE):
            self.decide(record.psbt_id, Restarted())
        return self.standing_effects()

    def reconsider(self) -> tuple[Effect, ...]:
        """Judge anew all that waits: a pin, a registered key or a limit changed."""
        return tuple(
            effect
            for record in self.records(RECONSIDERED)
            for effect in self.decide(record.psbt_id, Reconsidered()).effects
        )

    def is_reconsidered(self, psbt_id: str) -> bool:
        """Whether one that was listed is still judged anew: it may have moved on since, when a yes must not lapse, or be forgotten."""
        record = self._find(psbt_id)
        return record is not None and record.state in RECONSIDERED

    def standing_effects(self) -> tuple[Effect, ...]:
        return tuple(
            effect
            for record in self.unsettled()
            for effect in standing_effects(record, self.surroundings(record.snapshot))
        )

    def standing_effects_of(self, psbt_id: str) -> tuple[Effect, ...]:
        """What one proposal's state asks for now. Raises UnknownProposal."""
        record = self.record(psbt_id)
        return standing_effects(record, self.surroundings(record.snapshot))

    def record(self, psbt_id: str) -> Record:
        """Raises UnknownProposal."""
        found = self._find(psbt_id)
        if found is None:
            raise UnknownProposal(f"there is no proposal '{psbt_id}' here")
        return found

    def records(self, states: Sequence[State] | None = None) -> tuple[Record, ...]:
        """In the order in which they came."""
        wanted = tuple(State) if states is None else tuple(states)
        marks = ",".join("?" * len(wanted))
        query = f"{rows.RECORD_COLUMNS} WHERE p.state IN ({marks}) ORDER BY p.rowid"
        return tuple(rows.read_record(row) for row in self._db.execute(query, wanted))

    def ids(self, states: Sequence[State]) -> tuple[str, ...]:
        """Of those in these states, in the order in which they came. One that is over may be forgotten (``journal.quota``)."""
        marks = ",".join("?" * len(states))
        query = f"SELECT psbt_id FROM proposals WHERE state IN ({marks}) ORDER BY rowid"  # noqa: S608 - question marks alone
        return tuple(row["psbt_id"] for row in self._db.execute(query, tuple(states)))

    def unsettled(self) -> tuple[Record, ...]:
        """Those about which something may still be done or heard, in the order in which they came."""
        query = f"{rows.RECORD_COLUMNS} WHERE p.settled = 0 ORDER BY p.rowid"
        return tuple(rows.read_record(row) for row in self._db.execute(query))

    def review(self, psbt_id: str) -> Review:
        """What the person is shown now, and the hash to approve it by. Raises UnknownProposal."""
        snapshot = self.record(psbt_id).snapshot
        return review(snapshot, self.surroundings(snapshot))

    # --- keys and vaults -------------------------------------------------------------------------------------------

    def own_keys(self) -> tuple[OwnKey, ...]:
        """Those of the device that is registered now."""
        return self.keys.registered()

    def add_own_keys(self, keys: Sequence[OwnKey], platform_key_id: str, note: Note) -> tuple[Effect, ...]:
        """What the device itself gave, under the key's id at the platform.

        Keys under another id are replaced: every approval that waits for a device lapses, for it may be a lost one.
        """
        with self._transaction("own-keys"):
            replaced = self.keys.write(keys, platform_key_id, self._stamp())
            self._append(note)
            return self._judge_anew() if replaced else ()

    def revoke(self, told: Revocation) -> tuple[Effect, ...]:
        """The platform's word that the registered key is revoked: kept and told once, and nothing more is asked of the device.

        What is known here stays; a signature that exists is still submitted.
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
        """The pinned quorum that the platform means by that id: the one pinned under it, else the one it shows under it (S26)."""
        return self._vaults.pin(vault_id)

    def pin_of(self, snapshot: Snapshot) -> Pin | None:
        """The pinned vault by which a proposal is judged. What was brought stays with its quorum, whatever ids mean since."""
        if snapshot.is_of_profile:
            return None
        kept = None if snapshot.brought is None else rows.read_quorum(self._db, snapshot.psbt_id)
        return self.pin(snapshot.vault_id) if kept is None else self._vaults.pin_by_code(kept)

    def pinned_codes(self) -> Mapping[str, frozenset[str]]:
        """As ``rows.read_pinned_codes``."""
        return rows.read_pinned_codes(self._db)

    def add_pin(self, pin: Pin, note: Note, at_device: AtDevice = NOT_AT_DEVICE) -> None:
        """A vault that the person compared. A pinned one is never replaced: sqlite3.IntegrityError is a bug above.

        The chain keeps its code and descriptor: what was pinned under an id is known from it after the pin is gone.
        """
        code = pin.vault.verification_code
        facts = {"code": code, "descriptor": pin.vault.descriptor, **note.facts}
        with self._transaction("pin"):
            self._vaults.write_pin(pin, at_device)
            self._append(replace(note, facts=facts))
        self.rules = self.rules.pinned(pin.vault_id, code)

    def unpin(self, vault_id: str, note: Note) -> tuple[Effect, ...]:
        """Forget a pinned vault and the changes that were seen of it; every approval that waits for a device lapses."""
        pin = self.pin(vault_id)
        if pin is None:
            return ()
        code = pin.vault.verification_code
        with self._transaction("unpin"):
            affected = self._unsigned_of(code)
            self._vaults.delete_pin(code)
            self._append(note)
            return self._judge_anew(affected)

    def at_device(self, vault_id: str) -> AtDevice:
        """What the device has done about the vault; nothing where it is not pinned."""
        pin = self.pin(vault_id)
        return AtDevice() if pin is None else self._vaults.at_device(pin.vault.verification_code)

    def set_at_device(self, vault_id: str, at_device: AtDevice, note: Note) -> None:
        pin = self.pin(vault_id)
        if pin is None:
            return
        with self._transaction("at-device"):
            self._vaults.write_at_device(pin.vault.verification_code, at_device)
            self._append(note)

    def learn(self, claim: VaultClaim) -> Learnt:
        """The platform's word about a vault today. A change of a pinned one is recorded and told once (S16).

        Raises PlatformFloods where there is no room for it: nothing was recorded.
        """
        pin = self._vaults.pin_of(claim)
        told = () if pin is None else changes(pin, claim)
        code = "" if pin is None else pin.vault.verification_code
        mark = fingerprint_of_change(claim, self.network)
        unknown = bool(told) and not self._vaults.knows_change(code, mark)
        fresh = unknown and self._quota.has_room_for_change(code)
        news = self._vaults.claim(claim.vault_id) != claim
        if not (news or fresh):
            return Learnt(news=False)
        if news and not fresh:  # An alarm is told whatever else was said today.
            self._quota.require_room_for_vault(claim.vault_id)
            self._quota.require_words(None, self.now().timestamp())
        with self._transaction("vault-claim"):
            if news:
                self._vaults.write_claim(claim)
                self._append(Note("vault-claim", claim.vault_id, facts_of(claim)))
            return Learnt(news=True, effects=self._alarm(code, claim, mark, told) if fresh else ())

    def _alarm(self, code: str, claim: VaultClaim, mark: str, told: tuple[str, ...]) -> tuple[Effect, ...]:
        self._vaults.write_change(code, mark, told)
        self._append(Note("vault-changed", claim.vault_id, {**facts_of(claim), "changes": list(told)}))
        sentence = (
            f"ALARM: the platform shows a pinned vault changed. {' '.join(told)} Nothing of it is signed."
        )
        return (Notify(claim.vault_id, Level.ALARM, sentence), *self._judge_anew(self._unsigned_of(code)))

    def _unsigned_of(self, code: str) -> tuple[Record, ...]:
        """What waits for anything, also for a device, and is judged by the vault pinned under this code, or was when it was
        last judged: what the platform says of an id may be otherwise since, and otherwise again tomorrow.
        """
        return tuple(record for record in self.records(UNSIGNED) if self._is_of(code, record.snapshot))

    def _is_of(self, code: str, snapshot: Snapshot) -> bool:
        pin = self.pin_of(snapshot)
        judged_by_it = pin is not None and pin.vault.verification_code == code
        return judged_by_it or rows.read_quorum(self._db, snapshot.psbt_id) == code

    def _judge_anew(self, records: Sequence[Record] | None = None) -> tuple[Effect, ...]:
        """Within a transaction: these, or all that waits for anything, also for a device, are judged again."""
        return tuple(
            effect
            for record in (self.records(UNSIGNED) if records is None else records)
            for effect in self._stored(
                record, decide(record, Reconsidered(), self.surroundings(record.snapshot))
            ).effects
        )

    def claim(self, vault_id: str) -> VaultClaim | None:
        return self._vaults.claim(vault_id)

    def claims(self) -> tuple[VaultClaim, ...]:
        """The platform's last word about every vault that it ever showed."""
        return self._vaults.claims()

    def vault_changes(self, vault_id: str) -> tuple[str, ...]:
        """In what the platform has shown a pinned vault otherwise since, while the person has not looked."""
        pin = self.pin(vault_id)
        return () if pin is None else self._vaults.changes(pin.vault.verification_code)

    def see_screen(self, fingerprint: Fingerprint, screen: Screen) -> tuple[Effect, ...]:
        """A device with this master key is there: keep what its screen shows, and judge anew what waits for the person.

        What waits for the device is judged again before that is asked.
        """
        if self._screens.of(fingerprint) == screen:
            return ()
        self.note(screen_note(fingerprint, screen))
        return self.reconsider()

    def learn_token(self, payload: Payload, published: Published) -> tuple[Effect, ...]:
        """Keep the token that these bytes prove, and judge anew what waits.

        Raises NotProven, and PlatformFloods where there is no room for it: nothing is kept.
        """
        self._quota.require_room_for_token()
        with self._transaction("token"):
            proven = self.tokens.write(payload, published)
            facts = {"hash": bytecode_hash(published.bytecode).hex(), "ticker": proven.ticker}
            self._append(Note("token-proven", subject_of(payload), facts))
            return self._judge_anew()

    # --- the audit chain -------------------------------------------------------------------------------------------

    def note(self, note: Note) -> None:
        """Record something that changes no proposal."""
        with self.noted("note", note):
            pass

    @contextmanager
    def noted(self, name: str, note: Note) -> Iterator[None]:
        """One transaction around what the body writes, with its note: for the books that write by themselves."""
        with self._transaction(name):
            yield
            self._append(note)

    def audit(self, after: int = 0) -> Iterator[Entry]:
        return rows.audit_entries(self._db, after)

    def audit_page(
        self, search: str, limit: int, *, after: int | None, before: int | None
    ) -> tuple[Entry, ...]:
        """As ``rows.audit_page``."""
        return tuple(rows.audit_page(self._db, search, limit, after=after, before=before))

    def figures(self) -> JournalFigures:
        return figures_of(self._db)

    def head(self) -> tuple[int, bytes]:
        """How long the chain is, and its last hash: writing both down elsewhere shows a cut tail."""
        row = self._db.execute("SELECT sequence, digest FROM audit ORDER BY sequence DESC LIMIT 1").fetchone()
        return (0, GENESIS) if row is None else (row["sequence"], row["digest"])

    # --- inside ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, name: str) -> Iterator[None]:
        self._moves = []
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._fault(f"journal:before:{name}")
                self._db.execute("COMMIT")
            except BaseException:
                self._book.forget()
                self._places.forget()
                self._screens.forget()
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.DatabaseError as error:
            raise JournalUnwritable(f"the journal cannot be written: {error}") from error
        self._fault(f"journal:after:{name}")
        for before, after in self._moves:
            self.stored(before, after)

    def _find(self, psbt_id: str) -> Record | None:
        query = f"{rows.RECORD_COLUMNS} WHERE p.psbt_id = ?"
        row = self._db.execute(query, (psbt_id,)).fetchone()
        return None if row is None else rows.read_record(row)

    def _stored(self, before: Record | None, step: Step) -> Step:
        if step.record != before:
            rows.write_record(self._db, step.record, self._quorum_kept(before, step.record.snapshot))
            self._moves.append((before, step.record))
        held = None if before is None else before.signature
        if step.record.signature is not None and step.record.signature != held:
            # The table takes one signature for a proposal: a second one ends the transaction.
            rows.write_signature(self._db, step.record.psbt_id, step.record.signature)
        for note in step.notes:
            self._append(note)
        return step

    def _quorum_kept(self, before: Record | None, snapshot: Snapshot) -> str | None:
        """Under which code a proposal is kept: for good, once a device was asked or the platform told of its end."""
        kept = rows.read_quorum(self._db, snapshot.psbt_id)
        may_move = before is None or (before.state in UNDECIDED and before.signature is None)
        return self._quorum_now(snapshot) if kept is None or may_move else kept

    def _quorum_now(self, snapshot: Snapshot) -> str | None:
        """By the pin; where there is none any more by what it was before; where there was none by what the platform shows."""
        if snapshot.is_of_profile:
            return NO_QUORUM
        pin = self.pin_of(snapshot)
        if pin is not None:
            return pin.vault.verification_code
        kept, claim = rows.read_quorum(self._db, snapshot.psbt_id), self._vaults.claim(snapshot.vault_id)
        return rows.code_of(claim.descriptor, self.network) if kept is None and claim is not None else kept

    def _append(self, note: Note) -> None:
        sequence, digest = self.head()
        rows.write_entry(self._db, link(sequence + 1, self._stamp(), note, digest))

    def now(self) -> datetime:
        """By the clock that dates the chain, in UTC."""
        return self._now().astimezone(UTC)

    def _stamp(self) -> str:
        return self.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def surroundings(self, snapshot: Snapshot) -> Surroundings:
        """What this machine knows that bears on a proposal."""
        pin, brought = self.pin_of(snapshot), snapshot.brought
        # The platform shows no proposal of what was brought: its word about the vault is that under which it was pinned.
        claim = self._vaults.claim(snapshot.vault_id if brought is None or pin is None else pin.vault_id)
        revoked, token = self.keys.revocation(), self.tokens.named_by(snapshot)
        own_keys = self.own_keys()
        return Surroundings(
            network=self.network,
            limits=self.limits,
            pin=pin,
            claimed_descriptor=None if claim is None else claim.descriptor,
            claimed_name=None if claim is None else claim.name,
            vault_changes=() if pin is None else self._vaults.changes(pin.vault.verification_code),
            own_keys=own_keys,
            former_keys=self.keys.former(),
            revoked="" if revoked is None else revoked.sentence,
            neighbours=self._neighbours(snapshot),
            lowered=self.lowered,
            rules=self.rules,
            spent=self._book.spent() if self.rules.rules else (),
            moment=self._book.moment(self._now(), to_the_minute=self.rules.hang_on_time),
            lapsed=brought is not None and self.now().timestamp() >= brought.expires_at,
            token=token,
            pins=self.pins() if token is not None and token.whitelist else (),
            places=self._places.of(_codes(pin, own_keys)),
            screen=None if pin is None else self._screens.of(pin.own_key.fingerprint),
        )

    def _neighbours(self, snapshot: Snapshot) -> tuple[Neighbour, ...]:
        is_brought, at = snapshot.brought is not None, (snapshot.psbt_id, self._quorum_now(snapshot))
        return rows.read_neighbours(self._db, *at, snapshot.replaces, brought=is_brought)


def _codes(pin: Pin | None, own_keys: Sequence[OwnKey]) -> tuple[str, ...]:
    """Of the policies whose coins a proposal may spend: the pinned vault, and the member's profiles."""
    vaults = () if pin is None else (policy_code(pin.vault),)
    return (*vaults, *(str(own.key) for own in own_keys if own.purpose == PROFILE))
