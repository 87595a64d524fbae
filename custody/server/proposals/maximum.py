"""The most that one payment can send: `create_psbt` accepts this amount, and refuses one satoshi more."""

from dataclasses import replace
from typing import get_args

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.schemas.common import Priority
from custody.schemas.sending import (
    MAX_SEND,
    Bound,
    MaxSend,
    MaxSendQuery,
)
from custody.server.calls import Ctx, serves
from custody.server.errors import StateConflict
from custody.server.limits.limits import room
from custody.server.network.backends import Quote
from custody.server.proposals.bounds import (
    is_move,
    require_move,
    require_scripts_listed,
    require_signers,
    vault_to_spend,
)
from custody.server.proposals.choosing import WAITS_FOR_A_BLOCK, largest_that_fit, plan_of, taken_together
from custody.server.proposals.coins import SpendableCoins, Tally, kept_for_tokens
from custody.server.proposals.payments import Intent, read_rate, read_recipients
from custody.server.proposals.records import rate_text
from custody.server.rules.selection import most_of, select_cheapest, spent_at_once
from custody.server.shown import WHY
from custody.server.store.models import VaultRow, WatchedScriptRow
from custody.server.vaults.stored import policy_of
from multisig import MAX_MONEY, FeeRate, Network, Sats, dust_threshold


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
    return most_sendable(ctx, vault, intent, read_rate(query, quote), quote)


def most_sendable(ctx: Ctx, vault: VaultRow, intent: Intent, rate: FeeRate, quote: Quote) -> MaxSend:
    """Ignores the amounts in ``intent``. Raises PolicyUnavailable; StateConflict where the coins on record
    cannot be.
    """
    db = ctx.db
    plan = plan_of(policy_of(vault), intent, rate)
    kept = kept_for_tokens(db, vault, quote.tip.height, intent.outputs)
    coins = largest_that_fit(db, vault, intent, plan, quote, kept)
    tally = SpendableCoins(vault.id, quote.tip.height).tally(db, plan, kept)
    is_whole = sum(coin.amount for coin in coins) == tally.free
    bound_by: Bound = "coins" if is_whole else "transaction"
    if not is_whole:
        everything, taken = taken_together(db, vault, plan, quote, kept)
        bound_by = "transaction" if everything is taken else "nodes"
    amount, left = most_of(coins, plan), room(ctx, vault)
    own = own_scripts(db, vault, intent)
    if is_move(db, vault, {payment.output.script_pubkey for payment in intent.payments}):
        limited = amount
    elif all(payment.output.script_pubkey in own for payment in intent.payments):
        # Of a payment to the vault itself the fee alone counts.
        limited = most_of(spent_at_once(coins, plan, left.least), plan)
    else:
        limited = most_of(coins, plan, left.least)
    if limited < amount:
        amount, bound_by = limited, "role-limit" if left.role < left.vault else "vault-limit"
    dust = sum(dust_threshold(payment.output.script_pubkey) for payment in intent.payments)
    selection = select_cheapest(coins, replace(plan, target=amount)) if amount >= dust else None
    if selection is None:
        amount, bound_by = Sats(0), "dust" if bound_by in {"coins", "transaction"} else bound_by
    if max(amount, *tally) > MAX_MONEY:
        raise StateConflict(f"The coins of this vault are more than all bitcoin. {WHY}")
    inputs = 0 if selection is None else len(selection.coins)
    return MaxSend(
        amount_sats=amount,
        fee_sats=Sats(0) if selection is None else selection.fee,
        fee_rate=rate_text(rate),
        inputs=inputs,
        bound_by=bound_by,
        words=f"At most {amount} sat can be sent now: {_why(bound_by, tally, inputs)}.",
        free_sats=tally.free,
        reserved_sats=tally.held,
        waiting_sats=tally.waiting,
        too_small_sats=tally.small,
        kept_sats=tally.kept,
        role_left_sats=left.role,
        vault_left_sats=left.vault,
        priority_rates={priority: rate_text(quote.rates[priority]) for priority in get_args(Priority)},
    )


def _why(bound_by: Bound, tally: Tally, inputs: int) -> str:
    parts = {
        "held by proposals": tally.held,
        "not spendable yet": tally.waiting,
        "in coins below their own fee": tally.small,
        "kept for its tokens": tally.kept,
    }
    told = [f"{sats} sat {what}" for what, sats in parts.items() if sats]
    beside = f" (beside {', '.join(told)})" if told else ""
    match bound_by:
        case "coins":
            return f"all coins that are free, {tally.free} sat{beside}, less their fee"
        case "transaction":
            return f"one transaction takes {inputs} of the coins"
        case "nodes":
            return f"{WAITS_FOR_A_BLOCK}: wait for the next block"
        case "role-limit":
            return "with the fee, your role's limit on all your payments leaves no more"
        case "vault-limit":
            return "with the fee, the vault's limit lets no more through"
        case "dust":
            return f"the {tally.free} sat that are free{beside} leave nothing above dust"


def own_scripts(db: Session, vault: VaultRow, intent: Intent) -> set[bytes]:
    """The vault's own scripts among the recipients: what is paid to them does not count for limits."""
    scripts = [payment.output.script_pubkey for payment in intent.payments]
    return set(db.scalars(_OWN_SCRIPTS, {"chain": vault.chain, "vault_id": vault.id, "scripts": scripts}))


_OWN_SCRIPTS = select(WatchedScriptRow.script_pubkey).where(
    WatchedScriptRow.chain == bindparam("chain"),
    WatchedScriptRow.script_pubkey.in_(bindparam("scripts", expanding=True)),
    WatchedScriptRow.vault_id == bindparam("vault_id"),
)
