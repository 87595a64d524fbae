"""Proposing a payment, or a version that takes another's place; and what it would be."""

from functools import partial

from custody.schemas.proposals import (
    CREATE_PSBT,
    PREVIEW_PSBT,
    CreatePsbtRequest,
    CreatePsbtResponse,
    PsbtPreview,
)
from custody.server.calls import Ctx, Steps, serves, serves_in_parts
from custody.server.proposals.drafts import Order
from custody.server.proposals.propose import CREATED, preview, propose
from custody.server.proposals.sends import send
from custody.server.proposals.versions import version
from custody.server.rules.audit import Category, Event

PROPOSED = Event(
    "PROPOSAL_CREATED",
    CREATED + "{sats} sat with the fee, tx {txid}",
    "proposed the payment {proposal} from the vault {vault}[ to {paid}]: {sats} with the fee",
    Category.PROPOSALS,
)
REPLACING = Event(
    "PROPOSAL_CREATED",
    CREATED + "{sats} sat with the fee, tx {txid}, replaces {older_proposal}",
    "proposed a newer version of the proposal {older_proposal}, of the vault {vault}[ to {paid}]: {sats}",
    Category.PROPOSALS,
)
TAKING_BACK = Event(
    "PROPOSAL_CREATED",
    CREATED + "{sats} sat with the fee, tx {txid}, takes back {lost_proposal}",
    "proposed to take back the proposal {lost_proposal} from the vault {vault}",
    Category.PROPOSALS,
)


@serves_in_parts(CREATE_PSBT)
def create_psbt(ctx: Ctx, request: CreatePsbtRequest) -> Steps[CreatePsbtResponse]:
    proposed = yield from propose(ctx, partial(_order, request))
    row = proposed.row
    # A move into the vault that takes this one's place counts for no limit, and moves all the same.
    sats = row.movement_sats or sum(row.amounts_sats) + row.fee_sats
    if request.cancel:
        proposed.announce(TAKING_BACK, sats=sats, lost_proposal=request.cancels_psbt_id)
    elif request.replaces_psbt_id is not None:
        proposed.announce(REPLACING, sats=sats, older_proposal=request.replaces_psbt_id)
    else:
        proposed.announce(PROPOSED, sats=sats)
    return CreatePsbtResponse(psbt_id=proposed.row.id, psbt_base64=proposed.base64)


def _order(request: CreatePsbtRequest, ctx: Ctx) -> Order:
    is_version = request.cancel or request.replaces_psbt_id is not None
    return version(ctx, request) if is_version else send(ctx, request)


@serves(PREVIEW_PSBT)
def preview_psbt(ctx: Ctx, request: CreatePsbtRequest) -> PsbtPreview:
    """The same draft and the same checks. Raises what `create_psbt` would."""
    return preview(ctx, _order(request, ctx))
