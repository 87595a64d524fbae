"""Transaction proposals: creating, reading with long poll, approving and declining."""

import time

from custody.schemas.proposals import (
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
from custody.server.service.proposals.proposals import Prepared
from custody.server.service.proposals.signing import read_returned
from custody.server.web.endpoint import Call, Endpoint, Unit
from custody.server.web.proposal_reading import LONG_POLL, READERS, psbt

# A vault's movement asks for PAYMENT_APPROVE, which is looked at with the proposal; one's own forward for either.
SIGNERS = frozenset({PermissionName.PAYMENT_APPROVE, PermissionName.PAYMENT_INIT})
# Other processes commit too: whoever waits for a broadcast looks again this often whatever it hears.
RECHECK_SECONDS = 2.0


def create_psbt(call: Call[CreatePsbtRequest]) -> CreatePsbtResponse:
    """Proposes a send from a vault. Its coins are locked; nothing is signed and nothing reaches the network."""
    return call.services.proposals.create(call.db, call.caller, call.access, call.body, call.prepared)


def _draft_psbt(call: Call[CreatePsbtRequest]) -> Prepared:
    return call.services.proposals.draft(call.db, call.caller, call.access, call.body)


def sign_psbt(call: Call[SignPsbtRequest]) -> SignPsbtResponse:
    """Approves with a signed PSBT, or declines. The approval that meets the threshold finalises the transaction, which
    is then broadcast; the answer waits a moment for that.
    """
    store, signing, request = call.services.store, call.services.signing, call.body
    with store.read() as db:
        txid = signing.expect(db, call.caller, call.enter(db, request.workspace_id), request)
    returned = read_returned(request, txid)
    with store.write() as db:
        access = call.enter(db, request.workspace_id)
        answer = signing.submit(db, call.caller, access, request, returned)
    return _after_broadcast(call, answer) if answer.status is ProposalStatus.SIGNED else answer


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
