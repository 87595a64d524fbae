"""Forwards: a member's own money from the profile into one of the workspace's vaults, as a proposal that only
the member signs. No limit applies: limits are for what leaves a vault (docs/operate/limits.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from custody.schemas.forwards import FORWARD_TO_VAULT, PREVIEW_FORWARD, ForwardToVaultRequest
from custody.schemas.proposals import CreatePsbtResponse, ProposalStatus, PsbtPreview, TxType
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.domain.audit import Category, Event
from custody.server.domain.credentials import Caller, WorkspaceAccess, new_id
from custody.server.domain.errors import (
    InsufficientFunds,
    Invalid,
    KeyIsRevoked,
    LockedFunds,
    StateConflict,
    WalletAddressMismatch,
)
from custody.server.domain.forwarding import Allocation, ForwardTerms, Sizes, allocate, require_sensible
from custody.server.domain.selection import (
    MAX_INPUTS,
    PROPOSAL_LIFETIME,
    Candidate,
    choose_locktime,
)
from custody.server.service.backends import Quote
from custody.server.service.keys.profiles import (
    CHANGE_INDEX,
    OwnProfile,
    ProfileScripts,
    no_profile,
    own_profiles,
)
from custody.server.service.proposals.bounds import require_able_to_pay_on
from custody.server.service.proposals.coins import (
    COINBASE_MATURITY,
    Utxo,
    coins_to_spend,
    is_locked,
    lock_coins,
    require_unchanged,
    utxo_of,
)
from custody.server.service.proposals.drafting import Parts
from custody.server.service.proposals.mempools import require_taken_by_nodes
from custody.server.service.proposals.records import rate_text
from custody.server.service.proposals.storing import store_with_inputs
from custody.server.service.requests.changes import OutdatedDraft
from custody.server.service.stored_vaults import policy_of, replacement_of, vault_in
from custody.server.service.webhook_events import event_data
from custody.server.store.models import ChainCoinRow, ProposalInputRow, ProposalRow, VaultRow
from multisig import (
    CHANGE,
    RECEIVE,
    Built,
    ChangeTo,
    FeeRate,
    MultisigError,
    Network,
    PsbtTooLarge,
    Sats,
    TxOut,
    decode_address,
    dust_threshold,
    estimate_vsize,
)
from multisig import Profile as Policy

PROPOSED = Event(
    "FORWARD_PROPOSED",
    "proposal {proposal}: {sats} sat of key {text} into vault {vault}, {text2} sat fee, tx {more}",
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


@dataclass(frozen=True)
class ForwardDraft:
    """A forward that is ready to be proposed. ``receive_index``: that of the vault's address that it pays."""

    key_id: str
    receive_index: int
    utxos: tuple[Utxo, ...]
    payment: Sats
    vsize: int
    built: Built


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
    drafted = draft(ctx, request)
    ctx = yield In.WRITE
    return create(ctx, request, drafted)


@serves(PREVIEW_FORWARD)
def preview_forward(ctx: Ctx, request: ForwardToVaultRequest) -> PsbtPreview:
    drafted = draft(ctx, request)
    rate = rate_text(FeeRate.of(Sats(request.fee_sats), drafted.vsize))
    spent = sum(utxo.amount for utxo in drafted.utxos)
    policy = policy_of(vault_in(ctx.db, ctx.access, request.vault_id))
    return PsbtPreview(
        psbt_base64=drafted.built.base64,
        recipients=[policy.address(RECEIVE, drafted.receive_index)],
        amounts_sats=[drafted.payment],
        coins=[str(utxo.outpoint) for utxo in drafted.utxos],
        change_sats=spent - drafted.payment - request.fee_sats,
        fee_sats=request.fee_sats,
        fee_rate=rate,
        asked_fee_rate=rate,
        vsize=drafted.vsize,
        movement_sats=0,
    )


def draft(ctx: Ctx, request: ForwardToVaultRequest) -> ForwardDraft:
    """Chooses the coins and builds the PSBT. It only reads, for a snapshot, so that no writer waits.

    Raises NotFound (vault, profile), WalletAddressMismatch, KeyIsRevoked, Invalid, Dust,
    InsufficientFunds, LockedFunds, ChainUnavailable, StateConflict (the vault is replaced, other coins
    than requested, or nodes would not take it).
    """
    db, access = ctx.db, ctx.access
    if request.network != access.network:
        raise Invalid.at("/network", f"The workspace is on {access.network}.")
    vault = _vault_to_fill(db, access, request.vault_id)
    own = _profile_of(db, ctx.caller, access, request.wallet_address)
    policy = own.policy(db)
    # The address is used again until the chain shows a payment to it: forwards that are never signed must
    # not open a gap, beyond which a wallet that restores the vault does not scan.
    pays = policy_of(vault).script_pubkey(RECEIVE, vault.next_receive_index)
    quote = ctx.tools.market.quote(vault.chain)
    sizes, wish = _sizes(policy, pays), _wish(request)
    require_sensible(wish, sizes)
    utxos, found = _choose(db, ProfileCoins(vault.chain, own.scripts, quote.tip.height), wish, sizes)
    if request.coins is not None and {str(utxo.outpoint) for utxo in utxos} != set(request.coins):
        raise StateConflict("Other coins would be spent now: look at the preview again.")
    require_taken_by_nodes(db, vault.chain, utxos, found.vsize(sizes))
    built = _build(ctx, vault, policy, pays, utxos, found, quote)
    return ForwardDraft(own.key.id, vault.next_receive_index, utxos, found.payment, found.vsize(sizes), built)


