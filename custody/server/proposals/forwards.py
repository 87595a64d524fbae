"""Forwards: a member's own money from the profile into one of the workspace's vaults, as a proposal that only
the member signs. No limit applies: limits are for what leaves a vault (docs/operate/limits.md).

The caller fixes the fee, to the satoshi. Confirmed coins are spent first, then the change of an earlier
forward that itself spent confirmed coins alone, then, where the caller allows it, unconfirmed deposits.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from custody.schemas.proposals import CreatePsbtResponse, PsbtPreview, TxType
from custody.schemas.sending import FORWARD_TO_VAULT, PREVIEW_FORWARD, ForwardToVaultRequest
from custody.server import errors
from custody.server.calls import Ctx, Steps, serves, serves_in_parts
from custody.server.keys.profiles import (
    CHANGE_INDEX,
    OwnProfile,
    ProfileScripts,
    no_profile,
    own_profiles,
)
from custody.server.network.backends import Quote
from custody.server.proposals.bounds import require_able_to_pay_on
from custody.server.proposals.coins import (
    COINBASE_MATURITY,
    Utxo,
    is_locked,
    utxo_of,
)
from custody.server.proposals.drafts import Funding, Order
from custody.server.proposals.payments import LEAST_NOW, Intent, PaidRecipient
from custody.server.proposals.propose import preview, propose
from custody.server.proposals.seeing import named
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import Caller, WorkspaceAccess
from custody.server.rules.fees import CEILING, MAX_FEE
from custody.server.rules.selection import MAX_INPUTS, CoinT, Selection, largest_first
from custody.server.store.models import ChainCoinRow, CoinLockRow, ProposalInputRow, ProposalRow
from custody.server.vaults.stored import IS_LOCK_OF_COIN, policy_of, replacement_of, vault_in
from multisig import (
    CHANGE,
    RECEIVE,
    FeeRate,
    MultisigError,
    Network,
    Sats,
    TxOut,
    decode_address,
    dust_threshold,
    estimate_vsize,
)

PROPOSED = Event(
    "FORWARD_PROPOSED",
    "proposed to forward {sats} of their own into the vault {vault}"
    " // proposal {proposal}, key {key}, {fee_sats} fee, tx {txid}",
    Category.FORWARDING,
)


@dataclass(frozen=True)
class Sizes:
    """Below them an output is dust."""

    least_payment: Sats
    least_change: Sats


@serves_in_parts(FORWARD_TO_VAULT)
def forward_to_vault(ctx: Ctx, request: ForwardToVaultRequest) -> Steps[CreatePsbtResponse]:
    proposed = yield from propose(ctx, partial(_order, request))
    row = proposed.row
    sats = proposed.draft.funding.intent.total
    proposed.announce(PROPOSED, sats=sats, key=row.profile_key_id, fee_sats=row.fee_sats)
    return CreatePsbtResponse(psbt_id=row.id, psbt_base64=proposed.base64)


@serves(PREVIEW_FORWARD)
def preview_forward(ctx: Ctx, request: ForwardToVaultRequest) -> PsbtPreview:
    return preview(ctx, _order(request, ctx))


def _order(request: ForwardToVaultRequest, ctx: Ctx) -> Order:
    """Raises NotFound (vault, profile), WalletAddressMismatch, KeyIsRevoked, Invalid, Dust, StateConflict
    (the vault is replaced), TooFewSigners (it could not pay on). Funding it raises InsufficientFunds,
    LockedFunds, Invalid, Dust, StateConflict (other coins than requested).
    """
    db, access = ctx.db, ctx.access
    if request.network != access.network:
        raise errors.Invalid.at("/network", f"The workspace is on {access.network}.")
    vault = vault_in(db, access, request.vault_id)
    replacement = replacement_of(db, vault)
    if replacement is not None:
        raise errors.StateConflict(f"The vault {vault.name} is replaced: forward to {replacement.name}.")
    require_able_to_pay_on(db, vault)
    own = _profile_of(db, ctx.caller, access, request.wallet_address)
    policy = own.policy(db)
    # The address is used again until the chain shows a payment to it: forwards that are never signed must
    # not open a gap, beyond which a wallet that restores the vault does not scan.
    policy_of_vault, index = policy_of(vault), vault.next_receive_index
    address, pays = policy_of_vault.address(RECEIVE, index), policy_of_vault.script_pubkey(RECEIVE, index)
    back = policy.script_pubkey(CHANGE, CHANGE_INDEX)

    def vsize(inputs: int, with_change: bool) -> int:
        return estimate_vsize(policy, inputs, [pays, back] if with_change else [pays])

    sizes = Sizes(dust_threshold(pays), dust_threshold(back))
    amount = None if request.amount_sats is None else Sats(request.amount_sats)
    fee = Sats(request.fee_sats)
    require_sensible(amount, fee, sizes)

    def fund(quote: Quote) -> Iterator[Funding]:
        coins = _ProfileCoins(vault.chain, own.scripts, quote.tip.height, request.allow_unconfirmed)
        allocation = allocate(coins.tiers(db), amount, fee, sizes)
        if allocation is None:
            raise _too_little(ctx, coins, amount, fee)
        size = vsize(len(allocation.coins), allocation.change > 0)
        require_rate(fee, size, quote.floor)
        if request.coins is not None and {str(utxo.outpoint) for utxo in allocation.coins} != set(
            request.coins
        ):
            raise errors.StateConflict("Other coins would be spent now: look at the preview again.")
        payment = Sats(sum(utxo.amount for utxo in allocation.coins) - allocation.change - fee)
        intent = Intent((PaidRecipient(address, TxOut(payment, pays)),))
        yield Funding(intent, allocation, size, FeeRate.of(fee, size), fresh=allocation.coins)

    return Order(
        TxType.FORWARD,
        vault.id,
        vault.chain,
        policy,
        Intent((PaidRecipient(address, TxOut(Sats(0), pays)),)),
        fund,
        change_at=(CHANGE, CHANGE_INDEX),
        profile_key_id=own.key.id,
        fee_at="/fee_sats",
        size_at="/amount_sats",
    )


def _profile_of(db: Session, caller: Caller, access: WorkspaceAccess, address: str | None) -> OwnProfile:
    """The active key's profile, or the one with the address, for the money of a replaced device. A device may
    have been registered several times: then a key that can still forward is taken.
    """
    owned = own_profiles(db, caller.user_id, access.network)
    if address is None:
        owned = [own for own in owned if own.key.status == "active"]
        if not owned:
            raise no_profile()
        return owned[0]
    meant = []
    with suppress(MultisigError):
        script = decode_address(address, Network(access.chain))
        meant = [own for own in owned if own.scripts.receive == script]
    if not meant:
        sentence = "This is not the address of a profile that you registered on this network."
        raise errors.WalletAddressMismatch.at("/wallet_address", sentence, "mismatch")
    able = next((own for own in meant if own.can_forward), None)
    if able is None:
        raise errors.KeyIsRevoked(f"The key of this profile was revoked ({meant[0].key.revoked_reason}).")
    return able


@dataclass(frozen=True)
class _ProfileCoins:
    """Unspent, mature coins at the profile's two scripts, at a tip."""

    chain: str
    scripts: ProfileScripts
    tip_height: int
    allow_unconfirmed: bool

    def tiers(self, db: Session) -> list[list[Utxo]]:
        """Coins that are not locked, of each kind the largest: confirmed ones, own change, and where it is
        allowed unconfirmed deposits. Each tier has the coins of those before it, the largest first.
        """
        waiting, own = ChainCoinRow.height.is_(None), self._is_own_change()
        kinds = [~waiting, and_(waiting, own), and_(waiting, ~own)]
        tiers: list[list[Utxo]] = [[]]
        for kind in kinds if self.allow_unconfirmed else kinds[:2]:
            query = select(ChainCoinRow).where(*self._unspent(), ~is_locked(), kind)
            order = ChainCoinRow.amount_sats.desc(), ChainCoinRow.txid, ChainCoinRow.vout
            coins = map(utxo_of, db.scalars(query.order_by(*order).limit(MAX_INPUTS)))
            tiers.append(largest_first([*tiers[-1], *coins]))
        return tiers[1:]

    def total(self, db: Session, *, locked: bool) -> Sats:
        """The sum that a forward could spend; with ``locked``, the sum that proposals have locked."""
        confirmed = or_(ChainCoinRow.height.is_not(None), self._is_own_change())
        may_spend = [] if self.allow_unconfirmed else [confirmed]
        held = is_locked() if locked else ~is_locked()
        query = select(func.coalesce(func.sum(ChainCoinRow.amount_sats), 0))
        return Sats(int(db.scalar(query.where(*self._unspent(), held, *may_spend)) or 0))

    @property
    def holders(self) -> Select[str]:
        """The families that have locked some."""
        locks = select(CoinLockRow.family_id).distinct().join(ChainCoinRow, IS_LOCK_OF_COIN)
        return locks.where(*self._unspent())

    def _unspent(self) -> tuple[ColumnElement[bool], ...]:
        matured = self.tip_height + 1 - COINBASE_MATURITY
        return (
            ChainCoinRow.chain == self.chain,
            ChainCoinRow.vault_id.is_(None),
            ChainCoinRow.script_pubkey.in_(self.scripts),
            ChainCoinRow.spent_by.is_(None),
            or_(ChainCoinRow.is_coinbase.is_(False), ChainCoinRow.height <= matured),
        )

    def _is_own_change(self) -> ColumnElement[bool]:
        """Change of a forward all of whose coins are confirmed, so that it does not depend on an unconfirmed
        deposit.
        """
        spent = aliased(ChainCoinRow)
        is_confirmed = exists().where(
            spent.chain == self.chain,
            spent.txid == ProposalInputRow.txid,
            spent.vout == ProposalInputRow.vout,
            spent.height.is_not(None),
        )
        chains_on = exists().where(ProposalInputRow.proposal_id == ProposalRow.id, ~is_confirmed)
        return and_(
            ChainCoinRow.branch == CHANGE,
            exists().where(
                ProposalRow.txid_expected == ChainCoinRow.txid,
                ProposalRow.profile_key_id.is_not(None),
                ~chains_on,
            ),
        )


