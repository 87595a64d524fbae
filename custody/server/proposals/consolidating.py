"""Making one coin of a vault's smallest ones: which, to where, and what that saves. It only reads: the
proposal is an ordinary one, a sweep of exactly these coins to the vault itself.
"""

from typing import Final

from custody.common.text import count
from custody.schemas.sending import CONSOLIDATION, Consolidation, ConsolidationQuery
from custody.server.calls import Ctx, serves
from custody.server.errors import StateConflict
from custody.server.proposals.bounds import require_move, vault_to_spend
from custody.server.proposals.choosing import Purse, plan_of
from custody.server.proposals.payments import Intent, PaidRecipient, rate_of
from custody.server.proposals.records import rate_text
from custody.server.rules.selection import input_cost
from custody.server.vaults.stored import policy_of
from multisig import RECEIVE, Network, Sats, TxOut, encode_address

# One coin alone is no fewer.
LEAST: Final = 2


@serves(CONSOLIDATION)
def consolidation(ctx: Ctx, query: ConsolidationQuery) -> Consolidation:
    """Raises NotFound, Invalid (the rate), VaultFrozen, ChainUnavailable; StateConflict where nothing is
    gained, or the vault is replaced.
    """
    vault = vault_to_spend(ctx.db, ctx.access, query.vault_id)
    script = policy_of(vault).script_pubkey(RECEIVE, vault.next_receive_index)
    require_move(ctx.db, vault, {script})
    address = encode_address(script, Network(vault.chain)) or ""
    intent = Intent((PaidRecipient(address, TxOut(Sats(0), script)),), sweeps=True)
    quote = ctx.tools.market.quote(vault.chain)
    rate = quote.rates["low"] if query.fee_rate is None else rate_of(query.fee_rate, quote)
    purse = Purse(ctx, vault, intent, rate, quote.tip.height)
    coins = [coin for coin in purse.coins.smallest(ctx.db, purse.plan, query.coins + 1) if coin != purse.kept]
    coins = coins[: query.coins]
    if len(coins) < LEAST:
        free = count(len(coins), "is free and worth more than its", "are free and worth more than their")
        raise StateConflict(f"There are no two coins to make one of: {free} fee{purse.beside}.")
    fee = purse.plan.fee(len(coins), with_change=False)
    held, later = sum(coin.amount for coin in coins), quote.rates["high"]
    each = input_cost(plan_of(policy_of(vault), intent, later)) - 1
    saved = each * (len(coins) - 1) - fee
    if saved <= 0 or held <= fee:
        raise StateConflict(
            f"Nothing is gained: to make one coin of the {len(coins)} smallest costs {fee:,} sats now, and "
            f"to spend them as they are costs {max(0, each * (len(coins) - 1)):,} sats more than one, at "
            f"{later}. Wait for a lower rate, or for more coins."
        )
    words = (
        f"{len(coins)} coins of {held:,} sats become one. The fee is {fee:,} sats now; to spend them as they "
        f"are costs {each * len(coins):,} sats at {later}, the estimate for two blocks, and one coin "
        f"{each:,} sats: {saved:,} sats are saved."
    )
    return Consolidation(
        address=address,
        coins=[str(coin.outpoint) for coin in coins],
        held_sats=held,
        fee_sats=fee,
        fee_rate=rate_text(rate),
        later_rate=rate_text(later),
        later_fee_sats=each * len(coins),
        saved_sats=saved,
        words=words,
    )