def _build(
    ctx: Ctx,
    vault: VaultRow,
    policy: Policy,
    pays: bytes,
    utxos: Sequence[Utxo],
    found: Allocation,
    quote: Quote,
) -> Built:
    outputs: list[TxOut | ChangeTo] = [TxOut(found.payment, pays)]
    if found.change:
        outputs.insert(ctx.tools.rng.randrange(2), ChangeTo(found.change, CHANGE, CHANGE_INDEX))
    locktime = choose_locktime(quote.tip.height, ctx.now.timestamp() - quote.tip.time, ctx.tools.rng)
    parts = Parts(policy, tuple(coins_to_spend(ctx.db, vault.chain, utxos)), tuple(outputs), locktime)
    try:
        built = parts.build()
    except PsbtTooLarge as error:
        # Payers decide how large the previous transactions are, which the device has to read.
        sentence = f"{len(utxos)} coins and their previous transactions are more than a device takes: {error}"
        raise Invalid.at("/amount_sats", sentence, error.code) from error
    own = parts.distinct(ctx.db, built.psbt, quote.tip.height)
    return built if own is parts else own.build()


def create(ctx: Ctx, request: ForwardToVaultRequest, drafted: ForwardDraft) -> CreatePsbtResponse:
    """Stores the forward and locks its coins.

    Raises Outdated where a coin of the draft was spent, this transaction was proposed, or the vault's
    address was paid meanwhile; NotFound (vault), WalletAddressMismatch, KeyIsRevoked.
    """
    db = ctx.db
    vault = _vault_to_fill(db, ctx.access, request.vault_id)
    own = _profile_of(db, ctx.caller, ctx.access, request.wallet_address)
    if (own.key.id, vault.next_receive_index) != (drafted.key_id, drafted.receive_index):
        raise OutdatedDraft("The member has another key now, or the vault another address.")
    require_unchanged(db, vault.chain, drafted.utxos)
    proposal = _insert(ctx, vault, drafted)
    ctx.event(
        PROPOSED,
        event_data(proposal),
        proposal=proposal.id,
        sats=drafted.payment,
        text=own.key.id,
        vault=vault.id,
        text2=proposal.fee_sats,
        more=proposal.txid_expected,
    )
    return CreatePsbtResponse(psbt_id=proposal.id, psbt_base64=drafted.built.base64)


def _insert(ctx: Ctx, vault: VaultRow, drafted: ForwardDraft) -> ProposalRow:
    now, proposal_id = ctx.now, new_id(ctx.tools.random)
    lock_coins(ctx.db, vault.chain, [utxo.outpoint for utxo in drafted.utxos], proposal_id)
    fee = Sats(
        sum(utxo.amount for utxo in drafted.utxos)
        - sum(output.amount for output in drafted.built.psbt.outputs)
    )
    proposal = ProposalRow(
        id=proposal_id,
        family_id=proposal_id,
        workspace_id=vault.workspace_id,
        vault_id=vault.id,
        profile_key_id=drafted.key_id,
        tx_type=TxType.FORWARD.value,
        status=ProposalStatus.PENDING.value,
        created_by=ctx.caller.user_id,
        psbt=drafted.built.raw,
        txid_expected=drafted.built.psbt.tx.txid,
        recipients=[policy_of(vault).address(RECEIVE, drafted.receive_index)],
        amounts_sats=[int(drafted.payment)],
        fee_sats=fee,
        fee_rate_sat_per_kvb=FeeRate.of(fee, drafted.vsize).sat_per_kvb,
        contract_ids=[],
        m=1,
        n=1,
        movement_sats=0,
        counts_for_role=True,
        expires_at=now + PROPOSAL_LIFETIME,
        created_at=now,
        updated_at=now,
    )
    store_with_inputs(ctx.db, proposal, drafted.utxos)
    ctx.tools.lifecycle.touch(ctx.db, proposal)
    return proposal


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