def _too_little(
    ctx: Ctx, coins: _ProfileCoins, amount: Sats | None, fee: Sats
) -> errors.LockedFunds | errors.InsufficientFunds:
    free, held = coins.total(ctx.db, locked=False), coins.total(ctx.db, locked=True)
    if held and free < fee + (amount or 1) <= free + held:
        return errors.LockedFunds(f"The coins of this profile are locked by {named(ctx, coins.holders)}.")
    what = "The balance" if amount is None else f"{amount:,} sats and the fee of {fee:,} sats"
    waiting = (
        "" if coins.allow_unconfirmed else " Unconfirmed deposits are spent with allow_unconfirmed only."
    )
    return errors.InsufficientFunds(f"{what} cannot be forwarded: {free:,} sats can be spent.{waiting}")


def require_sensible(amount: Sats | None, fee: Sats, sizes: Sizes) -> None:
    """Checks what is wrong whatever the coins are (P48). ``amount``: None for a sweep of all coins. Raises
    Invalid, Dust.
    """
    if fee > MAX_FEE:
        raise _too_high(f"The fee of {fee:,} sats is above the cap of {MAX_FEE:,} sats.")
    if amount is None:
        return
    if amount < sizes.least_payment:
        sentence = f"{amount:,} sats are dust: a vault's address takes {sizes.least_payment:,} sats at least."
        raise errors.Dust.at("/amount_sats", sentence, "dust")
    _require_less_than(fee, amount)


