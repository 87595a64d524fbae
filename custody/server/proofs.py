"""Proofs of control (BIP-322): a message that a vault signs, as a proposal that moves nothing.

It locks no coin, and no limit applies. The only stored input is the one that does not exist, so the watcher
never sees a proof on the chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.common.text import count
from custody.schemas.proofs import (
    AT_BLOCK,
    CREATE_PROOF,
    PROOF,
    CoinOfProof,
    CreateProofRequest,
    ProofFile,
    ProofQuery,
    SignedFor,
    block_named,
)
from custody.schemas.proposals import CreatePsbtResponse, ProposalStatus, TxType
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.domain.credentials import Caller, new_id
from custody.server.domain.errors import Invalid, NotFound, StateConflict
from custody.server.domain.selection import PROPOSAL_LIFETIME
from custody.server.service.keys.quorums import MAY_APPROVE
from custody.server.service.mail.waiting import tell_waiting
from custody.server.service.proposals.bounds import require_signers, vault_to_spend
from custody.server.service.proposals.coins import Utxo, coins_to_spend, utxo_of
from custody.server.service.proposals.storing import record_proposal, store_with_inputs
from custody.server.service.requests.changes import OutdatedDraft
from custody.server.service.stored_vaults import ADDRESS_INDEX, policy_of
from custody.server.store.models import (
    ChainCoinRow,
    KeyRow,
    ProposalRow,
    VaultRow,
    VaultSignerRow,
    WatchedScriptRow,
)
from firmware_bridge.makers import may_sign_proof, signing_devices
from multisig import (
    RECEIVE,
    Built,
    MultisigError,
    Network,
    ProvenSpend,
    Psbt,
    Sats,
    decode_address,
    encode_address,
)
from multisig.bip322 import MAX_COINS, build_proof, finalise_proof


@dataclass(frozen=True)
class ProofDraft:
    """``first``: the input that stands for the message."""

    built: Built
    first: Utxo
    coins: int


@serves_in_parts(CREATE_PROOF)
def create_proof(ctx: Ctx, request: CreateProofRequest) -> Steps[CreatePsbtResponse]:
    """Stores the proof for the vault's signers. Raises NotFound (vault), VaultFrozen, Invalid,
    ChainUnavailable; Outdated for the same message at the same block.
    """
    draft = _drafted(ctx, request)
    ctx = yield In.WRITE
    return _stored(ctx, request, draft)


def _drafted(ctx: Ctx, request: CreateProofRequest) -> ProofDraft:
    """The PSBT of the message. Only reads."""
    db = ctx.db
    vault = vault_to_spend(db, ctx.access, request.vault_id)
    branch, index = _place(db, vault, request.address)
    tip = ctx.tools.market.quote(vault.chain).tip
    message = request.message + AT_BLOCK.format(height=tip.height, hash=tip.hash)
    coins = _coins(db, vault) if request.with_coins else []
    try:
        built = build_proof(policy_of(vault), message, branch, index, coins_to_spend(db, vault.chain, coins))
    except MultisigError as error:
        raise Invalid.at("/message", str(error), error.code) from error
    require_signers(db, vault, _scripts(built), ctx.caller.user_id)
    _require_devices(db, vault, ctx.caller, coins=len(coins))
    outpoint = built.psbt.inputs[0].outpoint
    first = Utxo(outpoint.txid, outpoint.vout, Sats(0), None, branch, index)
    return ProofDraft(built, first, len(coins))


def _stored(ctx: Ctx, request: CreateProofRequest, draft: ProofDraft) -> CreatePsbtResponse:
    db, tools, now = ctx.db, ctx.tools, ctx.now
    vault = vault_to_spend(db, ctx.access, request.vault_id)
    require_signers(db, vault, _scripts(draft.built), ctx.caller.user_id)
    proposal_id = new_id(tools.random)
    proposal = ProposalRow(
        id=proposal_id,
        family_id=proposal_id,
        workspace_id=vault.workspace_id,
        vault_id=vault.id,
        tx_type=TxType.PROOF.value,
        status=ProposalStatus.PENDING.value,
        created_by=ctx.caller.user_id,
        description=request.message,
        psbt=draft.built.raw,
        txid_expected=draft.built.psbt.tx.txid,
        recipients=[],
        amounts_sats=[],
        fee_sats=0,
        fee_rate_sat_per_kvb=0,
        contract_ids=[],
        m=vault.m,
        n=vault.n,
        movement_sats=0,
        counts_for_role=False,
        expires_at=now + PROPOSAL_LIFETIME,
        created_at=now,
        updated_at=now,
    )
    try:
        store_with_inputs(db, proposal, [draft.first])
    except OutdatedDraft as error:
        raise OutdatedDraft(
            "This message was proposed at this block already: sign that proposal, or propose it again "
            "after the next block."
        ) from error
    tell_waiting(db, select(VaultSignerRow.user_id).where(VaultSignerRow.vault_id == vault.id), now)
    said = f"a proof that moves nothing, {count(draft.coins, 'coin', 'coins')}, tx {proposal.txid_expected}"
    record_proposal(db, tools.audit, tools.changes, ctx.caller, ctx.access, proposal, said)
    return CreatePsbtResponse(psbt_id=proposal.id, psbt_base64=draft.built.base64)


@serves(PROOF)
def proof(ctx: Ctx, query: ProofQuery) -> ProofFile:
    """The file of a complete proof. Raises NotFound, StateConflict."""
    proposal = ctx.db.get(ProposalRow, query.psbt_id)
    if (
        proposal is None
        or proposal.workspace_id != ctx.access.workspace_id
        or TxType(proposal.tx_type) is not TxType.PROOF
    ):
        raise NotFound("There is no such proof in this workspace.")
    if ProposalStatus(proposal.status) is not ProposalStatus.PROVEN:
        raise StateConflict(f"The proof is {proposal.status}: it does not have enough signatures.")
    return proof_file(Psbt.parse(proposal.psbt), ctx.db.get_one(VaultRow, proposal.vault_id))


def proof_file(psbt: Psbt, vault: VaultRow) -> ProofFile:
    """The file from a PSBT with enough signatures. Raises NotFinalisable."""
    policy, network = policy_of(vault), Network(vault.chain)
    signature = finalise_proof(ProvenSpend(psbt, policy))
    message = (psbt.signed_message or b"").decode()
    height, block_hash = block_named(message) or (None, None)
    challenge, *coins = [_coin(psbt, index, network) for index in range(len(psbt.inputs))]
    return ProofFile(
        network=network.value,
        message=message,
        signatures=[SignedFor(address=challenge.address, signature=str(signature))],
        height=height,
        block_hash=block_hash,
        coins=coins,
    )


def _coin(psbt: Psbt, index: int, network: Network) -> CoinOfProof:
    item = psbt.inputs[index]
    assert item.witness_utxo is not None, "a PSBT of ours states every coin"
    address = encode_address(item.witness_utxo.script_pubkey, network)
    assert address is not None, "P2WSH has an address on every network"
    return CoinOfProof(outpoint=str(item.outpoint), amount_sats=item.witness_utxo.amount, address=address)


def _scripts(built: Built) -> set[bytes]:
    return {output.script_pubkey for output in built.psbt.outputs}


def _require_devices(db: Session, vault: VaultRow, caller: Caller, *, coins: int) -> None:
    """Checks that the devices of enough signers can sign it, as far as their firmware is known. A key without
    a known device counts as able. Raises Invalid.
    """
    keys = [
        device
        for user_id, *device in db.execute(_DEVICES, {"vault_id": vault.id})
        if vault.maker_may_approve or user_id != caller.user_id
    ]
    unable = [
        model or maker
        for maker, model, firmware in keys
        if maker is not None and not may_sign_proof(maker, model or "", firmware, coins=coins)
    ]
    if len(keys) - len(unable) < vault.m:
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
    found = db.execute(_PLACE, {"chain": vault.chain, "script": script, "vault_id": vault.id}).one_or_none()
    if found is None:
        raise Invalid.at("/address", "This is not one of the vault's addresses so far.", "not-ours")
    branch, index = found
    return branch, index


def _coins(db: Session, vault: VaultRow) -> Sequence[Utxo]:
    """The confirmed coins, the largest where there are more than a proof can have. Raises Invalid where there
    are none.
    """
    found = db.scalars(_COINS.limit(MAX_COINS), {"vault_id": vault.id}).all()
    if not found:
        raise Invalid.at("/with_coins", "The vault has no confirmed coins.", "coins")
    return [utxo_of(coin) for coin in found]


_DEVICES = (
    select(VaultSignerRow.user_id, KeyRow.maker, KeyRow.model, KeyRow.firmware)
    .join(KeyRow, VaultSignerRow.key_id == KeyRow.id)
    .join(VaultRow, VaultRow.id == VaultSignerRow.vault_id)
    .where(VaultSignerRow.vault_id == bindparam("vault_id"), KeyRow.status == "active", MAY_APPROVE)
)
_PLACE = select(WatchedScriptRow.branch, WatchedScriptRow.address_index).where(
    WatchedScriptRow.chain == bindparam("chain"),
    WatchedScriptRow.script_pubkey == bindparam("script"),
    WatchedScriptRow.vault_id == bindparam("vault_id"),
)
_COINS = (
    select(ChainCoinRow)
    .where(
        ChainCoinRow.vault_id == bindparam("vault_id"),
        ChainCoinRow.spent_by.is_(None),
        ChainCoinRow.height.is_not(None),
    )
    .order_by(ChainCoinRow.amount_sats.desc(), ChainCoinRow.txid.desc(), ChainCoinRow.vout.desc())
)
