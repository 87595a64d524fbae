"""The most that one payment can send: `Proposals` accepts this amount, and refuses one satoshi more."""

from dataclasses import dataclass, replace

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.schemas.sending import Bound
from custody.server.calls import Ctx
from custody.server.limits.limits import Room, room
from custody.server.network.backends import Quote
from custody.server.proposals.bounds import is_move
from custody.server.proposals.coins import SpendableCoins, Tally, kept_for_tokens
from custody.server.proposals.drafting import largest_that_fit, plan_of, taken_together
from custody.server.proposals.mempools import WAITS_FOR_A_BLOCK
from custody.server.proposals.payments import Intent
from custody.server.rules.selection import most_of, select_cheapest, spent_at_once
from custody.server.store.models import VaultRow, WatchedScriptRow
from custody.server.vaults.stored import policy_of
from multisig import FeeRate, Sats, dust_threshold


@dataclass(frozen=True)
class MaximumAmount:
    """``amount`` is 0 where nothing can be sent."""

    amount: Sats
    fee: Sats
    inputs: int
    bound_by: Bound
    tally: Tally
    room: Room

    @property
    def in_words(self) -> str:
        return f"At most {self.amount} sat can be sent now: {self._because}."

    @property
    def _because(self) -> str:
        match self.bound_by:
            case "coins":
                return f"all coins that are free, {self.tally.free} sat{self._beside}, less their fee"
            case "transaction":
                return f"one transaction takes {self.inputs} of the coins"
            case "nodes":
                return f"{WAITS_FOR_A_BLOCK}: wait for the next block"
            case "role-limit":
                return "with the fee, your role's limit on all your payments leaves no more"
            case "vault-limit":
                return "with the fee, the vault's limit lets no more through"
            case "dust":
                return f"the {self.tally.free} sat that are free{self._beside} leave nothing above dust"

    @property
    def _beside(self) -> str:
        parts = {
            "held by proposals": self.tally.held,
            "not spendable yet": self.tally.waiting,
            "in coins below their own fee": self.tally.small,
            "kept for its tokens": self.tally.kept,
        }
        told = [f"{sats} sat {what}" for what, sats in parts.items() if sats]
        return f" (beside {', '.join(told)})" if told else ""


def most_of_intent(ctx: Ctx, vault: VaultRow, intent: Intent, rate: FeeRate, quote: Quote) -> MaximumAmount:
    """Ignores the amounts in ``intent``. Raises PolicyUnavailable."""
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
        is_dust = bound_by in {"coins", "transaction"}
        return MaximumAmount(Sats(0), Sats(0), 0, "dust" if is_dust else bound_by, tally, left)
    return MaximumAmount(amount, selection.fee, len(selection.coins), bound_by, tally, left)


def own_scripts(db: Session, vault: VaultRow, intent: Intent) -> set[bytes]:
    """The vault's own scripts among the recipients: what is paid to them does not count for limits."""
    scripts = [payment.output.script_pubkey for payment in intent.payments]
    return set(db.scalars(_OWN_SCRIPTS, {"chain": vault.chain, "vault_id": vault.id, "scripts": scripts}))


_OWN_SCRIPTS = select(WatchedScriptRow.script_pubkey).where(
    WatchedScriptRow.chain == bindparam("chain"),
    WatchedScriptRow.script_pubkey.in_(bindparam("scripts", expanding=True)),
    WatchedScriptRow.vault_id == bindparam("vault_id"),
)
