"""What a token's proposal is funded with.

Its transaction begins with a coin at the vault's address, carries the payload, and returns its change to that
address.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from custody.schemas.common import Priority
from custody.schemas.proposals import TxType
from custody.server.calls import Ctx
from custody.server.errors import (
    InsufficientFunds,
    LockedFunds,
    TokenCoinMissing,
)
from custody.server.network.backends import Quote
from custody.server.proposals.choosing import Purse
from custody.server.proposals.coins import Utxo, awaited_token_coins
from custody.server.proposals.drafts import Funding, Order
from custody.server.proposals.payments import Intent
from custody.server.rules.fees import STANDARD_PRIORITY
from custody.server.rules.selection import (
    MAX_INPUTS,
    Plan,
    Selection,
    Tier,
    input_cost,
    largest_first,
    settle,
)
from custody.server.store.models import VaultRow
from custody.server.vaults.stored import ADDRESS_INDEX, policy_of
from multisig import RECEIVE, Sats


def token_order(
    ctx: Ctx, kind: TxType, vault: VaultRow, payload: bytes, priority: Priority | None, *, vault_at: str
) -> Order:
    """``vault_at``: the JSON pointer of the vault in the request.

    Funding it raises TokenCoinMissing, also for an unconfirmed one; LockedFunds where the coins at the
    address are locked; InsufficientFunds.
    """
    intent = Intent(op_return=payload)

    def fund(quote: Quote) -> Iterator[Funding]:
        purse = Purse(ctx, vault, intent, quote.rates[priority or STANDARD_PRIORITY], quote.tip.height)
        selection = _choose(purse, vault_at)
        vsize = purse.plan.vsize(len(selection.coins), True)  # noqa: FBT003 - the shape Plan asks for
        yield Funding(intent, selection, vsize, purse.rate, fresh=selection.coins)

    return Order(
        kind,
        vault.id,
        vault.chain,
        policy_of(vault),
        intent,
        fund,
        change_at=(RECEIVE, ADDRESS_INDEX),
        fee_at=vault_at,
        size_at=vault_at,
    )


def _choose(purse: Purse, vault_at: str) -> Selection[Utxo]:
    """The smallest coin at the address that suffices alone; else the largest with as few others as
    needed.
    """
    db, plan = purse.ctx.db, purse.plan
    own = [coin for coin in purse.at_address() if coin.amount > input_cost(plan)]
    if not own:
        raise _no_coin(purse, vault_at)
    for coin in reversed(own):
        alone = _settle([coin], plan)
        if alone is not None:
            return alone
    # Those at the address last, because each can begin a call.
    pool = replace(purse.coins, avoids_address=True).pool(db, Tier.CONFIRMED, plan)
    others = [*largest_first(pool), *own[1:]]
    for count in range(1, min(len(others), MAX_INPUTS - 1) + 1):
        utxos = (own[0], *others[:count])
        together = _settle(utxos, plan)
        if together is not None:
            return together
    everything = purse.coins.pool(db, Tier.CONFIRMED, plan, with_locked=True)
    rest = [coin for coin in largest_first(everything) if coin != own[0]]
    if _settle((own[0], *rest[: MAX_INPUTS - 1]), plan) is not None:
        raise LockedFunds(
            "The coins that would cover the fee and some change at the vault's address are locked by "
            f"{purse.holders}."
        )
    raise InsufficientFunds(
        "The vault's confirmed coins do not cover the fee and some change at its address."
    )


def _settle(utxos: Sequence[Utxo], plan: Plan) -> Selection[Utxo] | None:
    """A selection with change: the next call begins with it."""
    selection = settle(utxos, plan)
    return selection if selection is not None and selection.change else None


def _no_coin(purse: Purse, vault_at: str) -> LockedFunds | TokenCoinMissing:
    vault = purse.vault
    if purse.at_address(locked=True):
        return LockedFunds(
            f"The coins at {vault.address}, with which a token's transaction begins, are locked by "
            f"{purse.holders}."
        )
    awaited = awaited_token_coins(purse.ctx.db, vault, Sats(input_cost(purse.plan) + 1))
    hint = None
    sentence = (
        f"The vault has no confirmed coin at {vault.address}, with which a token's transaction begins; coins "
        "that are set aside do not count."
    )
    if awaited:
        hint = "Wait for its confirmation; to make several calls at a time, send more coins there."
        maker = f" comes from proposal {awaited[0]}, which" if awaited[0] else ""
        sentence = f"The vault's coin at {vault.address}{maker} is not confirmed yet."
    return TokenCoinMissing.at(vault_at, sentence, "token-coin-missing", hint=hint)
