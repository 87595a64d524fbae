"""Proofs of control (BIP-322): a message that a vault signs, as a proposal that moves nothing.

It locks no coin, and no limit applies. The only stored input is the one that does not exist, so the watcher
never sees a proof on the chain.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas import proofs as wire
from custody.schemas.proposals import CreatePsbtResponse, ProposalStatus, TxType
from custody.server.calls import Ctx, Steps, serves, serves_in_parts
from custody.server.errors import Invalid, NotFound, StateConflict
from custody.server.keys.quorums import signers_of
from custody.server.network.backends import Quote
from custody.server.proposals.bounds import require_signers, vault_to_spend
from custody.server.proposals.coins import Utxo, coins_to_spend, utxo_of
from custody.server.proposals.drafts import Funding, Order
from custody.server.proposals.payments import Intent
from custody.server.proposals.propose import propose
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import Caller
from custody.server.rules.selection import Selection
from custody.server.store.models import (
    ChainCoinRow,
    ProposalRow,
    VaultRow,
    WatchedScriptRow,
)
from custody.server.vaults.stored import ADDRESS_INDEX, policy_of
from firmware_bridge.makers import may_sign_proof, signing_devices
from multisig import (
    RECEIVE,
    FeeRate,
    MultisigError,
    Network,
    ProvenSpend,
    Psbt,
    Sats,
    decode_address,
    encode_address,
)
from multisig.bip322 import MAX_COINS, build_proof, finalise_proof

PROPOSED = Event(
    "PROPOSAL_CREATED",
    "asked for a proof of the vault {vault}: the proposal {proposal} // {coins}, tx {txid}",
    Category.PROPOSALS,
)


@serves_in_parts(wire.CREATE_PROOF)
def create_proof(ctx: Ctx, request: wire.CreateProofRequest) -> Steps[CreatePsbtResponse]:
    """Stores the proof for the vault's signers. Raises NotFound (vault), VaultFrozen, Invalid,
    ChainUnavailable; StateConflict for the same message at the same block.
    """
    proposed = yield from propose(ctx, partial(_order, request))
    proposed.announce(PROPOSED, coins=len(proposed.draft.built.psbt.inputs) - 1)
    return CreatePsbtResponse(psbt_id=proposed.row.id, psbt_base64=proposed.base64)


def _order(request: wire.CreateProofRequest, ctx: Ctx) -> Order:
    vault = vault_to_spend(ctx.db, ctx.access, request.vault_id)
    return Order(
        TxType.PROOF,
        vault.id,
        vault.chain,
        policy_of(vault),
        Intent(),
        partial(_fund, ctx, request, vault),
        description=request.message,
        counts_for_role=False,
    )


def _fund(ctx: Ctx, request: wire.CreateProofRequest, vault: VaultRow, quote: Quote) -> Iterator[Funding]:
    """Nothing is spent: its one input on record is the one that stands for the message."""
    db, tip = ctx.db, quote.tip
    branch, index = _place(db, vault, request.address)
    message = request.message + wire.AT_BLOCK.format(height=tip.height, hash=tip.hash)
    coins = _coins(db, vault) if request.with_coins else []
    try:
        built = build_proof(policy_of(vault), message, branch, index, coins_to_spend(db, vault.chain, coins))
    except MultisigError as error:
        raise Invalid.at("/message", str(error), error.code) from error
    scripts = {output.script_pubkey for output in built.psbt.outputs}
    require_signers(db, vault, scripts, ctx.caller.user_id)
    _require_devices(db, vault, ctx.caller, coins=len(coins))
    outpoint = built.psbt.inputs[0].outpoint
    first = Utxo(outpoint.txid, outpoint.vout, Sats(0), None, branch, index)
    nothing = Selection((first,), Sats(0), Sats(0))
    yield Funding(Intent(), nothing, built.psbt.tx.vsize, FeeRate(0), built=built)


@serves(wire.PROOF)
def proof(ctx: Ctx, query: wire.ProofQuery) -> wire.ProofFile:
    """The file of a complete proof. Raises NotFound, StateConflict."""
    proposal = ctx.find(ProposalRow, query.psbt_id, "proposal")
    if TxType(proposal.tx_type) is not TxType.PROOF:
        raise NotFound("There is no such proof in this workspace.")
    if ProposalStatus(proposal.status) is not ProposalStatus.PROVEN:
        raise StateConflict(f"The proof is {proposal.status}: it does not have enough signatures.")
    vault, psbt = ctx.db.get_one(VaultRow, proposal.vault_id), Psbt.parse(proposal.psbt)
    signature = finalise_proof(ProvenSpend(psbt, policy_of(vault)))
    message = (psbt.signed_message or b"").decode()
    height, block_hash = wire.block_named(message) or (None, None)
    challenge, *coins = [_coin(psbt, index, Network(vault.chain)) for index in range(len(psbt.inputs))]
    return wire.ProofFile(
        network=vault.chain,
        message=message,
        signatures=[wire.SignedFor(address=challenge.address, signature=str(signature))],
        height=height,
        block_hash=block_hash,
        coins=coins,
    )


def _coin(psbt: Psbt, index: int, network: Network) -> wire.CoinOfProof:
    item = psbt.inputs[index]
    assert item.witness_utxo is not None, "a PSBT of ours states every coin"
    address = encode_address(item.witness_utxo.script_pubkey, network)
    assert address is not None, "P2WSH has an address on every network"
    return wire.CoinOfProof(
        outpoint=str(item.outpoint), amount_sats=item.witness_utxo.amount, address=address
    )


def _require_devices(db: Session, vault: VaultRow, caller: Caller, *, coins: int) -> None:
    """Checks that the devices of enough signers can sign it, as far as their firmware is known. A key without
    a known device counts as able. Raises Invalid.
    """
    seats = [
        seat
        for seat in signers_of(db, [vault.id])[vault.id]
        if seat.can_sign and (vault.maker_may_approve or seat.user_id != caller.user_id)
    ]
    unable = [
        seat.model or seat.maker
        for seat in seats
        if seat.maker and not may_sign_proof(seat.maker, seat.model or "", seat.firmware, coins=coins)
    ]
    if len(seats) - len(unable) < vault.m:
        what = "for its coins" if coins else "at all"
        raise Invalid.at(
            "/vault_id",
            f"{vault.m} of the vault's {vault.n} keys have to sign. These devices cannot sign such a message "
            f"{what}: {', '.join(sorted(unable))}. These can: {signing_devices(coins=coins)}.",
            "no-quorum",
        )


def _place(db: Session, vault: VaultRow, address: str | None) -> tuple[int, int]:
    if address is None:
        return RECEIVE, ADDRESS_INDEX
    try:
        script = decode_address(address, Network(vault.chain))
    except MultisigError as error:
        raise Invalid.at("/address", str(error), error.code) from error
    ours = WatchedScriptRow.script_pubkey == script, WatchedScriptRow.vault_id == vault.id
    place = select(WatchedScriptRow.branch, WatchedScriptRow.address_index)
    row = db.execute(place.where(WatchedScriptRow.chain == vault.chain, *ours)).one_or_none()
    if row is None:
        raise Invalid.at("/address", "This is not one of the vault's addresses so far.", "not-ours")
    branch, index = row
    return branch, index


def _coins(db: Session, vault: VaultRow) -> Sequence[Utxo]:
    """The confirmed coins, the largest where there are more than a proof can have. Raises Invalid where there
    are none.
    """
    unspent = ChainCoinRow.vault_id == vault.id, ChainCoinRow.spent_by.is_(None)
    order = ChainCoinRow.amount_sats.desc(), ChainCoinRow.txid.desc(), ChainCoinRow.vout.desc()
    query = select(ChainCoinRow).where(*unspent, ChainCoinRow.height.is_not(None)).order_by(*order)
    coins = db.scalars(query.limit(MAX_COINS)).all()
    if not coins:
        raise Invalid.at("/with_coins", "The vault has no confirmed coins.", "coins")
    return [utxo_of(coin) for coin in coins]
