"""Proposing a payment and deciding on one: the calls that work outside the write lock."""

import time

from custody.schemas.proposals import (
    CREATE_PSBT,
    SIGN_PSBT,
    CreatePsbtRequest,
    CreatePsbtResponse,
    ProposalStatus,
    SignPsbtRequest,
    SignPsbtResponse,
)
from custody.server.calls import Ctx, In, Steps, serves_in_parts
from custody.server.service.proposals.proposals import Prepared
from custody.server.service.proposals.replacing import Version
from custody.server.service.proposals.verifying import read_returned, verify_returned
from custody.server.service.services import Services

# Other processes' commits are not announced here: a call that waits for a broadcast polls at this interval.
RECHECK_SECONDS = 0.25


@serves_in_parts(CREATE_PSBT)
def create_psbt(ctx: Ctx, request: CreatePsbtRequest) -> Steps[CreatePsbtResponse]:
    draft = drafted(ctx, request)
    ctx = yield In.WRITE
    if isinstance(draft, Version):
        return ctx.services.replacing.create(ctx.db, ctx.caller, ctx.access, request, draft)
    return ctx.services.proposals.create(ctx.db, ctx.caller, ctx.access, request, draft)


def drafted(ctx: Ctx, request: CreatePsbtRequest) -> Prepared | Version:
    if request.cancel or request.replaces_psbt_id is not None:
        return ctx.services.replacing.draft(ctx.db, ctx.access, request)
    return ctx.services.proposals.draft(ctx.db, ctx.caller, ctx.access, request, tries=ctx.tries)


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
