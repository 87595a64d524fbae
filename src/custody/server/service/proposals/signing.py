"""Approvals and declines. Every submitted signature is verified before anything of it is kept."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas import proposals as wire
from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.domain.errors import (
    Fault,
    Invalid,
    NotASigner,
    PsbtDiffers,
    SignatureInvalid,
    StateConflict,
)
from custody.server.domain.lifecycle import FINALISED, Event, threshold_lost
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.proposals.finalising import Finaliser
from custody.server.service.proposals.proposal_records import collected_signatures
from custody.server.service.proposals.seats import Seat, require_live_key, seat_of
from custody.server.service.proposals.transitions import Lifecycle
from custody.server.service.webhooks.telling import told_of
from custody.server.store.models import Decision, Proposal, Signature
from multisig import (
    BadSignature,
    ForeignSignature,
    InvalidPsbt,
    Psbt,
    PsbtMismatch,
    PsbtTooLarge,
    SignerProgress,
    accept_signatures,
    signer_progress,
)


class Signing:
    def __init__(self, clock: Clock, audit: AuditLog, lifecycle: Lifecycle, finaliser: Finaliser) -> None:
        self._clock = clock
        self._audit = audit
        self._lifecycle = lifecycle
        self._finaliser = finaliser

    def expect(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.SignPsbtRequest
    ) -> str:
        """The txid that the caller is asked to sign. For a snapshot, before the PSBT is read: only who may sign has that done.

        Raises NotFound, PermissionDenied, NotASigner, KeyIsRevoked.
        """
        seat = seat_of(db, caller, access, request.psbt_id)
        if request.psbt_base64 is not None:
            require_live_key(db, seat)
        return seat.proposal.txid_expected

    def submit(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: wire.SignPsbtRequest,
        returned: Psbt | None,
    ) -> wire.SignPsbtResponse:
        """Records the caller's decision. The approval that meets the threshold finalises the transaction and puts it
        into the outbox, all in the transaction of `db`. ``returned``: what `read_returned` made of the request.

        Raises NotFound; PermissionDenied; NotASigner (no seat of theirs, or another's signature); KeyIsRevoked; PsbtDiffers;
        SignatureInvalid; StateConflict (the proposal has ended). Then nothing is kept.
        """
        seat = seat_of(db, caller, access, request.psbt_id, is_write=True)
        if returned is None:
            return self._decline(db, caller, access, seat, request.reason)
        require_live_key(db, seat)
        return self._approve(db, caller, access, seat, returned)

    def _approve(
        self, db: Session, caller: Caller, access: WorkspaceAccess, seat: Seat, returned: Psbt
    ) -> wire.SignPsbtResponse:
        proposal = seat.proposal
        base = Psbt.parse(proposal.psbt)
        signed = _accept(base, returned, seat)
        progress = signer_progress(signed, seat.policy, seat.fingerprint)
        if not progress.signed:
            raise SignatureInvalid("The PSBT carries no signature of your key.")
        if signed == base:
            return self._answer(db, proposal, progress, "This signature was recorded before.")
        if seat.status is not Status.PENDING:
            return self._too_late(db, seat)
        self._require_time_left(proposal)
        self._keep(db, seat, base, signed, progress)
        told = told_of(proposal, user_id=caller.user_id, is_complete=progress.is_complete)
        what = _described(seat, progress)
        self._audit.record(
            db, caller, Category.SIGNING, "SIGNATURE_SUBMITTED", what, access=access, told=told
        )
        self._finaliser.finalise_if_complete(db, caller, access, proposal, signed, seat.policy)
        return self._answer(db, proposal, progress, None)

    def _too_late(self, db: Session, seat: Seat) -> wire.SignPsbtResponse:
        if seat.status not in FINALISED:
            raise StateConflict(f"The proposal is {seat.status}; it takes no more signatures.")
        progress = SignerProgress((), ())
        return self._answer(
            db, seat.proposal, progress, "The threshold was met without this signature; it was not recorded."
        )

    def _require_time_left(self, proposal: Proposal) -> None:
        if self._clock() >= proposal.expires_at:
            raise StateConflict("The proposal has expired.")

    def _keep(self, db: Session, seat: Seat, base: Psbt, signed: Psbt, progress: SignerProgress) -> None:
        now = self._clock()
        proposal = seat.proposal
        proposal.psbt = signed.to_bytes()
        for index, (before, after) in enumerate(zip(base.inputs, signed.inputs, strict=True)):
            db.add_all(
                Signature(
                    proposal_id=proposal.id,
                    input_index=index,
                    public_key=key,
                    key_id=seat.key_id,
                    signature=signature,
                    received_at=now,
                )
                for key, signature in after.partial_signatures.items()
                if key not in before.partial_signatures
            )
        self._decide(db, seat, "approve", is_complete=progress.is_complete, reason=None)
        self._lifecycle.touch(db, proposal)

    def _decide(
        self, db: Session, seat: Seat, decision: str, *, is_complete: bool, reason: str | None
    ) -> None:
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
        db.flush()

    def _decline(
        self, db: Session, caller: Caller, access: WorkspaceAccess, seat: Seat, reason: str | None
    ) -> wire.SignPsbtResponse:
        proposal, nothing = seat.proposal, SignerProgress((), ())
        known = db.get(Decision, (proposal.id, seat.key_id))
        if known is not None and known.decision == "approve":
            return self._answer(
                db, proposal, nothing, "You have signed: a decline cannot take a signature back."
            )
        if known is not None:
            return self._answer(db, proposal, nothing, "Your decline was recorded before.")
        if seat.status is not Status.PENDING:
            raise StateConflict(f"The proposal is {seat.status}; it can no longer be declined.")
        self._decide(db, seat, "reject", is_complete=False, reason=reason)
        self._lifecycle.touch(db, proposal)
        if threshold_lost(_declines(db, proposal), proposal.m, proposal.n):
            self._lifecycle.apply(db, proposal, Event.THRESHOLD_LOST)
        told, what = told_of(proposal, user_id=caller.user_id), f"proposal {proposal.id}"
        self._audit.record(db, caller, Category.SIGNING, "PROPOSAL_DECLINED", what, access=access, told=told)
        return self._answer(db, proposal, nothing, None)

    @staticmethod
    def _answer(
        db: Session, proposal: Proposal, progress: SignerProgress, detail: str | None
    ) -> wire.SignPsbtResponse:
        missing = list(progress.missing)
        if missing and detail is None:
            detail = f"Inputs {', '.join(map(str, missing))} still lack your signature."
        return wire.SignPsbtResponse(
            psbt_id=proposal.id,
            status=Status(proposal.status),
            collected_signatures=collected_signatures(db, [proposal.id])[proposal.id],
            required_signatures=proposal.m,
            txid=proposal.txid,
            missing_inputs=missing,
            detail=detail,
        )


def read_returned(request: wire.SignPsbtRequest, txid: str) -> Psbt | None:
    """The PSBT that came back, which is about that transaction; None for a decline. Raises Invalid, PsbtDiffers.

    Without a transaction: two megabytes of outputs take a second to read, for which no writer should wait.
    """
    if request.psbt_base64 is None:
        return None
    returned = _parse(request.psbt_base64)
    if returned.tx.txid != txid:
        raise PsbtDiffers("The PSBT that came back is not about the transaction that was proposed.")
    return returned


def _parse(text: str) -> Psbt:
    try:
        return Psbt.parse(text)
    except (InvalidPsbt, PsbtTooLarge) as error:
        sentence = str(error)
        raise Invalid(sentence, faults=(Fault("/psbt_base64", sentence, error.code),)) from error


def _accept(base: Psbt, returned: Psbt, seat: Seat) -> Psbt:
    try:
        return accept_signatures(base, returned, seat.policy, seat.fingerprint)
    except PsbtMismatch as error:
        raise PsbtDiffers(str(error)) from error
    except ForeignSignature as error:
        raise NotASigner(str(error)) from error
    except BadSignature as error:
        pointer = "/psbt_base64"
        raise SignatureInvalid(str(error), faults=(Fault(pointer, str(error), error.code),)) from error


def _declines(db: Session, proposal: Proposal) -> int:
    query = select(func.count()).where(Decision.proposal_id == proposal.id, Decision.decision == "reject")
    return db.scalar(query) or 0


def _described(seat: Seat, progress: SignerProgress) -> str:
    text = f"proposal {seat.proposal.id}, key {seat.key_id}"
    return text if progress.is_complete else f"{text}, inputs {', '.join(map(str, progress.signed))} only"
