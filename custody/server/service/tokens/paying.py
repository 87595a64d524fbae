"""The transaction of a token: it begins with a coin at the vault's address, carries the payload, and returns its change there."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from custody.server.domain.errors import (
    Fault,
    InsufficientFunds,
    Invalid,
    LockedFunds,
    TokenCoinMissing,
    TokenCoinUnconfirmed,
)
from custody.server.domain.ports import Clock
from custody.server.domain.selection import (
    MAX_INPUTS,
    Plan,
    RandomSource,
    Selection,
    Tier,
    input_cost,
    largest_first,
    settle,
)
from custody.server.domain.timing import choose_locktime
from custody.server.service.backends import Quote
from custody.server.service.proposals.coins import Holding, Purse, coins_to_spend
from custody.server.service.proposals.drafting import Draft, Parts, plan_of, require_sane_fee
from custody.server.service.proposals.payments import Intent
from custody.server.service.proposals.token_coins import (
    awaited_token_coin,
    has_locked_token_coin,
    token_coins,
)
from custody.server.service.stored_vaults import ADDRESS_INDEX, policy_of
from custody.server.store.models import Vault
from multisig import RECEIVE, ChangeTo, FeeRate, PsbtTooLarge, Sats, TxOut


class TokenDrafter:
    def __init__(self, clock: Clock, rng: RandomSource) -> None:
        self._clock = clock
        self._rng = rng

    def draft(
        self, db: Session, vault: Vault, payload: bytes, rate: FeeRate, quote: Quote, *, vault_at: str
    ) -> Draft:
        """It only reads. Before it is stored, its coins have to be looked at again (`require_unchanged`).

        ``vault_at``: where the request names the vault.

        Raises TokenCoinMissing, TokenCoinUnconfirmed; LockedFunds where the coins at the address are held; InsufficientFunds;
        Invalid (the fee is above the cap, or the PSBT larger than devices take).
        """
        intent = Intent((), payload)
        plan = plan_of(policy_of(vault), intent, rate)
        selection = self._choose(db, vault, plan, quote.tip.height, vault_at)
        require_sane_fee(selection)
        outputs: list[TxOut | ChangeTo] = list(intent.outputs)
        back = ChangeTo(selection.change, RECEIVE, ADDRESS_INDEX)
        outputs.insert(self._rng.randrange(len(outputs) + 1), back)
        lock = choose_locktime(quote.tip.height, self._clock().timestamp() - quote.tip.time, self._rng)
        coins = tuple(coins_to_spend(db, vault.chain, selection.coins))
        parts = Parts(policy_of(vault), coins, tuple(outputs), lock)
        vsize = plan.vsize(len(selection.coins), True)  # noqa: FBT003 - the shape Plan asks for
        try:
            draft = Draft(parts.build(), selection, vsize, parts)
        except PsbtTooLarge as error:
            sentence = f"The coins at the vault's address are more than a device takes: {error}"
            raise Invalid(sentence, faults=(Fault(vault_at, sentence, error.code),)) from error
        return draft.distinct(db, quote.tip.height)

    def _choose(
        self, db: Session, vault: Vault, plan: Plan, tip_height: int, vault_at: str
    ) -> Selection[Holding]:
        """One coin at the address where one suffices, the smallest that does; else as few others as the fee takes."""
        own = [coin for coin in token_coins(db, vault, tip_height) if coin.amount > input_cost(plan)]
        if not own:
            raise _no_coin(db, vault, plan, tip_height, vault_at)
        for coin in reversed(own):
            alone = _settle([coin], plan)
            if alone is not None:
                return alone
        others = self._others(db, vault, plan, tip_height, own[1:])
        for count in range(1, min(len(others), MAX_INPUTS - 1) + 1):
            holdings = (own[0], *others[:count])
            together = _settle(holdings, plan)
            if together is not None:
                return together
        raise InsufficientFunds(
            "The vault's confirmed coins that no proposal holds do not pay the fee and leave something at its address."
        )

    def _others(
        self, db: Session, vault: Vault, plan: Plan, tip_height: int, own: Sequence[Holding]
    ) -> list[Holding]:
        """Confirmed ones, the largest first; those at the address last, for each of them can begin a call."""
        pool = Purse(vault.id, tip_height, avoids_address=True).pool(db, Tier.CONFIRMED, plan)
        return [*largest_first(pool), *own]


def _settle(holdings: Sequence[Holding], plan: Plan) -> Selection[Holding] | None:
    """With change: the next call begins with it."""
    selection = settle(holdings, plan)
    return selection if selection is not None and selection.change else None


def _no_coin(
    db: Session, vault: Vault, plan: Plan, tip_height: int, vault_at: str
) -> LockedFunds | TokenCoinMissing:
    if has_locked_token_coin(db, vault, tip_height):
        return LockedFunds(
            f"The coins at {vault.address}, with which a token's transaction begins, are held by other proposals."
        )
    awaited = awaited_token_coin(db, vault, Sats(input_cost(plan) + 1))
    if awaited is None:
        kind = TokenCoinMissing
        sentence = (
            f"The vault has no confirmed coin at {vault.address}, with which a token's transaction begins."
        )
    else:
        kind = TokenCoinUnconfirmed
        maker = f" comes from proposal {awaited.proposal_id}, which" if awaited.proposal_id else ""
        sentence = f"The vault's coin at {vault.address}{maker} is not in a block yet."
    return kind(sentence, faults=(Fault(vault_at, sentence, "token-coin-missing"),))
