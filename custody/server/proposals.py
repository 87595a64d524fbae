"""Proposing a payment, a forward or a proof, and deciding on one. What is to be signed is drafted, and
what was signed is verified, outside the write lock.
"""

import time
from dataclasses import replace

from custody.schemas.proofs import CREATE_PROOF, PROOF, CreateProofRequest, ProofFile, ProofQuery
from custody.schemas.proposals import (
    CANCEL_PSBT,
    CREATE_PSBT,
    FORWARD_TO_VAULT,
    PREVIEW_FORWARD,
    PREVIEW_PSBT,
    SIGN_PSBT,
    CancelPsbtRequest,
    CancelPsbtResponse,
    CreatePsbtRequest,
    CreatePsbtResponse,
    ForwardToVaultRequest,
    ProposalStatus,
    PsbtPreview,
    SignPsbtRequest,
    SignPsbtResponse,
)
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.service.proposals.proposals import Prepared
from custody.server.service.proposals.replacing import Version
from custody.server.service.proposals.verifying import read_returned, verify_returned
from custody.server.service.services import Services

# Other processes' commits are not announced here: a call that waits for a broadcast polls at this interval.
RECHECK_SECONDS = 0.25


@serves_in_parts(CREATE_PSBT)
def create_psbt(ctx: Ctx, request: CreatePsbtRequest) -> Steps[CreatePsbtResponse]:
    draft = _drafted(ctx, request)
    ctx = yield In.WRITE
    if isinstance(draft, Version):
        return ctx.services.replacing.create(ctx.db, ctx.caller, ctx.access, request, draft)
    return ctx.services.proposals.create(ctx.db, ctx.caller, ctx.access, request, draft)


def _drafted(ctx: Ctx, request: CreatePsbtRequest) -> Prepared | Version:
    if request.cancel or request.replaces_psbt_id is not None:
        return ctx.services.replacing.draft(ctx.db, ctx.access, request)
    return ctx.services.proposals.draft(ctx.db, ctx.caller, ctx.access, request, tries=ctx.tries)


@serves(PREVIEW_PSBT)
def preview_psbt(ctx: Ctx, request: CreatePsbtRequest) -> PsbtPreview:
    # Drafted like a second try, which checks the limits: a first try checks them only when it is stored.
    draft = _drafted(replace(ctx, tries=1), request)
    return ctx.services.previewing.preview(ctx.db, ctx.caller, ctx.access, request, draft)


@serves(CANCEL_PSBT)
def cancel_psbt(ctx: Ctx, request: CancelPsbtRequest) -> CancelPsbtResponse:
    return ctx.services.cancelling.cancel(ctx.db, ctx.caller, ctx.access, request)


@serves_in_parts(FORWARD_TO_VAULT)
def forward_to_vault(ctx: Ctx, request: ForwardToVaultRequest) -> Steps[CreatePsbtResponse]:
    forwarding = ctx.services.forwarding
    draft = forwarding.draft(ctx.db, ctx.caller, ctx.access, request)
    ctx = yield In.WRITE
    return forwarding.create(ctx.db, ctx.caller, ctx.access, request, draft)


@serves(PREVIEW_FORWARD)
def preview_forward(ctx: Ctx, request: ForwardToVaultRequest) -> PsbtPreview:
    return ctx.services.forwarding.preview(ctx.db, ctx.caller, ctx.access, request)


@serves_in_parts(CREATE_PROOF)
def create_proof(ctx: Ctx, request: CreateProofRequest) -> Steps[CreatePsbtResponse]:
    proving = ctx.services.proving
    draft = proving.draft(ctx.db, ctx.caller, ctx.access, request)
    ctx = yield In.WRITE
    return proving.create(ctx.db, ctx.caller, ctx.access, request, draft)


@serves(PROOF)
def proof(ctx: Ctx, query: ProofQuery) -> ProofFile:
    return ctx.services.proving.file(ctx.db, ctx.access, query.psbt_id)


@serves_in_parts(SIGN_PSBT)
def sign_psbt(ctx: Ctx, request: SignPsbtRequest) -> Steps[SignPsbtResponse]:
    signing = ctx.services.signing
    expected = signing.expect(ctx.db, ctx.caller, ctx.access, request)
    yield In.NOTHING
    verified = verify_returned(read_returned(request, expected.txid), expected)
    ctx = yield In.WRITE
    answer = signing.submit(ctx.db, ctx.caller, ctx.access, request, verified)
    if answer.status is ProposalStatus.SIGNED:
        yield In.NOTHING
        answer = _after_broadcast(ctx.services, answer)
    return answer


def _after_broadcast(services: Services, answer: SignPsbtResponse) -> SignPsbtResponse:
    """Waits a moment for the worker that broadcasts."""
    deadline = time.monotonic() + services.broadcast_wait_seconds
    while (
        answer.status is ProposalStatus.SIGNED
        and not services.tools.changes.closing
        and (left := deadline - time.monotonic()) > 0
    ):
        seen = services.tools.changes.version
        with services.store.read() as db:
            proposal = services.proposals.find(db, answer.psbt_id)
            update = {"status": ProposalStatus(proposal.status), "txid": proposal.txid}
        answer = answer.model_copy(update=update)
        if answer.status is ProposalStatus.SIGNED:
            services.tools.changes.wait(seen, min(left, RECHECK_SECONDS))
    return answer
