"""Proposing a payment, or a version that takes another's place; and what it would be. It is drafted outside
the write lock.
"""

from dataclasses import replace

from custody.schemas.proposals import (
    CREATE_PSBT,
    PREVIEW_PSBT,
    CreatePsbtRequest,
    CreatePsbtResponse,
    PsbtPreview,
)
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.proposals import replacing, sends
from custody.server.service.proposals.bounds import require_listed, require_signers
from custody.server.service.proposals.payments import Intent, read_rate
from custody.server.service.proposals.records import rate_text
from custody.server.service.stored_vaults import vault_in
from multisig import FeeRate


@serves_in_parts(CREATE_PSBT)
def create_psbt(ctx: Ctx, request: CreatePsbtRequest) -> Steps[CreatePsbtResponse]:
    draft = _drafted(ctx, request)
    ctx = yield In.WRITE
    if isinstance(draft, replacing.ReplacementDraft):
        return replacing.create(ctx, request, draft)
    return sends.create(ctx, request, draft)


def _drafted(ctx: Ctx, request: CreatePsbtRequest) -> sends.Prepared | replacing.ReplacementDraft:
    if request.cancel or request.replaces_psbt_id is not None:
        return replacing.draft(ctx, request)
    return sends.draft(ctx, request)


@serves(PREVIEW_PSBT)
def preview_psbt(ctx: Ctx, request: CreatePsbtRequest) -> PsbtPreview:
    """The same draft and the same limit checks. Raises what `create_psbt` would."""
    # Drafted like a second try, which checks the limits: a first try checks them only when it is stored.
    prepared = _drafted(replace(ctx, tries=1), request)
    vault = vault_in(ctx.db, ctx.access, request.wallet_id)
    intent, draft, family_id = Intent(), prepared.draft, None
    match prepared:
        case sends.Prepared():
            intent = prepared.intent
            draft, movement = sends.within_limits(ctx, vault, request, prepared)
            moved = movement.amount
        case replacing.ReplacementDraft():
            intent = prepared.intent
            terms = replacing.within_limits(ctx, vault, request, intent, draft)
            moved, family_id = terms.movement, terms.family_id
    require_listed(ctx.db, vault, draft.raw)
    require_signers(ctx.db, vault, draft.scripts, ctx.caller.user_id, family_id)
    left = None
    if isinstance(prepared, sends.Prepared):
        # A version counts together with what it replaces.
        left = ctx.tools.limits.room(ctx.db, ctx.caller, ctx.access, vault, after=moved)
    selection = draft.selection
    return PsbtPreview(
        psbt_base64=draft.base64,
        recipients=[payment.address for payment in intent.payments],
        amounts_sats=[payment.output.amount for payment in intent.payments],
        coins=[str(utxo.outpoint) for utxo in draft.utxos],
        change_sats=selection.change,
        fee_sats=selection.fee,
        fee_rate=rate_text(FeeRate.of(selection.fee, draft.vsize)),
        asked_fee_rate=rate_text(read_rate(request, ctx.tools.market.quote(vault.chain))),
        vsize=draft.vsize,
        movement_sats=moved,
        role_left_sats=None if left is None else left.role,
        vault_left_sats=None if left is None else left.vault,
    )
