"""The most that one payment can send now, and sending all that a replaced vault holds."""

from typing import get_args

from custody.schemas.common import Priority
from custody.schemas.proposals import CREATE_PSBT, CreatePsbtRequest
from custody.schemas.sending import (
    MAX_SEND,
    SWEEP_VAULT,
    MaxSend,
    MaxSendQuery,
    SweepVaultRequest,
    SweptVault,
)
from custody.server.calls import Ctx, In, Invocation, Steps, run, serves, serves_in_parts
from custody.server.errors import Dust, InsufficientFunds, LockedFunds, StateConflict
from custody.server.proposals.bounds import (
    require_move,
    require_scripts_listed,
    require_signers,
    vault_to_spend,
)
from custody.server.proposals.maximum import most_of_intent
from custody.server.proposals.payments import read_rate, read_recipients
from custody.server.proposals.records import rate_text
from custody.server.shown import WHY
from custody.server.vaults.stored import replacement_of
from multisig import MAX_MONEY, Network

# Proposals of one sweep-vault: a bound on the work of a call.
MAX_SWEEPS = 20


@serves(MAX_SEND)
def max_send(ctx: Ctx, query: MaxSendQuery) -> MaxSend:
    """`create_psbt` accepts this amount, and refuses one satoshi more. Raises NotFound (vault), Invalid,
    WrongNetworkAddress, VaultFrozen, NotInAddressBook, TooFewSigners, ChainUnavailable, PolicyUnavailable,
    StateConflict (the vault is replaced, or its coins cannot be).
    """
    vault = vault_to_spend(ctx.db, ctx.access, query.wallet_id)
    intent = read_recipients(query, Network(vault.chain))
    scripts = {output.script_pubkey for output in intent.outputs}
    require_move(ctx.db, vault, scripts)
    require_scripts_listed(ctx.db, vault, {payment.output.script_pubkey for payment in intent.payments})
    require_signers(ctx.db, vault, scripts, ctx.caller.user_id)
    quote = ctx.tools.market.quote(vault.chain)
    rate = read_rate(query, quote)
    most = most_of_intent(ctx, vault, intent, rate, quote)
    if max(most.amount, *most.tally) > MAX_MONEY:
        raise StateConflict(f"The coins of this vault are more than all bitcoin. {WHY}")
    return MaxSend(
        amount_sats=most.amount,
        fee_sats=most.fee,
        fee_rate=rate_text(rate),
        inputs=most.inputs,
        bound_by=most.bound_by,
        words=most.in_words,
        free_sats=most.tally.free,
        reserved_sats=most.tally.held,
        waiting_sats=most.tally.waiting,
        too_small_sats=most.tally.small,
        kept_sats=most.tally.kept,
        role_left_sats=most.room.role,
        vault_left_sats=most.room.vault,
        priority_rates={priority: rate_text(quote.rates[priority]) for priority in get_args(Priority)},
    )


@serves_in_parts(SWEEP_VAULT)
def sweep_vault(ctx: Ctx, request: SweepVaultRequest) -> Steps[SweptVault]:
    """Each proposal is a ``create-psbt`` of its own, and stays where a later one is refused. Raises what that
    does; StateConflict where the vault is not replaced.
    """
    wanted, made = _sweep(ctx, request), list[str]()
    yield In.NOTHING
    one = Invocation(CREATE_PSBT, wanted, ctx.caller)
    try:
        while len(made) < MAX_SWEEPS:
            answered = run(ctx.services, one)
            made.append(CREATE_PSBT.writer.validate_json(answered.content).psbt_id)
    except (Dust, InsufficientFunds, LockedFunds, StateConflict):
        if not made:
            raise
    return SweptVault(psbt_ids=made)


def _sweep(ctx: Ctx, request: SweepVaultRequest) -> CreatePsbtRequest:
    """Moves what one transaction takes. Raises NotFound, VaultFrozen, StateConflict (it is not replaced)."""
    old = vault_to_spend(ctx.db, ctx.access, request.vault_id)
    new = replacement_of(ctx.db, old)
    if new is None:
        raise StateConflict(f"The vault {old.name} is not replaced: ask for that first, replace-vault.")
    return CreatePsbtRequest(
        wallet_id=old.id,
        workspace_id=request.workspace_id,
        tx_type="send",
        recipients=[new.address],
        sweep=True,
        priority=request.priority,
        fee_rate=request.fee_rate,
        description=f"Moves what is left into {new.name}.",
    )
