"""Imported PSBTs, from an app or the person: accepted, decided by the person, returned signed, or expired
after a day.

The core treats them like proposals. Reviews are cached as long as their input does not change.
"""

import asyncio
import base64
import binascii
import contextlib
from collections import defaultdict, deque
from dataclasses import dataclass, field, replace

from multisig import MultisigError, Psbt, finalise, to_version_2
from signerd.callers import LoopbackCaller, Right
from signerd.core import events
from signerd.core.following import ENDED
from signerd.core.review import ProposalReview, review
from signerd.core.signing import LIVES_SECONDS, imported_snapshot
from signerd.core.titles import Labels, title_of
from signerd.core.values import Imported, Record, ReviewContext, Snapshot, identity_of, parts_of
from signerd.daemon.proposal_views import Names, imported_line, paid_and_fee, psbt_review, refusal_words
from signerd.daemon.runner import Runner
from signerd.errors import AlreadyProposed, InvalidRequest, RefusedByChecks, TooManyImported, UnknownProposal
from signerd.journal import Journal
from signerd.journal.apps import ImportedEntry
from signerd.runtime import DaemonDependencies
from signerd.shapes import ImportedLine, ImportedView, PsbtReview, PsbtVersion
from signerd.shapes.limits import MAX_PSBT_BYTES

# As many as a person reads and decides about at one sitting (L6).
MOST_OPEN_OF_AN_APP = 5
MOST_OPEN = 20
# Each is reviewed whenever something changes. Those of apps together fit into the cache of reviews
# (``MOST_BYTES``), and one of the largest is allowed.
MOST_OPEN_BYTES_OF_AN_APP = MAX_PSBT_BYTES
MOST_OPEN_BYTES = 3 * MAX_PSBT_BYTES
# Each is reviewed; a person does not decide as fast.
MOST_A_MINUTE = 12
# Inputs and outputs together: reviewing a signed input takes some ten milliseconds on a small machine and
# blocks other requests. A larger PSBT is accepted as the first of a minute.
MOST_PARTS_A_MINUTE = 500
# One each quarter of an hour. Each is stored, so an app that withdraws and imports again would fill the disk.
MOST_A_DAY = 100
_MINUTE = 60.0
# Approvals are refused exactly from the expiry on; only the state may change this much later.
LOOK_SECONDS = 60.0
# An older one can be asked for by its id.
MOST_LISTED = 50
# 128 bits: not guessable (L7).
_ID_BYTES = 16


@dataclass
class _AppReview:
    """One review for an app, at ``at`` by the clock. ``parts``: its inputs and outputs."""

    at: float
    parts: int = 0


