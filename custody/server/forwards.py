"""Forwarding a member's own money into a vault: proposed, or what would be. It is drafted outside the write
lock.
"""

from custody.schemas.forwards import FORWARD_TO_VAULT, PREVIEW_FORWARD, ForwardToVaultRequest
from custody.schemas.proposals import CreatePsbtResponse, PsbtPreview
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.service.proposals.records import rate_text
from custody.server.service.stored_vaults import policy_of, vault_in
from multisig import RECEIVE, FeeRate, Sats


@serves_in_parts(FORWARD_TO_VAULT)
def forward_to_vault(ctx: Ctx, request: ForwardToVaultRequest) -> Steps[CreatePsbtResponse]:
    forwarding = ctx.services.forwarding
    draft = forwarding.draft(ctx.db, ctx.caller, ctx.access, request)
    ctx = yield In.WRITE
    return forwarding.create(ctx.db, ctx.caller, ctx.access, request, draft)


@serves(PREVIEW_FORWARD)
def preview_forward(ctx: Ctx, request: ForwardToVaultRequest) -> PsbtPreview:
    draft = ctx.services.forwarding.draft(ctx.db, ctx.caller, ctx.access, request)
    rate = rate_text(FeeRate.of(Sats(request.fee_sats), draft.vsize))
    spent = sum(utxo.amount for utxo in draft.utxos)
    policy = policy_of(vault_in(ctx.db, ctx.access, request.vault_id))
    return PsbtPreview(
        psbt_base64=draft.built.base64,
        recipients=[policy.address(RECEIVE, draft.receive_index)],
        amounts_sats=[draft.payment],
        coins=[str(utxo.outpoint) for utxo in draft.utxos],
        change_sats=spent - draft.payment - request.fee_sats,
        fee_sats=request.fee_sats,
        fee_rate=rate,
        asked_fee_rate=rate,
        vsize=draft.vsize,
        movement_sats=0,
    )
