"""Storing a proposal: its record, its inputs and its change address."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus, TxType
from custody.server.domain.timing import PROPOSAL_LIFETIME
from custody.server.service.network.watching import watch_branch
from custody.server.service.proposals.change_places import use_change_index
from custody.server.service.proposals.drafting import Draft
from custody.server.store.models import Proposal, ProposalInput, Vault, table_of
from multisig import CHANGE, FeeRate, Sats


@dataclass(frozen=True)
class Terms:
    """What a proposal says beside its transaction. ``movement``: what leaves the vault, the fee included."""

    id: str
    family_id: str
    created_by: int
    description: str | None
    movement: Sats
    proposed_at: datetime
    tx_type: TxType = TxType.SEND
    replaces_id: str | None = None
    recipients: tuple[str, ...] = ()
    amounts: tuple[int, ...] = ()
    op_return_hex: str | None = None
    contract_ids: tuple[str, ...] = ()


def store_proposal(db: Session, vault: Vault, draft: Draft, terms: Terms) -> Proposal:
    """PENDING. Its coins are the caller's to lock."""
    proposal = _row(vault, draft, terms)
    db.add(proposal)
    _keep_change_address(db, vault, draft)
    db.flush()
    db.execute(_STORE_INPUTS, _inputs(terms.id, draft))
    return proposal


def _row(vault: Vault, draft: Draft, terms: Terms) -> Proposal:
    return Proposal(
        id=terms.id,
        family_id=terms.family_id,
        workspace_id=vault.workspace_id,
        vault_id=vault.id,
        tx_type=terms.tx_type.value,
        status=ProposalStatus.PENDING.value,
        created_by=terms.created_by,
        description=terms.description,
        psbt=draft.psbt.to_bytes(),
        txid_expected=draft.psbt.tx.txid,
        recipients=list(terms.recipients),
        amounts_sats=list(terms.amounts),
        fee_sats=draft.selection.fee,
        fee_rate_sat_per_kvb=FeeRate.of(draft.selection.fee, draft.vsize).sat_per_kvb,
        op_return_hex=terms.op_return_hex,
        contract_ids=list(terms.contract_ids),
        m=vault.m,
        n=vault.n,
        movement_sats=terms.movement,
        replaces_id=terms.replaces_id,
        keeps_coins=False,
        expires_at=terms.proposed_at + PROPOSAL_LIFETIME,
        created_at=terms.proposed_at,
        updated_at=terms.proposed_at,
    )


_STORE_INPUTS = insert(table_of(ProposalInput))


def _inputs(proposal_id: str, draft: Draft) -> list[dict[str, object]]:
    return [
        {
            "proposal_id": proposal_id,
            "input_index": index,
            "txid": holding.outpoint.txid,
            "vout": holding.outpoint.vout,
            "amount_sats": holding.candidate.amount,
            "branch": holding.branch,
            "address_index": holding.address_index,
        }
        for index, holding in enumerate(draft.holdings)
    ]


def _keep_change_address(db: Session, vault: Vault, draft: Draft) -> None:
    """A replacement's change goes where the replaced one's went; else to an address that nobody was given yet."""
    if draft.change_index is not None and draft.change_index >= vault.next_change_index:
        use_change_index(db, vault, draft.change_index)
        watch_branch(db, vault, CHANGE, vault.next_change_index)
