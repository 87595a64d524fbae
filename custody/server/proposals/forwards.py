"""Forwards: a member's own money from the profile into one of the workspace's vaults, as a proposal that only
the member signs. No limit applies: limits are for what leaves a vault (docs/operate/limits.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from custody.schemas.forwards import FORWARD_TO_VAULT, PREVIEW_FORWARD, ForwardToVaultRequest
from custody.schemas.proposals import CreatePsbtResponse, PsbtPreview, TxType
from custody.server.calls import Ctx, Steps, serves, serves_in_parts
from custody.server.errors import (
    InsufficientFunds,
    Invalid,
    KeyIsRevoked,
    LockedFunds,
    StateConflict,
    WalletAddressMismatch,
)
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
from custody.server.proposals.payments import Intent, PaidRecipient
from custody.server.proposals.propose import preview, propose
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import Caller, WorkspaceAccess
from custody.server.rules.forwarding import Allocation, ForwardTerms, Sizes, allocate, require_sensible
from custody.server.rules.selection import (
    MAX_INPUTS,
    Candidate,
    Selection,
)
from custody.server.store.models import ChainCoinRow, ProposalInputRow, ProposalRow, VaultRow
from custody.server.vaults.stored import policy_of, replacement_of, vault_in
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
from multisig import Profile as Policy

PROPOSED = Event(
    "FORWARD_PROPOSED",
    "proposal {proposal}: {sats} sat of key {key} into vault {vault}, {fee_sats} sat fee, tx {txid}",
    "proposed to forward {sats} of their own into the vault {vault}",
    Category.FORWARDING,
)


@dataclass(frozen=True)
class ProfileCoins:
    """Unspent, mature coins at the profile's two scripts, at a tip."""

    chain: str
    scripts: ProfileScripts
    tip_height: int

    def pool(self, db: Session) -> dict[Candidate, Utxo]:
        """Coins that are not locked: the largest confirmed ones, own change, and unconfirmed deposits."""
        waiting, own = ChainCoinRow.height.is_(None), self._is_own_change()
        kinds = (~waiting, and_(waiting, own), and_(waiting, ~own))
        return {
            self._candidate(coin, is_own=is_own): utxo_of(coin)
            for kind in kinds
            for coin, is_own in self._largest(db, kind, own)
        }

    def total(self, db: Session, *, allow_unconfirmed: bool, locked: bool) -> Sats:
        """The sum that a forward could spend; with ``locked``, the sum that proposals have locked."""
        may_spend = (
            [] if allow_unconfirmed else [or_(ChainCoinRow.height.is_not(None), self._is_own_change())]
        )
        held = is_locked() if locked else ~is_locked()
        query = select(func.coalesce(func.sum(ChainCoinRow.amount_sats), 0))
        return Sats(int(db.scalar(query.where(*self._unspent(), held, *may_spend)) or 0))

    def _largest(
        self, db: Session, kind: ColumnElement[bool], own: ColumnElement[bool]
    ) -> list[tuple[ChainCoinRow, bool]]:
        query = (
            select(ChainCoinRow, own)
            .where(*self._unspent(), ~is_locked(), kind)
            .order_by(ChainCoinRow.amount_sats.desc(), ChainCoinRow.txid, ChainCoinRow.vout)
            .limit(MAX_INPUTS)
        )
        return [(coin, bool(is_own)) for coin, is_own in db.execute(query)]

    def _candidate(self, coin: ChainCoinRow, *, is_own: bool) -> Candidate:
        depth = 0 if coin.height is None else max(1, self.tip_height - coin.height + 1)
        return Candidate(coin.txid, coin.vout, Sats(coin.amount_sats), depth, is_own)

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