def allocate(
    tiers: Sequence[Sequence[CoinT]], amount: Sats | None, fee: Sats, sizes: Sizes
) -> Selection[CoinT] | None:
    """The coins to spend and the change; the rest, without the fee, reaches the vault. None where the coins
    do not suffice. The largest first: a fee that was named beforehand pays for few inputs best.

    Raises Invalid for a fee that makes no sense for these coins (P48), Dust for a payment or change that
    would be dust.
    """
    return _sweep(tiers[-1], fee, sizes) if amount is None else _fixed(tiers, amount, fee, sizes)


def _sweep(pool: Sequence[CoinT], fee: Sats, sizes: Sizes) -> Selection[CoinT] | None:
    """All coins, or the largest where there are more than a transaction takes: a stranger's dust must not
    block a sweep.
    """
    coins = tuple(pool[:MAX_INPUTS])
    if not coins:
        return None
    total = sum(coin.amount for coin in coins)
    payment = total - fee
    if payment <= 0:
        raise _too_high(f"The fee of {fee:,} sats is all of the {total:,} sats that there are, or more.")
    if payment < sizes.least_payment:
        sentence = (
            f"The fee of {fee:,} sats leaves {payment:,} sats, and a vault's address takes "
            f"{sizes.least_payment:,} sats at least."
        )
        raise errors.Dust.at("/fee_sats", sentence, "dust")
    _require_less_than(fee, Sats(payment))
    return Selection(coins, Sats(0), fee)


def _fixed(
    tiers: Sequence[Sequence[CoinT]], amount: Sats, fee: Sats, sizes: Sizes
) -> Selection[CoinT] | None:
    left_over = 0
    for tier in tiers:
        total = 0
        for count, coin in enumerate(tier[:MAX_INPUTS], start=1):
            total += coin.amount
            change = total - amount - fee
            if change == 0 or change >= sizes.least_change:
                return Selection(tuple(tier[:count]), Sats(change), fee)
            left_over = max(left_over, change)
    if left_over > 0:
        sentence = (
            f"{left_over:,} sats would be left, which is dust: forward {amount + left_over:,} sats, or "
            f"{sizes.least_change - left_over:,} sats less, or sweep."
        )
        raise errors.Dust.at("/amount_sats", sentence, "dust")
    return None


def _require_less_than(fee: Sats, payment: Sats) -> None:
    if fee >= payment:
        raise _too_high(f"The fee of {fee:,} sats is no less than the {payment:,} sats that reach the vault.")


def require_rate(fee: Sats, vsize: int, floor: FeeRate) -> None:
    """Raises Invalid (P48)."""
    least = floor.fee_for(vsize)
    if fee < least:
        enough = f"{floor} is {LEAST_NOW}, which is {least:,} sats"
        sentence = f"The fee of {fee:,} sats is too low for {vsize} vB: {enough}."
        raise errors.Invalid.at("/fee_sats", sentence, "fee-too-low")
    if FeeRate.of(fee, vsize) > CEILING:
        raise _too_high(f"The fee of {fee:,} sats is above {CEILING} for {vsize} vB.")


def _too_high(sentence: str) -> errors.Invalid:
    return errors.Invalid.at("/fee_sats", sentence, "fee-too-high")
