"""Stored proposals as the wire's record, for many at once."""

from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, cast

from sqlalchemy import BindParameter, Select, bindparam, func, select
from sqlalchemy.orm import Session

from custody.schemas import proposals as wire
from custody.server.service.proposals.originals import may_be_replaced
from custody.server.service.proposals.proposed_calls import NO_TOKEN, ProposedCall, proposed_calls
from custody.server.store.models import (
    ChainBlock,
    Decision,
    Proposal,
    ProposalInput,
    Signature,
    Vault,
    VaultSigner,
)
from multisig import FeeRate


class Place(NamedTuple):
    """A key whose decision counts, and whose it is."""

    key_id: str
    user_id: int


DecisionWord = Literal["approve", "reject"]


def proposal_records(db: Session, proposals: Sequence[Proposal]) -> list[wire.Proposal]:
    """In the order given."""
    ids = [proposal.id for proposal in proposals]
    seats = _seats(db, {proposal.vault_id for proposal in proposals})
    decisions = _decisions(db, ids)
    collected = collected_signatures(db, ids)
    tips = _tips(db, {proposal.vault_id for proposal in proposals})
    of_tokens = proposed_calls(db, proposals)
    return [
        _record(
            proposal,
            [_signer(seat, decisions[proposal.id].get(seat.key_id)) for seat in _whose(proposal, seats)],
            collected[proposal.id],
            tips.get(proposal.vault_id, 0),
            of_tokens.get(proposal.id, NO_TOKEN),
        )
        for proposal in proposals
    ]


def collected_signatures(db: Session, proposal_ids: Iterable[str]) -> dict[str, int]:
    """How many signatures every input has at least: progress is the minimum over the inputs."""
    found = db.execute(_COLLECTED, {"ids": list(proposal_ids)})
    return {proposal_id: int(least) for proposal_id, least in found}


def _least_of_inputs() -> Select[str, int]:
    per_input = (
        select(ProposalInput.proposal_id, func.count(Signature.public_key).label("signatures"))
        .outerjoin(
            Signature,
            (Signature.proposal_id == ProposalInput.proposal_id)
            & (Signature.input_index == ProposalInput.input_index),
        )
        .where(ProposalInput.proposal_id.in_(_IDS))
        .group_by(ProposalInput.proposal_id, ProposalInput.input_index)
        .subquery()
    )
    return select(per_input.c.proposal_id, func.min(per_input.c.signatures)).group_by(per_input.c.proposal_id)


_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_COLLECTED = _least_of_inputs()
_SEATS = (
    select(VaultSigner)
    .where(VaultSigner.vault_id.in_(_IDS))
    .order_by(VaultSigner.vault_id, VaultSigner.key_index)
)
_DECISIONS = select(Decision).where(Decision.proposal_id.in_(_IDS))
_TIPS = (
    select(Vault.id, func.max(ChainBlock.height))
    .join(ChainBlock, ChainBlock.chain == Vault.chain)
    .where(Vault.id.in_(_IDS))
    .group_by(Vault.id)
)


def _seats(db: Session, vault_ids: Iterable[str]) -> dict[str, list[VaultSigner]]:
    found: dict[str, list[VaultSigner]] = defaultdict(list)
    for seat in db.scalars(_SEATS, {"ids": list(vault_ids)}):
        found[seat.vault_id].append(seat)
    return found


def _whose(proposal: Proposal, seats: Mapping[str, Sequence[VaultSigner]]) -> list[Place]:
    """A forward has one signer, its owner."""
    if proposal.profile_key_id is not None:
        return [Place(proposal.profile_key_id, proposal.created_by)]
    return [Place(seat.key_id, seat.user_id) for seat in seats[proposal.vault_id]]


def _decisions(db: Session, proposal_ids: Iterable[str]) -> dict[str, dict[str, Decision]]:
    found: dict[str, dict[str, Decision]] = defaultdict(dict)
    for decision in db.scalars(_DECISIONS, {"ids": list(proposal_ids)}):
        found[decision.proposal_id][decision.key_id] = decision
    return found


def _tips(db: Session, vault_ids: Iterable[str]) -> dict[str, int]:
    found = db.execute(_TIPS, {"ids": list(vault_ids)})
    return {vault_id: int(height) for vault_id, height in found}


def _signer(seat: Place, decision: Decision | None) -> wire.ProposalSigner:
    if decision is None:
        return wire.ProposalSigner(key_id=seat.key_id, is_signed=False, user_id=str(seat.user_id))
    is_signed = decision.decision == "approve" and decision.is_complete
    return wire.ProposalSigner(
        key_id=seat.key_id,
        is_signed=is_signed,
        user_id=str(seat.user_id),
        signed_at=decision.decided_at if is_signed else None,
        decision=cast("DecisionWord", decision.decision),
    )


def rate_text(rate: FeeRate) -> str:
    """sat/vB in plain decimals, without trailing zeros."""
    return f"{rate.sat_per_vb.normalize():f}"


def _record(
    proposal: Proposal,
    signers: list[wire.ProposalSigner],
    collected: int,
    tip_height: int,
    of_token: ProposedCall,
) -> wire.Proposal:
    height = proposal.block_height
    return wire.Proposal(
        psbt_id=proposal.id,
        workspace_id=str(proposal.workspace_id),
        vault_id=proposal.vault_id,
        tx_type=wire.TxType(proposal.tx_type),
        status=wire.ProposalStatus(proposal.status),
        contract_uid=of_token.contract_uid,
        call_uid=of_token.call_uid,
        decoded_call=of_token.decoded,
        created_by=str(proposal.created_by),
        description=proposal.description,
        psbt_base64=b64encode(proposal.psbt).decode(),
        txid=proposal.txid,
        txid_expected=proposal.txid_expected,
        recipients=proposal.recipients,
        amounts_sats=proposal.amounts_sats,
        fee_sats=proposal.fee_sats,
        fee_rate=rate_text(FeeRate(proposal.fee_rate_sat_per_kvb)),
        op_return=None if proposal.op_return_hex is None else f"0x{proposal.op_return_hex}",
        contract_ids=proposal.contract_ids or of_token.contract_ids,
        m=proposal.m,
        n=proposal.n,
        signers=signers,
        collected_signatures=collected,
        required_signatures=proposal.m,
        expires_at=proposal.expires_at,
        created_at=proposal.created_at,
        updated_at=proposal.updated_at,
        confirmations=0 if height is None else max(1, tip_height - height + 1),
        block_hash=proposal.block_hash,
        block_height=height,
        failure_code=proposal.failure_code,
        failure_reason=proposal.failure_reason,
        replaces_psbt_id=proposal.replaces_id,
        replaced_by_psbt_id=proposal.replaced_by_id,
        may_be_replaced=may_be_replaced(proposal),
    )