def _vault_to_fill(db: Session, access: WorkspaceAccess, vault_id: str) -> VaultRow:
    """Raises NotFound; StateConflict where it is replaced; TooFewSigners where it could not pay on."""
    vault = vault_in(db, access, vault_id)
    replacement = replacement_of(db, vault)
    if replacement is not None:
        raise StateConflict(f"The vault {vault.name} is replaced: forward to {replacement.name}.")
    require_able_to_pay_on(db, vault)
    return vault


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
    (the vault is replaced). Funding it raises InsufficientFunds, LockedFunds, Invalid, Dust, StateConflict
    (other coins than requested).
    """
    db, access = ctx.db, ctx.access
    if request.network != access.network:
        raise Invalid.at("/network", f"The workspace is on {access.network}.")
    vault = _vault_to_fill(db, access, request.vault_id)
    own = _profile_of(db, ctx.caller, access, request.wallet_address)
    policy = own.policy(db)
    # The address is used again until the chain shows a payment to it: forwards that are never signed must
    # not open a gap, beyond which a wallet that restores the vault does not scan.
    policy_of_vault, index = policy_of(vault), vault.next_receive_index
    address, pays = policy_of_vault.address(RECEIVE, index), policy_of_vault.script_pubkey(RECEIVE, index)
    sizes, wish = _sizes(policy, pays), _wish(request)
    require_sensible(wish, sizes)

    def fund(quote: Quote) -> Iterator[Funding]:
        utxos, found = _choose(db, ProfileCoins(vault.chain, own.scripts, quote.tip.height), wish, sizes)
        if request.coins is not None and {str(utxo.outpoint) for utxo in utxos} != set(request.coins):
            raise StateConflict("Other coins would be spent now: look at the preview again.")
        intent = Intent((PaidRecipient(address, TxOut(found.payment, pays)),))
        selection = Selection(utxos, found.change, wish.fee)
        vsize = found.vsize(sizes)
        yield Funding(intent, selection, vsize, FeeRate.of(wish.fee, vsize), fresh=utxos)

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
    script = _script(address, access.chain)
    meant = [own for own in owned if own.scripts.receive == script]
    if not meant:
        sentence = "This is not the address of a profile that you registered on this network."
        raise WalletAddressMismatch.at("/wallet_address", sentence, "mismatch")
    able = next((own for own in meant if own.can_forward), None)
    if able is None:
        raise KeyIsRevoked(f"The key of this profile was revoked ({meant[0].key.revoked_reason}).")
    return able


def _script(address: str, chain: str) -> bytes | None:
    try:
        return decode_address(address, Network(chain))
    except MultisigError:
        return None


def _wish(request: ForwardToVaultRequest) -> ForwardTerms:
    amount = None if request.amount_sats is None else Sats(request.amount_sats)
    return ForwardTerms(amount, Sats(request.fee_sats), request.allow_unconfirmed)


def _sizes(policy: Policy, pays: bytes) -> Sizes:
    back = policy.script_pubkey(CHANGE, CHANGE_INDEX)

    def vsize(inputs: int, with_change: bool) -> int:
        return estimate_vsize(policy, inputs, [pays, back] if with_change else [pays])

    return Sizes(vsize, dust_threshold(pays), dust_threshold(back))


def _choose(
    db: Session, source: ProfileCoins, wish: ForwardTerms, sizes: Sizes
) -> tuple[tuple[Utxo, ...], Allocation]:
    """Raises as `allocate`; LockedFunds where other forwards have locked coins that it needs;
    InsufficientFunds.
    """
    pool = source.pool(db)
    found = allocate([*pool], wish, sizes)
    if found is not None:
        return tuple(pool[coin] for coin in found.coins), found
    free, held = (
        source.total(db, allow_unconfirmed=wish.allow_unconfirmed, locked=locked) for locked in (False, True)
    )
    needed = wish.fee + (wish.amount or 1)
    if held and free < needed <= free + held:
        raise LockedFunds("The coins of this profile are locked by other forwards.")
    what = "The balance" if wish.amount is None else f"{wish.amount} sat and the fee of {wish.fee} sat"
    waiting = "" if wish.allow_unconfirmed else " Unconfirmed deposits are spent with allow_unconfirmed only."
    raise InsufficientFunds(f"{what} cannot be forwarded: {free} sat can be spent.{waiting}")
