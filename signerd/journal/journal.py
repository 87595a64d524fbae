"""Decide and record in one transaction: the engine is asked inside it, its answer and its notes are stored
with it.

One thread uses a journal. Every public method that changes something is one transaction, on the disk when it
returns.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from custody.schemas.proposals import ProposalStatus
from multisig import RECEIVE, Vault
from signerd.core.addresses import PinnedPlace, called_here, receive_scripts
from signerd.core.claims import fault_of_pinned
from signerd.core.engine import decide
from signerd.core.events import (
    AnswerImported,
    Approved,
    AskPerson,
    DeviceFound,
    Exported,
    JudgeAgain,
    News,
    Polled,
    ProposalEvent,
    Recalled,
    Reconsidered,
    Replaced,
    Restarted,
    Step,
    ask_person,
)
from signerd.core.following import forgotten, own_signature, receive
from signerd.core.places import NEW_POLICY, policy_code
from signerd.core.review import ProposalReview, review, verdict_key
from signerd.core.rules.spending import NO_QUORUM, Spent
from signerd.core.rules.values import DAY
from signerd.core.signing import PROFILE, SigningPolicy, signing_of
from signerd.core.states import NOT_TAKEN, TABLE, TO_SUBMIT, UNDECIDED, ProposalMove, State
from signerd.core.values import Imported, OwnKey, Pin, Record, ReviewContext, Snapshot, Unfollowed, parts_of
from signerd.errors import NotCaughtUp, UnknownProposal
from signerd.journal import rows
from signerd.journal.books import (
    BACKED_UP,
    backed_up_note,
    behind,
    caught_up_note,
    read_places,
    read_screen,
    rebuild_places,
    restored_note,
    spent_since,
    write_places,
)
from signerd.journal.chain import stamp
from signerd.journal.keys_and_vaults import KeysAndVaults
from signerd.journal.quota import work_of

# The states that a restart changes: how far it went is not known there.
INTERRUPTIBLE = tuple(state for state in State if (state, ProposalMove.RESTARTED) in TABLE)
# Nothing was decided about it: it is judged anew, in turn, after something changed.
RECONSIDERED = (State.REFUSED, State.WAITING_PERSON)
# Decided, without a signature of ours: it is judged anew at once, and a yes lapses where the verdict changed.
DECIDED = (State.WAITING_DEVICE, State.INTERRUPTED)
UNSIGNED = (*RECONSIDERED, *DECIDED)


# Twice as long as a proposal of the platform's waits for its signatures.
KEPT_DAYS = 30
# After its end, by the platform's word, a signed proposal is followed for so long.
FOLLOWED_DAYS = 90


class Journal(KeysAndVaults):
    """What this signer knows and has decided. Use as a context manager; the folder must be held."""

    # --- proposals ------------------------------------------------------------------------------------------

    def poll(self, snapshot: Snapshot) -> Step:
        """Take the platform's word about a proposal, known or new. What it said before is not written again.

        Raises PlatformFloods where there is no room for it: nothing was recorded.
        """
        known = self._find(snapshot.psbt_id)
        if known is not None and known.snapshot == snapshot:
            return Step(known)
        self._quota.require_word(known, self.now().timestamp(), work_of(snapshot))
        self.parts_judged += parts_of(snapshot.psbt)
        with self._transaction("Polled"):
            forgotten = self._quota.make_room(known, snapshot)
            if forgotten is not None:
                self._append(forgotten)
            if known is None:
                return self._received(snapshot)
            event, shown = Polled(snapshot), replace(known, snapshot=snapshot)
            return self._stored(known, decide(known, event, self._context_for(shown, event)))

    def preview(self, snapshot: Snapshot) -> ProposalReview:
        """What the person would be shown of something that is not here. Nothing is stored."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            # Its neighbours are found by the coins of rows: they are written, and never committed.
            self._begin_record(snapshot)
            return review(snapshot, self.review_context(snapshot))
        finally:
            self._db.execute("ROLLBACK")

    def import_psbt(self, snapshot: Snapshot) -> Step:
        """Store an imported PSBT, judged at once. ``snapshot.psbt_id`` is fresh: sqlite3.IntegrityError
        is a bug in the caller.
        """
        with self._transaction("Imported"):
            return self._received(snapshot)

    def _received(self, snapshot: Snapshot) -> Step:
        self._begin_record(snapshot)
        context = self.review_context(snapshot)
        step = self._stored(None, receive(snapshot, context))
        self._keep_verdict(step.record, context)
        return step

    def _begin_record(self, snapshot: Snapshot) -> None:
        quorum = self._quorum_now(snapshot)
        rows.write_record(self._db, Record(snapshot, State.RECEIVED, identity=""), quorum)
        rows.write_coins(self._db, snapshot)

    def decide(self, psbt_id: str, event: ProposalEvent) -> Step:
        """Apply an event and record what follows from it.

        Raises:
            UnknownProposal, IllegalEvent, StaleApproval, RefusedByChecks, NeedsAcknowledgement,
            AnswerRefused: nothing changed.
            NotCaughtUp: an approval or a device's answer, before the journal knows what was signed after the
            backup that it is from.
            JournalUnwritable: nothing changed, and nothing may be done.
        """
        if isinstance(event, Approved | AnswerImported):
            self._require_caught_up()
        with self._transaction(type(event).__name__):
            record = self.record(psbt_id)
            return self._stored(record, decide(record, event, self._context_for(record, event)))

    def restart(self) -> None:
        """Tell the proposals that were being acted on that the daemon starts."""
        for psbt_id in self.ids(INTERRUPTIBLE):
            self.decide(psbt_id, Restarted())

    def reconsider(self, psbt_id: str) -> tuple[News, ...]:
        """Judge one anew, if it still waits for the person: since it was listed, it may have moved on, when a
        yes must not lapse, or be forgotten. Where nothing of what it was judged by has changed, its verdict
        is kept.
        """
        record = self._find(psbt_id)
        if record is None or record.state not in RECONSIDERED:
            return ()
        context = self.review_context(record.snapshot)
        key = verdict_key(record.snapshot, context)
        if key is not None and rows.read_verdict_key(self._db, psbt_id) == key:
            return ()
        with self._transaction("Reconsidered"):
            step = self._stored(record, decide(record, Reconsidered(), context))
            self._keep_verdict(step.record, context)
            return step.news

    def _keep_verdict(self, record: Record, context: ReviewContext) -> None:
        if record.state in RECONSIDERED:
            rows.write_verdict_key(self._db, record.psbt_id, verdict_key(record.snapshot, context))

    def ask_person(self, psbt_id: str) -> AskPerson:
        """Raises UnknownProposal."""
        snapshot = self.record(psbt_id).snapshot
        return ask_person(snapshot, self._context_alone(snapshot))

    def signing(self, snapshot: Snapshot) -> SigningPolicy | None:
        """With which of our keys, and of which policy."""
        return signing_of(snapshot, self._context_alone(snapshot))

    def is_lapsed(self, imported: Imported | None) -> bool:
        """Whether an imported PSBT can no longer be approved."""
        return imported is not None and self.now().timestamp() >= imported.expires_at

    def record(self, psbt_id: str) -> Record:
        """Raises UnknownProposal."""
        found = self._find(psbt_id)
        if found is None:
            raise UnknownProposal(f"there is no proposal '{psbt_id}' here")
        return found

    def exports_of(self, identity: str) -> tuple[Record, ...]:
        """What was exported of one transaction, in whatever state it is now, in the order in which they
        came.
        """
        return self._records("p.identity = ? AND p.exported IS NOT NULL ORDER BY p.rowid", identity)

    def proposal_of(self, txid: str) -> Record | None:
        """The platform's newest proposal of that transaction; None where none is known here."""
        where = "p.identity = ? AND p.imported_by IS NULL ORDER BY p.rowid DESC LIMIT 1"
        return next(iter(self._records(where, txid)), None)

    def records(self, states: Sequence[State] | None = None) -> tuple[Record, ...]:
        """In the order in which they came."""
        wanted = tuple(State) if states is None else tuple(states)
        marks = ",".join("?" * len(wanted))
        return self._records(f"p.state IN ({marks}) ORDER BY p.rowid", *wanted)

    def ids(self, states: Sequence[State]) -> tuple[str, ...]:
        """Of those in these states, in the order in which they came. One that is over may be forgotten
        (``journal.quota``).
        """
        marks = ",".join("?" * len(states))
        query = f"SELECT psbt_id FROM proposals WHERE state IN ({marks}) ORDER BY rowid"  # noqa: S608 - question marks alone
        return tuple(row["psbt_id"] for row in self._db.execute(query, tuple(states)))

    def to_deliver(self) -> tuple[str, ...]:
        """Ids of those of which a signature or a decline is still to reach the platform (``todo``)."""
        query = (
            "SELECT psbt_id FROM proposals WHERE state IN ('signed', 'kept') "
            "OR (state = 'declined' AND NOT json_extract(decline, '$.delivered')) ORDER BY rowid"
        )
        return tuple(row["psbt_id"] for row in self._db.execute(query))

    def followed(self, workspace_id: int) -> tuple[str, ...]:
        """Ids of the platform's proposals of which something may still be heard: imported PSBTs are never
        mentioned to it, not even by their id.
        """
        query = (
            "SELECT psbt_id FROM proposals WHERE settled = 0 AND workspace_id = ? AND imported_by IS NULL "
            "ORDER BY rowid"
        )
        return tuple(row["psbt_id"] for row in self._db.execute(query, (workspace_id,)))

    def alarms(self) -> tuple[tuple[str, str], ...]:
        """Ids of those with an alarm, and the alarm."""
        query = "SELECT psbt_id, alarm FROM proposals WHERE settled = 0 AND alarm <> '' ORDER BY rowid"
        return tuple((row["psbt_id"], row["alarm"]) for row in self._db.execute(query))

    def overdue(self) -> tuple[str, ...]:
        """What was kept for longer than any proposal waits, and what has been over for so long that it is not
        followed any more.
        """
        now = self.now()
        kept_before, over_before = (stamp(now - timedelta(days=days)) for days in (KEPT_DAYS, FOLLOWED_DAYS))
        return rows.overdue(self._db, kept_before=kept_before, over_before=over_before)

    def review(self, psbt_id: str) -> ProposalReview:
        """What the person is shown now, and the hash to approve it by. Raises UnknownProposal."""
        snapshot = self.record(psbt_id).snapshot
        return review(snapshot, self.review_context(snapshot))

    # --- what others signed ---------------------------------------------------------------------------------

    def is_followed(self, psbt_id: str) -> bool:
        return self._find(psbt_id) is not None

    def hear(
        self,
        workspace_id: int,
        codes: frozenset[str],
        found: Sequence[tuple[str, Unfollowed]],
        until: str | None,
    ) -> None:
        """Keep what others signed and the person is not asked about, each with its quorum.

        ``until``: the last proposal of the workspace that need not be looked at again for the vaults of these
        ``codes``. Raises PlatformFloods where there is no room: nothing is kept.
        """
        fresh = [one for _quorum, one in found if not self.unfollowed.knows(one.psbt_id)]
        if fresh:
            self._quota.require_room_for_unfollowed(fresh)
        with self._transaction("Heard"):
            for quorum, one in found:
                self.unfollowed.write(quorum, one)
            if until is not None:
                self.unfollowed.write_heard(workspace_id, codes, until)

    def replaced(self, snapshot: Snapshot) -> Step | None:
        """Withdraw what this proposal was made to replace, where it is signed and not with the platform; None
        where there is nothing to withdraw. One that is over replaces what had been signed when this machine
        first heard of it.
        """
        if snapshot.replaces is None:
            return None
        known = self._find(snapshot.replaces)
        # The id is the platform's word, and so is the vault: of another's it is no replacement.
        if known is not None and _place(snapshot) != _place(known.snapshot):
            return None
        is_over = snapshot.status is not ProposalStatus.PENDING
        # What is on its way just now may come back, and this version be over by then.
        is_signed = known is not None and known.signature is not None
        version = snapshot.psbt_id, snapshot.replaces
        if (is_over or is_signed) and self.versions.is_news(*version, after_signature=is_signed):
            with self._transaction("Heard"):
                self.versions.write(*version, after_signature=is_signed)
        if is_over:
            return self.withdraw_replaced(snapshot.replaces)
        return None if known is None else self._replaced_by(known, snapshot.psbt_id)

    def withdraw_replaced(self, psbt_id: str) -> Step | None:
        """Withdraw what is signed and not with the platform, where a newer version came since and is over."""
        by, known = self.versions.after_signature(psbt_id), self._find(psbt_id)
        return None if by is None or known is None else self._replaced_by(known, by)

    def _replaced_by(self, known: Record, by: str) -> Step | None:
        return self.decide(known.psbt_id, Replaced(by)) if known.state in TO_SUBMIT else None

    def hear_anew(self, workspace_id: int) -> None:
        """The workspace's whole list is to be read from its first proposal on."""
        with self._transaction("HeardAnew"):
            self.unfollowed.forget_heard(workspace_id)

    # --- after a restore ------------------------------------------------------------------------------------

    def note_backup(self, made_at: str, fingerprint: str) -> None:
        """Record that a backup was made, once for each."""
        query = "SELECT 1 FROM audit WHERE kind = ? AND json_extract(facts, '$.fingerprint') = ?"
        if self._db.execute(query, (BACKED_UP, fingerprint)).fetchone() is None:
            self.note(backed_up_note(made_at, fingerprint))

    def restore(self, made_at: datetime) -> None:
        """Begin anew with what a backup of that time remembers: its chain goes on with an entry that says so,
        nobody is let in, what was spent and paid is read from the stored PSBTs,
        every approval that no device has answered lapses, what was signed and not with the platform is
        withdrawn, and the platform's lists are read from their beginning.
        """
        entries, head = self.head()
        with self._transaction("restored"):
            rows.rebuild(self._db)
            rebuild_places(self._db)
            self.unfollowed.rebuild()
            self.unfollowed.forget_all_heard()
            self._append(restored_note(made_at, entries, head))
            self._judge_anew()
            for record in self.records(NOT_TAKEN):
                self._stored(record, forgotten(record))

    def behind(self) -> frozenset[int]:
        """Workspaces whose whole list was not read since the restore for a vault that is pinned now."""
        pins = ((pin.workspace_id, pin.vault.verification_code) for pin in self.pins())
        return behind(self._db, self.restored, pins)

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
        self.note(caught_up_note(workspace_id, codes))
        return not self.behind()

    def _require_caught_up(self) -> None:
        behind = self.behind()
        if behind:
            names = ", ".join(str(workspace) for workspace in sorted(behind))
            raise NotCaughtUp(
                "this machine's memory was restored from a backup, and the platform's whole list of the "
                f"workspace {names} was not read since: what you signed after the backup is not known here"
            )

    # --- inside ---------------------------------------------------------------------------------------------

    def _decided_of(self, code: str) -> tuple[Record, ...]:
        """What is decided and unsigned, and is judged by the vault pinned under this code, or was when it was
        last judged: what the platform says of an id may be otherwise since, and otherwise again tomorrow.
        """
        return tuple(record for record in self.records(DECIDED) if self._is_of(code, record.snapshot))

    def _is_of(self, code: str, snapshot: Snapshot) -> bool:
        pin = self.pin_of(snapshot)
        judged_by_it = pin is not None and pin.vault.verification_code == code
        return judged_by_it or rows.read_quorum(self._db, snapshot.psbt_id) == code

    def _judge_anew(self, records: Sequence[Record] | None = None) -> tuple[News, ...]:
        """Within a transaction: these, or all that is decided and unsigned, are judged again at once; what
        waits for the person is due.
        """
        steps = (
            self._stored(record, decide(record, Reconsidered(), self.review_context(record.snapshot)))
            for record in (self.records(DECIDED) if records is None else records)
        )
        return (*(news for step in steps for news in step.news), JudgeAgain())

    def _find(self, psbt_id: str) -> Record | None:
        return next(iter(self._records("p.psbt_id = ?", psbt_id)), None)

    def _records(self, where: str, *given: str) -> tuple[Record, ...]:
        found = self._db.execute(f"{rows.RECORD_COLUMNS} WHERE {where}", given)
        return tuple(rows.read_record(row) for row in found)

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
            if note.kind == "signed":
                write_places(self._db, note.facts)
        return step

    def _quorum_kept(self, before: Record | None, snapshot: Snapshot) -> str | None:
        """Under which code a proposal is kept: for good, once a device was asked or the platform told of its
        end.
        """
        kept = rows.read_quorum(self._db, snapshot.psbt_id)
        may_move = before is None or (before.state in UNDECIDED and before.signature is None)
        return self._quorum_now(snapshot) if kept is None or may_move else kept

    def _quorum_now(self, snapshot: Snapshot) -> str | None:
        """By the pin; where there is none any more by what it was before; where there was none by what the
        platform shows.
        """
        if snapshot.is_of_profile:
            return NO_QUORUM
        pin = self.pin_of(snapshot)
        if pin is not None:
            return pin.vault.verification_code
        kept, claim = rows.read_quorum(self._db, snapshot.psbt_id), self._vaults.claim(snapshot.vault_id)
        return rows.code_of(claim.descriptor, self.network) if kept is None and claim is not None else kept

    def next_receive_index(self, vault: Vault) -> int:
        """The receive address after the last one that a transaction signed here used."""
        code = policy_code(vault)
        return read_places(self._db, (code,)).get(code, NEW_POLICY)[RECEIVE][0][1] + 1

    def pinned_places(self, found: ProposalReview) -> dict[bytes, PinnedPlace]:
        """What it pays to receive addresses of pinned vaults, by their scripts."""
        paid = () if found.inspection is None else found.inspection.payments
        wanted, places = frozenset(payment.script_pubkey for payment in paid), dict[bytes, PinnedPlace]()
        pins = self.pins() if wanted else ()
        called = called_here(pins)
        for pin in pins:
            code = pin.vault.verification_code
            known = receive_scripts(pin.vault, self.next_receive_index(pin.vault))
            for script in wanted & known.keys():
                places[script] = PinnedPlace(called[code], known[script], self._fault_of(pin))
        return places

    def _fault_of(self, pin: Pin) -> str | None:
        told = self._vaults.changes(pin.vault.verification_code)
        return fault_of_pinned(pin.vault, told, self.own_keys(), self.keys.former())

    def review_context(self, snapshot: Snapshot) -> ReviewContext:
        """What this machine knows that bears on a proposal."""
        at, imported = (snapshot.psbt_id, self._quorum_now(snapshot)), snapshot.imported is not None
        neighbours, uncompared = rows.read_neighbours(self._db, *at, snapshot.replaces, imported=imported)
        return replace(
            self._context_alone(snapshot),
            neighbours=neighbours,
            uncompared=uncompared,
            unfollowed=self.unfollowed.paying_the_same(*at, imported=imported),
            spent=self._spent() if self.rules.depend_on_time else (),
            # The day, so that a judgement stays valid until then.
            moment=self.now().replace(hour=0, minute=0, second=0, microsecond=0),
        )

    def _spent(self) -> tuple[Spent, ...]:
        """Within the ``DAY`` that ends now, or at the latest time of the chain."""
        latest = self._db.execute("SELECT max(at) FROM audit").fetchone()[0] or ""
        now = max(self._stamp(), latest)
        return spent_since(self._db, stamp(datetime.fromisoformat(now) - DAY))

    def _context_for(self, record: Record, event: ProposalEvent) -> ReviewContext:
        """Other proposals are looked up only where this one is judged."""
        is_asked = isinstance(event, Approved | DeviceFound | Exported | AnswerImported)
        if is_asked or (isinstance(event, Polled | Reconsidered) and record.state in UNSIGNED):
            return self.review_context(record.snapshot)
        return self._context_alone(record.snapshot)

    def _context_alone(self, snapshot: Snapshot) -> ReviewContext:
        """Without other proposals, what was spent, and the time."""
        pin, imported = self.pin_of(snapshot), snapshot.imported
        # The platform shows no proposal of an imported PSBT: its word about the vault is that under which it
        # was pinned.
        claim = self._vaults.claim(snapshot.vault_id if imported is None or pin is None else pin.vault_id)
        revoked, token = self.keys.revocation(), self.tokens.named_by(snapshot)
        own_keys = self.own_keys()
        replacement = None if claim is None else claim.replaced_by
        may_name_vaults = replacement is not None or (token is not None and bool(token.whitelist))
        return ReviewContext(
            network=self.network,
            limits=self.limits,
            pin=pin,
            claimed_descriptor=None if claim is None else claim.descriptor,
            claimed_name=None if claim is None else claim.name,
            claimed_replacement=replacement,
            vault_changes=() if pin is None else self._vaults.changes(pin.vault.verification_code),
            own_keys=own_keys,
            former_keys=self.keys.former(),
            revoked="" if revoked is None else revoked.sentence,
            lowered=self.lowered,
            rules=self.rules,
            lapsed=self.is_lapsed(imported),
            token=token,
            pins=self.pins() if may_name_vaults else (),
            places=read_places(self._db, _codes(pin, own_keys)),
            screen=None if pin is None else read_screen(self._db, pin.own_key.fingerprint),
        )


def _place(snapshot: Snapshot) -> tuple[int, str]:
    return snapshot.workspace_id, snapshot.vault_id


def _codes(pin: Pin | None, own_keys: Sequence[OwnKey]) -> tuple[str, ...]:
    """Of the policies whose coins a proposal may spend: the pinned vault, and the member's profiles."""
    vaults = () if pin is None else (policy_code(pin.vault),)
    return (*vaults, *(str(own.key) for own in own_keys if own.purpose == PROFILE))
