"""Transaction proposals: creating, reading with long poll, approving and declining."""

import time

from sqlalchemy.orm import Session

from custody.schemas.proposals import (
    CancelPsbtRequest,
    CancelPsbtResponse,
    CreatePsbtRequest,
    CreatePsbtResponse,
    Proposal,
    ProposalStatus,
    SignPsbtRequest,
    SignPsbtResponse,
)
from custody.schemas.queries import PsbtQuery
from custody.schemas.users import PermissionName
from custody.server.domain.errors import (
    ChainUnavailable,
    Dust,
    InsufficientFunds,
    KeyIsRevoked,
    LockedFunds,
    NotASigner,
    PolicyUnavailable,
    PsbtDiffers,
    RoleLimitExceeded,
    SignatureInvalid,
    StateConflict,
    VaultLimitExceeded,
    WrongNetworkAddress,
)
from custody.server.service.proposals.accelerating import Child
from custody.server.service.proposals.proposals import Prepared
from custody.server.service.proposals.replacing import Version
from custody.server.service.proposals.verifying import Sought, Verified, read_returned, verify_returned
from custody.server.service.requests.outdated import MAX_TRIES, Outdated
from custody.server.web.endpoint import Call, Endpoint, Unit
from custody.server.web.proposal_reading import LONG_POLL, READERS, psbt

# A vault's movement asks for PAYMENT_APPROVE, which is looked at with the proposal; one's own forward for either.
SIGNERS = frozenset({PermissionName.PAYMENT_APPROVE, PermissionName.PAYMENT_INIT})
# Other processes commit too, which this one does not hear of: whoever waits for a broadcast looks again this often.
RECHECK_SECONDS = 0.25


def create_psbt(call: Call[CreatePsbtRequest]) -> CreatePsbtResponse:
    """Proposes a send from a vault, a version of it that takes its place, or a child that pays for it. Its coins are locked;
    nothing is signed and nothing reaches the network.
    """
    services, asked = call.services, (call.db, call.caller, call.access, call.body)
    match call.prepared:
        case Version() as version:
            return services.replacing.create(*asked, version)
        case Child() as child:
            return services.accelerating.create(*asked, child)
        case prepared:
            return services.proposals.create(*asked, prepared)


def _draft_psbt(call: Call[CreatePsbtRequest]) -> Prepared | Version | Child:
    services, request = call.services, call.body
    if request.replaces_psbt_id is not None:
        return services.replacing.draft(call.db, call.access, request)
    if request.accelerates_psbt_id is not None:
        return services.accelerating.draft(call.db, call.access, request)
    return services.proposals.draft(call.db, call.caller, call.access, request, tries=call.tries)


def cancel_psbt(call: Call[CancelPsbtRequest]) -> CancelPsbtResponse:
    """Ends a proposal that waits for signatures. It is soft: the answer says how many signatures stay valid."""
    return call.services.cancelling.cancel(call.db, call.caller, call.access, call.body)


def sign_psbt(call: Call[SignPsbtRequest]) -> SignPsbtResponse:
    """Approves with a signed PSBT, or declines. The approval that meets the threshold finalises the transaction, which
    is then broadcast; the answer waits a moment for that.
    """
    answer = _approve_or_decline(call)
    return _after_broadcast(call, answer) if answer.status is ProposalStatus.SIGNED else answer


def _approve_or_decline(call: Call[SignPsbtRequest]) -> SignPsbtResponse:
    """Verified outside the writers' turn, against the proposal as it was; where others sign all the time, in the end inside."""
    request = call.body
    sought = _look(call)
    returned = read_returned(request, sought.txid)
    for _ in range(MAX_TRIES):
        verified = verify_returned(returned, sought)
        try:
            with call.services.store.write() as db:
                return _submit(call, db, verified)
        except Outdated:
            sought = _look(call)
    with call.services.store.write() as db:
        return _submit(call, db, verify_returned(returned, _expect(call, db)))


def _look(call: Call[SignPsbtRequest]) -> Sought:
    with call.services.store.read() as db:
        return _expect(call, db)


def _expect(call: Call[SignPsbtRequest], db: Session) -> Sought:
    access = call.enter(db, call.body.workspace_id)
    return call.services.signing.expect(db, call.caller, access, call.body)


def _submit(call: Call[SignPsbtRequest], db: Session, verified: Verified | None) -> SignPsbtResponse:
    access = call.enter(db, call.body.workspace_id)
    return call.services.signing.submit(db, call.caller, access, call.body, verified)


def _after_broadcast(call: Call[SignPsbtRequest], answer: SignPsbtResponse) -> SignPsbtResponse:
    """The broadcast is a worker's business; whoever signed last likes to hear of it."""
    services = call.services
    deadline = time.monotonic() + services.broadcast_wait_seconds
    while (
        answer.status is ProposalStatus.SIGNED
        and not services.changes.closing
        and (left := deadline - time.monotonic()) > 0
    ):
        seen = services.changes.version
        with services.store.read() as db:
            proposal = services.proposals.find(db, answer.psbt_id)
            update = {"status": ProposalStatus(proposal.status), "txid": proposal.txid}
        answer = answer.model_copy(update=update)
        if answer.status is ProposalStatus.SIGNED:
            services.changes.wait(seen, min(left, RECHECK_SECONDS))
    return answer


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/v1/create-psbt",
        create_psbt,
        CreatePsbtResponse,
        frozenset({PermissionName.MANAGE_WORKSPACE}),
        Unit.WRITE,
        CreatePsbtRequest,
        creates=True,
        prepares=_draft_psbt,
        refuses=(
            ChainUnavailable,
            Dust,
            InsufficientFunds,
            LockedFunds,
            PolicyUnavailable,
            RoleLimitExceeded,
            StateConflict,
            VaultLimitExceeded,
            WrongNetworkAddress,
        ),
    ),
    Endpoint(
        "GET",
        "/api/v1/psbt",
        psbt,
        Proposal | list[Proposal],
        READERS,
        Unit.OWN,
        PsbtQuery,
        extra=LONG_POLL,
    ),
    Endpoint(
        "POST",
        "/api/v1/cancel-psbt",
        cancel_psbt,
        CancelPsbtResponse,
        frozenset({PermissionName.MANAGE_WORKSPACE, PermissionName.PAYMENT_INIT}),
        Unit.WRITE,
        CancelPsbtRequest,
        refuses=(StateConflict,),
    ),
    Endpoint(
        "POST",
        "/api/v1/sign-psbt",
        sign_psbt,
        SignPsbtResponse,
        SIGNERS,
        Unit.OWN,
        SignPsbtRequest,
        carries_psbt=True,
        refuses=(KeyIsRevoked, NotASigner, PsbtDiffers, SignatureInvalid, StateConflict),
    ),
)