@dataclass
class ImportedPsbts:
    """Used by one event loop. ``psbt`` is base64. An app gets UnknownProposal for another app's id."""

    journal: Journal
    runner: Runner
    outside: DaemonDependencies
    labels: Labels = field(default_factory=dict)
    _asked: dict[str, deque[_AppReview]] = field(default_factory=lambda: defaultdict(deque))
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.reviews = Reviews(self.journal)

    # --- asked ----------------------------------------------------------------------------------------------

    async def inspect(self, psbt: str, caller: LoopbackCaller) -> PsbtReview:
        """Review it without storing it. Raises InvalidRequest (not base64), TooManyImported."""
        self._limit_rate(caller)
        snapshot = self._snapshot(decoded_psbt(psbt), caller)
        self._limit_size(snapshot, caller)
        proposed = self.journal.imported.proposed(identity_of(snapshot.psbt))
        return self._shown(self.journal.preview(snapshot), proposed, caller)

    async def import_psbt(self, psbt: str, caller: LoopbackCaller) -> ImportedView:
        """Store it and ask the person. The same transaction again, of the same caller, only adds the
        signatures that it carries.

        Raises:
            InvalidRequest, RefusedByChecks, AlreadyProposed, TooManyImported: nothing was stored.
        """
        self._limit_rate(caller)
        snapshot = self._snapshot(decoded_psbt(psbt), caller)
        identity = identity_of(snapshot.psbt)
        known = self.journal.imported.same(identity, caller.app_id)
        if known is not None:
            self._limit_size(snapshot, caller)
            step = self.runner.decide(known.psbt_id, events.ImportedAgain(snapshot.psbt))
            return self._view(step.record, caller)
        self._require_room(snapshot, caller)
        self._limit_size(snapshot, caller)
        proposed = self.journal.imported.proposed(identity)
        if proposed is not None:
            raise AlreadyProposed(
                f"the platform proposes this very transaction, as {proposed.psbt_id}: it is decided about "
                "there"
            )
        self.runner.announce(self.journal.import_psbt(self._with_figures(snapshot, caller)).news)
        self._news.set()
        return self._view(self.journal.record(snapshot.psbt_id), caller).model_copy(update={"is_new": True})

    async def all(self, caller: LoopbackCaller) -> tuple[ImportedLine, ...]:
        entries = self.journal.imported.newest(MOST_LISTED, caller.app_id, everyone=_is_person(caller))
        names = {pin.vault.verification_code: pin.name for pin in self.journal.pins()}
        return tuple(self._line(entry, names.get(entry.quorum or ""), caller) for entry in entries)

    async def one(self, psbt_id: str, caller: LoopbackCaller, version: PsbtVersion = "0") -> ImportedView:
        """``version``: of the signed PSBT. Raises UnknownProposal."""
        return self._view(self._known(psbt_id, caller), caller, version)

    async def withdraw(self, psbt_id: str, caller: LoopbackCaller) -> ImportedLine:
        """Withdraw what the caller imported. Raises UnknownProposal, IllegalEvent (decided, or at the
        device).
        """
        record = self._known(psbt_id, caller)
        if _app_of(record) != caller.app_id:
            # The person declines an app's PSBT instead.
            raise UnknownProposal(
                f"you imported no PSBT '{psbt_id}'", hint="Say no to it with `signerd decline`."
            )
        return self._line_of(self.runner.decide(psbt_id, events.TakenBack()).record, caller)

    def hides(self, caller: LoopbackCaller, subject: str) -> bool:
        """Whether another app imported this subject, so that the caller must not see it."""
        entry = None if caller.app_id is None else self.journal.imported.find(subject)
        return entry is not None and _app_of(entry) != caller.app_id

    def require_decider(self, psbt_id: str, caller: LoopbackCaller) -> None:
        """Only the person decides about an imported PSBT, whatever the app's rights. Does nothing for
        proposals.

        Raises:
            NotAllowed: the app imported it. UnknownProposal: another one did.
        """
        if caller.app_id is not None and self.journal.imported.find(psbt_id) is not None:
            self._known(psbt_id, caller)
            caller.require(Right.PERSON)

    # --- time -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled: expire what the person did not decide about in time."""
        while True:
            self._news.clear()
            waiting = self.journal.imported.waiting()
            for entry in waiting:
                if self.journal.is_lapsed(entry.imported):
                    self.runner.decide(entry.psbt_id, events.Lapsed())
            if waiting:
                await self.outside.sleep(LOOK_SECONDS)
            else:
                # Sleep until there is one.
                await self._news.wait()

    # --- inside ---------------------------------------------------------------------------------------------

    def _snapshot(self, raw: bytes, caller: LoopbackCaller) -> Snapshot:
        expires = int(self.journal.now().timestamp()) + LIVES_SECONDS
        imported = Imported(caller.shown, caller.app_id, expires)
        psbt_id = f"b-{self.outside.entropy(_ID_BYTES).hex()}"
        journal = self.journal
        return imported_snapshot(psbt_id, raw, imported, journal.pins(), journal.own_keys(), journal.network)

    def _with_figures(self, snapshot: Snapshot, caller: LoopbackCaller) -> Snapshot:
        """The snapshot with the figures for lists. Raises RefusedByChecks."""
        preview = self.journal.preview(snapshot)
        if not preview.allowed or preview.inspection is None:
            refusals = refusal_words(preview, whole=_is_person(caller))
            raise RefusedByChecks(
                f"it is not signed here. {refusals}",
                hint="Ask who made the PSBT: nobody was asked to sign it.",
            )
        assert snapshot.imported is not None, "made by _snapshot"
        paid, fee = paid_and_fee(preview.inspection)
        title = title_of(preview, {})
        return replace(snapshot, imported=replace(snapshot.imported, paid=paid, fee=fee, title=title))

    def _require_room(self, snapshot: Snapshot, caller: LoopbackCaller) -> None:
        """L6. Raises TooManyImported."""
        waiting = self.journal.imported.waiting()
        if len(waiting) >= MOST_OPEN:
            raise TooManyImported(f"{MOST_OPEN} imported PSBTs wait for the person already")
        if caller.app_id is None:
            return
        apps = [entry for entry in waiting if entry.imported.app_id is not None]
        own = [entry for entry in apps if entry.imported.app_id == caller.app_id]
        if len(own) >= MOST_OPEN_OF_AN_APP:
            raise TooManyImported(f"{MOST_OPEN_OF_AN_APP} of this app's PSBTs wait for the person already")
        for others, most, whose in (
            (own, MOST_OPEN_BYTES_OF_AN_APP, "this app"),
            (apps, MOST_OPEN_BYTES, "apps"),
        ):
            if others and sum(entry.size for entry in others) + len(snapshot.psbt) > most:
                raise TooManyImported(
                    f"imported PSBTs of {whose} that wait for the person may have {most >> 20} MiB together"
                )
        oldest = self.journal.imported.expiry_of(caller.app_id, MOST_A_DAY)
        if oldest is not None and oldest > self.journal.now().timestamp():
            raise TooManyImported(f"an app may import {MOST_A_DAY} PSBTs in a day, whatever became of them")

    def _limit_rate(self, caller: LoopbackCaller) -> None:
        """L6: limits the reviews for an app, not for the person. Raises TooManyImported."""
        if caller.app_id is None:
            return
        now, taken = self.outside.clock(), self._asked[caller.app_id]
        while taken and now - taken[0].at >= _MINUTE:
            taken.popleft()
        if len(taken) >= MOST_A_MINUTE:
            hint = "Wait a minute."
            raise TooManyImported(f"an app may have {MOST_A_MINUTE} PSBTs looked at in a minute", hint=hint)
        taken.append(_AppReview(now))

    def _limit_size(self, snapshot: Snapshot, caller: LoopbackCaller) -> None:
        """L6: limits the size of what is reviewed for an app: large PSBTs delay other requests. Raises
        TooManyImported.
        """
        if caller.app_id is None:
            return
        *before, this = self._asked[caller.app_id]
        parts, judged = parts_of(snapshot.psbt), sum(look.parts for look in before)
        if judged and judged + parts > MOST_PARTS_A_MINUTE:
            hint = "Wait a minute."
            raise TooManyImported(
                f"an app may have {MOST_PARTS_A_MINUTE} inputs and outputs looked at in a minute", hint=hint
            )
        this.parts = parts

    def _known(self, psbt_id: str, caller: LoopbackCaller) -> Record:
        """The record. Raises UnknownProposal, with one message for another caller's PSBT, a proposal and an
        unknown id (L7, L13).
        """
        entry = self.journal.imported.find(psbt_id)
        if entry is None or not (_is_person(caller) or _app_of(entry) == caller.app_id):
            hint = "Each app is shown its own; `signerd proposals` lists what waits for you."
            raise UnknownProposal(f"there is no imported PSBT '{psbt_id}' here", hint=hint)
        return entry

    # --- showing --------------------------------------------------------------------------------------------

    def _line(self, entry: ImportedEntry, vault_name: str | None, caller: LoopbackCaller) -> ImportedLine:
        return imported_line(entry, vault_name, self.journal.network, whole=_is_person(caller))

    def _line_of(self, record: Record, caller: LoopbackCaller) -> ImportedLine:
        pin = self.journal.pin_of(record.snapshot)
        return self._line(ImportedEntry.of(record), None if pin is None else pin.name, caller)

    def _view(self, record: Record, caller: LoopbackCaller, version: PsbtVersion = "0") -> ImportedView:
        signed, final = signed_of(record), None
        signing = None if signed is None else self.journal.signing(record.snapshot)
        if signed is not None and signing is not None:
            with contextlib.suppress(MultisigError):  # Signatures are missing.
                final = finalise(signed, signing.policy).serialize().hex()
        return ImportedView(
            **self._line_of(record, caller).model_dump(),
            review=self._shown(self.reviews.of(record), None, caller),
            signed_psbt=None if signed is None else written_as(version, signed),
            final=final,
        )

    def _shown(self, review: ProposalReview, proposed: Record | None, caller: LoopbackCaller) -> PsbtReview:
        proposal_id = None if proposed is None else proposed.psbt_id
        return psbt_review(review, proposal_id, self.names(review, caller), whole=_is_person(caller))

    def names(self, review: ProposalReview, caller: LoopbackCaller) -> Names:
        if caller.app_id is not None:
            return Names()
        return Names(self.labels, self.journal.pinned_places(review))


