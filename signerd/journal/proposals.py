"""Decide and record in one transaction: the engine is asked inside it, its answer and its notes are stored
with it.

One thread uses a journal. Every public method that changes something is one transaction, on the disk when it
returns.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from custody.schemas.common import format_time
from multisig import RECEIVE, Vault
from multisig.tokens import Bytecode, Deploy, Payload
from signerd.core.addresses import PinnedPlace, called_here, receive_scripts
from signerd.core.claims import code_of, fault_of_pinned
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
    Reconsidered,
    Restarted,
    Step,
    ask_person,
)
from signerd.core.following import ENDED, receive
from signerd.core.places import NEW_POLICY, policy_code
from signerd.core.review import ProposalReview, review, verdict_key
from signerd.core.rules.values import DAY, NO_QUORUM, Spent
from signerd.core.signing import PROFILE, SigningPolicy, signing_of
from signerd.core.states import TABLE, UNDECIDED, ProposalMove, State
from signerd.core.tokens import payload_of_bytes
from signerd.core.values import Imported, OwnKey, Pin, Record, ReviewContext, Snapshot, parts_of
from signerd.errors import NotCaughtUp, UnknownProposal
from signerd.journal import rows
from signerd.journal.books import (
    CAUGHT_UP,
    parsed_bytecode,
    read_paid,
    read_places,
    read_resembled,
    read_screen,
    read_unfollowed,
    spent_since,
    write_payees,
    write_places,
)
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


class Proposals(KeysAndVaults):
    """Proposals, and all that they are judged by."""

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
        if key is not None and self._row(
            "SELECT 1 FROM proposals WHERE psbt_id = ? AND judged = ?", psbt_id, key
        ):
            return ()
        with self._transaction("Reconsidered"):
            step = self._stored(record, decide(record, Reconsidered(), context))
            self._keep_verdict(step.record, context)
            return step.news

    def _keep_verdict(self, record: Record, context: ReviewContext) -> None:
        if record.state in RECONSIDERED:
            key = verdict_key(record.snapshot, context)
            self._db.execute("UPDATE proposals SET judged = ? WHERE psbt_id = ?", (key, record.psbt_id))

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
        record = self._find(psbt_id)
        if record is None:
            raise UnknownProposal(f"there is no proposal '{psbt_id}' here")
        return record

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
        """Ids of those with an alarm that have not ended, and the alarm."""
        query = "SELECT psbt_id, alarm, state FROM proposals WHERE settled = 0 AND alarm <> '' ORDER BY rowid"
        rows_of = self._db.execute(query)
        return tuple((row["psbt_id"], row["alarm"]) for row in rows_of if row["state"] not in ENDED)

    def overdue(self) -> tuple[str, ...]:
        """What was kept for longer than any proposal waits, and what has been over for so long that it is not
        followed any more.
        """
        named = {
            "kept_before": format_time(self.now() - timedelta(days=KEPT_DAYS)),
            "over_before": format_time(self.now() - timedelta(days=FOLLOWED_DAYS)),
        }
        return tuple(row["psbt_id"] for row in self._db.execute(rows.OVERDUE, named))

    # --- by what they are judged ----------------------------------------------------------------------------

    def pin_of(self, snapshot: Snapshot) -> Pin | None:
        """The pinned vault by which a proposal is judged. An imported PSBT keeps its quorum, whatever ids
        mean later.
        """
        if snapshot.is_of_profile:
            return None
        kept = None if snapshot.imported is None else rows.read_quorum(self._db, snapshot.psbt_id)
        return self.pin(snapshot.vault_id) if kept is None else self._pin_where("code", kept)

    def bytecode(self, payload: Payload) -> Bytecode | None:
        """The bytecode of a payload's token; None where it is not proven here."""
        if isinstance(payload, Deploy):
            row = self._row("SELECT blob FROM bytecodes WHERE hash = ?", payload.bytecode_hash)
        else:
            query = "SELECT blob FROM tokens JOIN bytecodes USING (hash) WHERE contract_id = ?"
            row = self._row(query, payload.contract_id)
        return None if row is None else parsed_bytecode(row["blob"])

    def behind(self) -> frozenset[int]:
        """Workspaces whose whole list was not read since the restore for a vault that is pinned now; empty
        without a restore.
        """
        if self.restored is None:
            return frozenset()
        query = "SELECT subject, facts FROM audit WHERE kind = ? AND sequence > ?"
        read = {
            (int(row["subject"]), code)
            for row in self._db.execute(query, (CAUGHT_UP, self.restored.sequence))
            for code in json.loads(row["facts"]).get("codes", ())
        }
        pinned = {(pin.workspace_id, pin.vault.verification_code) for pin in self.pins()}
        return frozenset(workspace for workspace, _code in pinned - read)

    def _require_caught_up(self) -> None:
        behind = self.behind()
        if behind:
            names = ", ".join(str(workspace) for workspace in sorted(behind))
            raise NotCaughtUp(
                "this machine's memory was restored from a backup, and the platform's whole list of the "
                f"workspace {names} was not read since: what you signed after the backup is not known here"
            )

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
        found_rows = self._db.execute(f"{rows.RECORD_COLUMNS} WHERE {where}", given)
        return tuple(rows.read_record(row) for row in found_rows)

    def _stored(self, before: Record | None, step: Step) -> Step:
        if step.record != before:
            rows.write_record(self._db, step.record, self._quorum_kept(before, step.record.snapshot))
            self._moves.append((before, step.record))
        held, signed = None if before is None else before.signature, step.record.signature
        if signed is not None and signed != held:
            # The table takes one signature for a proposal: a second one ends the transaction.
            given = step.record.psbt_id, signed.psbt, signed.idempotency_key
            self._db.execute("INSERT INTO signatures VALUES (?,?,?)", given)
        for note in step.notes:
            self._append(note)
            if note.kind == "signed":
                write_places(self._db, note.facts)
            if note.kind in {"signed", "exported"}:
                write_payees(self._db, note.subject, self.network)
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
        kept, claim = rows.read_quorum(self._db, snapshot.psbt_id), self.claim(snapshot.vault_id)
        return code_of(claim.descriptor, self.network) if kept is None and claim is not None else kept

    def next_receive_index(self, vault: Vault) -> int:
        """The receive address after the last one that a transaction signed here used."""
        code = policy_code(vault)
        return read_places(self._db, (code,)).get(code, NEW_POLICY)[RECEIVE][0][1] + 1

    def pinned_places(self, review: ProposalReview) -> dict[bytes, PinnedPlace]:
        """What it pays to receive addresses of pinned vaults, by their scripts."""
        paid = () if review.inspection is None else review.inspection.payments
        wanted, places = frozenset(payment.script_pubkey for payment in paid), dict[bytes, PinnedPlace]()
        pins = self.pins() if wanted else ()
        called = called_here(pins)
        for pin in pins:
            code = pin.vault.verification_code
            known = receive_scripts(pin.vault, self.next_receive_index(pin.vault))
            for script in wanted & known.keys():
                keys = self.own_keys(), self.former_keys(), self.lost()
                fault = fault_of_pinned(pin.vault, self.changes_of(pin), *keys)
                places[script] = PinnedPlace(called[code], known[script], fault)
        return places

    def review_context(self, snapshot: Snapshot) -> ReviewContext:
        """What this machine knows that bears on a proposal."""
        at, imported = (snapshot.psbt_id, self._quorum_now(snapshot)), snapshot.imported is not None
        neighbours, uncompared = rows.read_neighbours(self._db, *at, snapshot.replaces, imported=imported)
        return replace(
            self._context_alone(snapshot),
            neighbours=neighbours,
            uncompared=uncompared,
            unfollowed=read_unfollowed(self._db, *at, imported=imported),
            resembled=self.resembled(read_paid(self._db, snapshot.psbt_id, self.network), snapshot.psbt_id),
            spent=self.spent() if self.rules.depend_on_time else (),
            # The day, so that a judgement stays valid until then.
            moment=self.now().replace(hour=0, minute=0, second=0, microsecond=0),
        )

    def resembled(self, addresses: Collection[str], besides: str = "") -> Mapping[str, str]:
        """Of the addresses, what only resembles a known one; ``besides``: what that proposal pays is not."""
        return read_resembled(self._db, self.network, addresses, self.book, besides)

    def spent(self) -> tuple[Spent, ...]:
        """Within the ``DAY`` that ends now, or at the latest time of the chain."""
        latest = self._db.execute("SELECT max(at) FROM audit").fetchone()[0] or ""
        return spent_since(self._db, format_time(datetime.fromisoformat(max(self._stamp(), latest)) - DAY))

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
        claim = self.claim(snapshot.vault_id if imported is None or pin is None else pin.vault_id)
        revoked, own_keys = self.revocation(), self.own_keys()
        payload = payload_of_bytes(snapshot.psbt) if snapshot.is_of_token else None
        token = None if payload is None else self.bytecode(payload)
        is_replaced = claim is not None and claim.replaced_by is not None
        may_name_vaults = is_replaced or (token is not None and bool(token.whitelist))
        return ReviewContext(
            network=self.network,
            limits=self.limits,
            pin=pin,
            claim=claim,
            vault_changes=self.changes_of(pin),
            own_keys=own_keys,
            former_keys=self.former_keys(),
            revoked="" if revoked is None else revoked.sentence,
            lowered=self.lowered,
            rules=self.rules,
            lapsed=self.is_lapsed(imported),
            token=token,
            pins=self.pins() if may_name_vaults else (),
            places=read_places(self._db, _codes(pin, own_keys)),
            screen=None if pin is None else read_screen(self._db, pin.own_key.fingerprint),
        )


def _codes(pin: Pin | None, own_keys: Sequence[OwnKey]) -> tuple[str, ...]:
    """Of the policies whose coins a proposal may spend: the pinned vault, and the member's profiles."""
    vaults = () if pin is None else (policy_code(pin.vault),)
    return (*vaults, *(str(own.key) for own in own_keys if own.purpose == PROFILE))
