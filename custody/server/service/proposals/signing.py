"""Approvals and declines. Every submitted signature is verified before anything of it is kept."""

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from custody.schemas import proposals as wire
from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.domain.errors import StateConflict
from custody.server.domain.lifecycle import FINALISED, Event, threshold_lost
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.lifecycle import Lifecycle, require_newest
from custody.server.service.proposals.finalising import Finaliser
from custody.server.service.proposals.proposal_records import collected_signatures
from custody.server.service.proposals.seats import Seat, require_live_key, seat_of
from custody.server.service.proposals.verifying import Sought, Verified
from custody.server.service.requests.outdated import Outdated
from custody.server.service.webhook_events import told_of
from custody.server.store.models import Decision, Proposal, Signature
from multisig import SignerProgress


class Signing:
    def __init__(self, clock: Clock, audit: AuditLog, lifecycle: Lifecycle, finaliser: Finaliser) -> None:
        self._clock = clock
        self._audit = audit
        self._lifecycle = lifecycle
        self._finaliser = finaliser

    def expect(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.SignPsbtRequest
    ) -> Sought:
        """What the caller is asked to sign. For a snapshot, before the PSBT is read: only who may sign has that done.

        Raises NotFound, PermissionDenied, NotASigner, KeyIsRevoked.
        """
        seat = seat_of(db, caller, access, db.get(Proposal, request.psbt_id))
        if request.psbt_base64 is not None:
            require_live_key(db, seat)
        proposal = seat.proposal
        return Sought(proposal.psbt, proposal.txid_expected, seat.policy, seat.fingerprint, proposal.m)

    def submit(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: wire.SignPsbtRequest,
        verified: Verified | None,
    ) -> wire.SignPsbtResponse:
        """Records the caller's decision. The approval that meets the threshold puts the transaction into the outbox, all in
        the transaction of `db`. ``verified``: what `verify_returned` made of the PSBT; None for a decline.

        Raises Outdated where the proposal has other signatures by now than those that it was verified beside. Raises NotFound;
        PermissionDenied; NotASigner; KeyIsRevoked; StateConflict (the proposal has ended, or a newer version
        takes its place). Then nothing is kept.
        """
        seat = seat_of(db, caller, access, db.get(Proposal, request.psbt_id, with_for_update=True))
        if verified is None:
            return self._decline(db, caller, access, seat, request.reason)
        require_live_key(db, seat)
        if seat.proposal.psbt != verified.base:
            raise Outdated("Somebody else signed meanwhile.")
        return self._approve(db, caller, access, seat, verified)

    def _approve(
        self, db: Session, caller: Caller, access: WorkspaceAccess, seat: Seat, verified: Verified
    ) -> wire.SignPsbtResponse:
        proposal, progress = seat.proposal, verified.progress
        if not verified.new:
            said = "This signature was recorded before."
            return self._answer(proposal, progress, verified.collected, said)
        if seat.status is not Status.PENDING:
            return self._too_late(db, seat)
        require_newest(db, proposal)
        self._require_time_left(proposal)
        self._keep(db, seat, verified)
        told = told_of(proposal, user_id=caller.user_id, is_complete=progress.is_complete)
        what = _described(seat, progress)
        self._audit.record(
            db, caller, Category.SIGNING, "SIGNATURE_SUBMITTED", what, access=access, told=told
        )
        if verified.final is not None:
            self._finaliser.store(db, caller, access, proposal, verified.final)
        return self._answer(proposal, progress, verified.collected, None)

    def _too_late(self, db: Session, seat: Seat) -> wire.SignPsbtResponse:
        if seat.status not in FINALISED:
            raise StateConflict(f"The proposal is {seat.status}; it takes no more signatures.")
        progress = SignerProgress((), ())
        said = "The threshold was met without this signature; it was not recorded."
        return self._answer(seat.proposal, progress, _collected(db, seat.proposal), said)

    def _require_time_left(self, proposal: Proposal) -> None:
        if self._clock() >= proposal.expires_at:
            raise StateConflict("The proposal has expired.")

    def _keep(self, db: Session, seat: Seat, verified: Verified) -> None:
        seat.proposal.psbt = verified.signed
        place = {"proposal_id": seat.proposal.id, "key_id": seat.key_id, "received_at": self._clock()}
        db.execute(insert(Signature), [{**place, **vars(signature)} for signature in verified.new])
        self._decide(db, seat, "approve", is_complete=verified.progress.is_complete, reason=None)
        self._lifecycle.touch(db, seat.proposal)

    def _decide(
        self, db: Session, seat: Seat, decision: str, *, is_complete: bool, reason: str | None
    ) -> None:
        """In the place of what the signer said before."""
        db.merge(
            Decision(
                proposal_id=seat.proposal.id,
                key_id=seat.key_id,
                user_id=seat.user_id,
                decision=decision,
                is_complete=is_complete,
                reason=reason,
                decided_at=self._clock(),
            )
        )

    def _decline(
        self, db: Session, caller: Caller, access: WorkspaceAccess, seat: Seat, reason: str | None
    ) -> wire.SignPsbtResponse:
        proposal, nothing = seat.proposal, SignerProgress((), ())
        known = db.get(Decision, (proposal.id, seat.key_id))
        if known is not None and known.decision == "approve":
            said = "You have signed: a decline cannot take a signature back."
            return self._answer(proposal, nothing, _collected(db, proposal), said)
        if known is not None:
            said = "Your decline was recorded before."
            return self._answer(proposal, nothing, _collected(db, proposal), said)
        if seat.status is not Status.PENDING:
            raise StateConflict(f"The proposal is {seat.status}; it can no longer be declined.")
        self._decide(db, seat, "reject", is_complete=False, reason=reason)
        self._lifecycle.touch(db, proposal)
        if threshold_lost(_declines(db, proposal), proposal.m, proposal.n):
            self._lifecycle.apply(db, proposal, Event.THRESHOLD_LOST)
        told, what = told_of(proposal, user_id=caller.user_id), f"proposal {proposal.id}"
        self._audit.record(db, caller, Category.SIGNING, "PROPOSAL_DECLINED", what, access=access, told=told)
        return self._answer(proposal, nothing, _collected(db, proposal), None)

    @staticmethod
    def _answer(
        proposal: Proposal, progress: SignerProgress, collected: int, detail: str | None
    ) -> wire.SignPsbtResponse:
        missing = list(progress.missing)
        if missing and detail is None:
            detail = f"Inputs {', '.join(map(str, missing))} still lack your signature."
        return wire.SignPsbtResponse(
            psbt_id=proposal.id,
            status=Status(proposal.status),
            collected_signatures=collected,
            required_signatures=proposal.m,
            txid=proposal.txid,
            missing_inputs=missing,
            detail=detail,
        )


def _collected(db: Session, proposal: Proposal) -> int:
    """By what is stored."""
    return collected_signatures(db, [proposal.id])[proposal.id]


def _declines(db: Session, proposal: Proposal) -> int:
    query = select(func.count()).where(Decision.proposal_id == proposal.id, Decision.decision == "reject")
    return db.scalar(query) or 0


def _described(seat: Seat, progress: SignerProgress) -> str:
    text = f"proposal {seat.proposal.id}, key {seat.key_id}"
    return text if progress.is_complete else f"{text}, inputs {', '.join(map(str, progress.signed))} only"