def signed_of(record: Record) -> Psbt | None:
    """With our signatures and all that came with any copy of it (S33); None before it is signed."""
    if record.signature is None:
        return None
    came = Psbt.parse(record.snapshot.psbt).inputs
    return Psbt.parse(record.signature.psbt).with_signatures(
        {index: item.partial_signatures for index, item in enumerate(came)}
    )


def decoded_psbt(text: str) -> bytes:
    """Raises InvalidRequest for anything but canonical base64."""
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise InvalidRequest("this is not a PSBT in base64") from None
    if base64.b64encode(raw).decode("ascii") != text:
        raise InvalidRequest("this is not canonical base64 of a PSBT")
    return raw


def written_as(version: PsbtVersion, psbt: Psbt) -> str:
    """In base64."""
    return psbt.to_base64() if version == "0" else base64.b64encode(to_version_2(psbt)).decode("ascii")


def _is_person(caller: LoopbackCaller) -> bool:
    return Right.PERSON in caller.rights


def _app_of(record: Record) -> str | None:
    assert record.snapshot.imported is not None, "called for imported PSBTs only"
    return record.snapshot.imported.app_id


# A review is several times as large as its PSBT. Room for two thousand usual PSBTs, or four of the largest.
MOST_BYTES = 8 * 1024 * 1024
# The size of a whitelisted address in a review: a deployment's PSBT is small, and may list a thousand.
BYTES_OF_ONE_LISTED = 100


