"""Drafting and storing a token's proposal.

Its transaction begins with a coin at the vault's address, carries the payload, and returns its change to that
address.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from custody.schemas.common import Priority
from custody.schemas.proposals import TxType
from custody.server.calls import Ctx
from custody.server.domain.credentials import new_id
from custody.server.domain.errors import (
    Fault,
    InsufficientFunds,
    Invalid,
    LockedFunds,
    TokenCoinMissing,
    TokenCoinUnconfirmed,
)
from custody.server.domain.fees import STANDARD_PRIORITY
from custody.server.domain.selection import (
    MAX_INPUTS,
    Plan,
    Selection,
    Tier,
    choose_locktime,
    input_cost,
    largest_first,
    settle,
)
from custody.server.service.limits.limits import OutgoingAmount
from custody.server.service.limits.usage import OutgoingTokens
from custody.server.service.proposals.coins import (
    SpendableCoins,
    Utxo,
    awaited_token_coin,
    coins_to_spend,
    has_locked_token_coin,
    lock_coins,
    require_unchanged,
    token_coins,
)
from custody.server.service.proposals.drafting import Draft, Parts, plan_of, require_sane_fee
from custody.server.service.proposals.payments import Intent
from custody.server.service.proposals.storing import Terms, store_proposal
from custody.server.service.stored_vaults import ADDRESS_INDEX, policy_of
from custody.server.store.models import ProposalRow, VaultRow
from multisig import RECEIVE, ChangeTo, PsbtTooLarge, Sats, TxOut


def draft_token(
    ctx: Ctx, vault: VaultRow, payload: bytes, priority: Priority | None, *, vault_at: str
) -> Draft:
    """Only reads. Before the draft is stored, its coins have to be checked again (`require_unchanged`).
    ``vault_at``: the JSON pointer of the vault in the request.

    Raises TokenCoinMissing, TokenCoinUnconfirmed; LockedFunds where the coins at the address are locked;
    InsufficientFunds; Invalid (the fee is above the cap, or the PSBT larger than devices take).
    """
    quote = ctx.tools.market.quote(vault.chain)
    rate, rng = quote.rates[priority or STANDARD_PRIORITY], ctx.tools.rng
    intent = Intent(op_return=payload)
    plan = plan_of(policy_of(vault), intent, rate)
    selection = _choose(ctx.db, vault, plan, quote.tip.height, vault_at)
    require_sane_fee(selection, vault_at)
    outputs: list[TxOut | ChangeTo] = list(intent.outputs)
    back = ChangeTo(selection.change, RECEIVE, ADDRESS_INDEX)
    outputs.insert(rng.randrange(len(outputs) + 1), back)
    lock = choose_locktime(quote.tip.height, ctx.now.timestamp() - quote.tip.time, rng)
    coins = tuple(coins_to_spend(ctx.db, vault.chain, selection.coins))
    parts = Parts(policy_of(vault), coins, tuple(outputs), lock)
    vsize = plan.vsize(len(selection.coins), True)  # noqa: FBT003 - the shape Plan asks for
    try:
        draft = Draft(parts.build(), selection, vsize, parts)
    except PsbtTooLarge as error:
        sentence = f"The coins at the vault's address are more than a device takes: {error}"
        raise Invalid.at(vault_at, sentence, error.code) from error
    return draft.distinct(ctx.db, quote.tip.height)


def _choose(db: Session, vault: VaultRow, plan: Plan, tip_height: int, vault_at: str) -> Selection[Utxo]:
    """The smallest coin at the address that suffices alone; else the largest with as few others as
    needed.
    """
    own = [coin for coin in token_coins(db, vault, tip_height) if coin.amount > input_cost(plan)]
    if not own:
        raise _no_coin(db, vault, plan, tip_height, vault_at)
    for coin in reversed(own):
        alone = _settle([coin], plan)
        if alone is not None:
            return alone
    others = _others(db, vault, plan, tip_height, own[1:])
    for count in range(1, min(len(others), MAX_INPUTS - 1) + 1):
        utxos = (own[0], *others[:count])
        together = _settle(utxos, plan)
        if together is not None:
            return together
    everything = SpendableCoins(vault.id, tip_height).pool(db, Tier.CONFIRMED, plan, with_locked=True)
    rest = [coin for coin in largest_first(everything) if coin != own[0]]
    if _settle((own[0], *rest[: MAX_INPUTS - 1]), plan) is not None:
        raise LockedFunds(
            "The coins that would cover the fee and some change at the vault's address are locked by "
            "other proposals."
        )
    raise InsufficientFunds(
        "The vault's confirmed coins do not cover the fee and some change at its address."
    )


def _others(db: Session, vault: VaultRow, plan: Plan, tip_height: int, own: Sequence[Utxo]) -> list[Utxo]:
    """Confirmed coins, the largest first; those at the address last, because each can begin a call."""
    pool = SpendableCoins(vault.id, tip_height, avoids_address=True).pool(db, Tier.CONFIRMED, plan)
    return [*largest_first(pool), *own]


def _settle(utxos: Sequence[Utxo], plan: Plan) -> Selection[Utxo] | None:
    """A selection with change: the next call begins with it."""
    selection = settle(utxos, plan)
    return selection if selection is not None and selection.change else None


def _no_coin(
    db: Session, vault: VaultRow, plan: Plan, tip_height: int, vault_at: str
) -> LockedFunds | TokenCoinMissing:
    if has_locked_token_coin(db, vault, tip_height):
        return LockedFunds(
            f"The coins at {vault.address}, with which a token's transaction begins, are locked by other "
            "proposals."
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
        sentence = f"The vault's coin at {vault.address}{maker} is not confirmed yet."
    return kind(sentence, faults=(Fault(vault_at, sentence, "token-coin-missing"),))


@dataclass(frozen=True)
class TokenProposal:
    """A token's proposal beside its transaction. ``movement``: the fee, in sat; ``moved``: of the token."""

    tx_type: TxType
    payload: bytes
    movement: OutgoingAmount
    moved: OutgoingTokens | None = None
    recipients: tuple[str, ...] = ()
    contract_ids: tuple[str, ...] = ()
    counts_for_role: bool = True