class Reviews:
    """Keeps reviews while what they depend on does not change: each costs milliseconds for an input.

    ``most``: the bytes of PSBTs and whitelists whose reviews are kept; the last one always is (L6).
    """

    def __init__(self, journal: Journal, most: int = MOST_BYTES) -> None:
        self._journal = journal
        self._most = most
        self._known: dict[str, tuple[Snapshot, ReviewContext, ProposalReview]] = {}

    def of(self, record: Record) -> ProposalReview:
        snapshot, context = record.snapshot, self._journal.review_context(record.snapshot)
        known = self._known.get(record.psbt_id)
        if known is not None and known[:2] == (snapshot, context):
            return known[2]
        kept = sum(_size(one[0], one[1]) for one in self._known.values())
        if kept + _size(snapshot, context) > self._most:
            self._known.clear()
        result = review(snapshot, context)
        self._known[record.psbt_id] = snapshot, context, result
        return result

    def settle(self, record: Record) -> None:
        """Drop the review of a proposal that has ended; it is reviewed again if needed."""
        if record.state in ENDED:
            self._known.pop(record.psbt_id, None)


def _size(snapshot: Snapshot, context: ReviewContext) -> int:
    listed = 0 if context.token is None else len(context.token.whitelist)
    return len(snapshot.psbt) + listed * BYTES_OF_ONE_LISTED