def store_token(ctx: Ctx, vault: VaultRow, draft: Draft, wanted: TokenProposal) -> ProposalRow:
    """Stores a PENDING proposal, the first of its family.

    Raises Outdated where a coin was spent, or this transaction was proposed, since the draft;
    LockedFunds, RoleLimitExceeded, VaultLimitExceeded, PolicyUnavailable.
    """
    require_unchanged(ctx.db, vault.chain, draft.utxos)
    _require_limits(ctx, vault, wanted)
    proposal_id = new_id(ctx.tools.random)
    lock_coins(ctx.db, vault.chain, [utxo.outpoint for utxo in draft.utxos], proposal_id)
    terms = Terms(
        proposal_id,
        proposal_id,
        ctx.caller.user_id,
        None,
        wanted.movement.amount,
        wanted.movement.proposed_at,
        tx_type=wanted.tx_type,
        recipients=wanted.recipients,
        op_return_hex=wanted.payload.hex(),
        contract_ids=wanted.contract_ids,
        counts_for_role=wanted.counts_for_role,
    )
    proposal = store_proposal(ctx.db, vault, draft, terms)
    ctx.db.flush()
    return proposal


def _require_limits(ctx: Ctx, vault: VaultRow, wanted: TokenProposal) -> None:
    limits = ctx.tools.limits
    if wanted.counts_for_role:
        limits.require(ctx.db, ctx.caller, ctx.access, vault, wanted.movement)
    else:
        limits.require_vault(ctx.db, vault, wanted.movement)
    if wanted.moved is not None:
        limits.require_token(ctx.db, ctx.caller, ctx.access, vault, wanted.moved)
