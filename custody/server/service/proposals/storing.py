"""Storing a proposal: its record, its inputs and its change address."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, insert, literal_column, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus, TxType
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.domain.selection import PROPOSAL_LIFETIME
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.waiting import tell_waiting
from custody.server.service.proposals.bounds import (
    require_listed,
    require_move,
    require_signers,
    require_thawed,
)
from custody.server.service.proposals.coins import Utxo
from custody.server.service.proposals.drafting import Draft
from custody.server.service.requests.changes import Changes, OutdatedDraft
from custody.server.service.stored_vaults import GAP, index_after, watch_branch
from custody.server.service.webhook_events import event_data
from custody.server.store.models import ChainCoinRow, ProposalInputRow, ProposalRow, VaultRow, VaultSignerRow
from custody.server.store.store import duplicates_refused
from multisig import CHANGE, FeeRate, Sats


@dataclass(frozen=True)
class Terms:
    """A proposal's columns beside its transaction. ``movement``: what leaves the vault, the fee included.
    ``counts_for_role``: whether it counts for its maker's role too, or for the vault alone. ``sweeps``: it
    sends its coins whole.
    """

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
    counts_for_role: bool = True
    sweeps: bool = False


def store_proposal(db: Session, vault: VaultRow, draft: Draft, terms: Terms) -> ProposalRow:
    """Stores a PENDING proposal. The caller locks its coins.

    Raises Outdated where another proposal has this transaction; VaultFrozen, NotInAddressBook,
    TooFewSigners; StateConflict where the vault is replaced, except for moves, calls and new versions.
    """
    require_thawed(db, vault)
    if terms.replaces_id is None and terms.tx_type is not TxType.CALL:
        require_move(db, vault, draft.scripts)
    require_listed(db, vault, draft.raw)
    require_signers(db, vault, draft.scripts, terms.created_by, terms.family_id)
    proposal = ProposalRow(
        id=terms.id,
        family_id=terms.family_id,
        workspace_id=vault.workspace_id,
        vault_id=vault.id,
        tx_type=terms.tx_type.value,
        status=ProposalStatus.PENDING.value,
        created_by=terms.created_by,
        description=terms.description,
        psbt=draft.raw,
        txid_expected=draft.txid,
        recipients=list(terms.recipients),
        amounts_sats=list(terms.amounts),
        fee_sats=draft.selection.fee,
        fee_rate_sat_per_kvb=FeeRate.of(draft.selection.fee, draft.vsize).sat_per_kvb,
        op_return_hex=terms.op_return_hex,
        contract_ids=list(terms.contract_ids),
        m=vault.m,
        n=vault.n,
        movement_sats=terms.movement,
        counts_for_role=terms.counts_for_role,
        sweeps=terms.sweeps,
        replaces_id=terms.replaces_id,
        expires_at=terms.proposed_at + PROPOSAL_LIFETIME,
        created_at=terms.proposed_at,
        updated_at=terms.proposed_at,
    )
    store_with_inputs(db, proposal, draft.utxos)
    _keep_change_address(db, vault, draft)
    # Also the maker: a program may have proposed it in their name.
    signers = select(VaultSignerRow.user_id).where(VaultSignerRow.vault_id == vault.id)
    tell_waiting(db, signers, terms.proposed_at)
    return proposal


def store_with_inputs(db: Session, proposal: ProposalRow, utxos: Sequence[Utxo]) -> None:
    """``utxos``: its coins, in the order of the PSBT's inputs. Raises Outdated where another proposal has
    this transaction.
    """
    db.add(proposal)
    with duplicates_refused(OutdatedDraft("Another proposal has the same transaction.")):
        db.flush()
    db.execute(insert(ProposalInputRow), [_input(proposal.id, *place) for place in enumerate(utxos)])


def record_proposal(
    db: Session,
    audit: AuditLog,
    changes: Changes,
    caller: Caller,
    access: WorkspaceAccess,
    proposal: ProposalRow,
    what: str,
) -> None:
    """Records it in the audit log, notifies webhooks and wakes long polls."""
    said, told = f"proposal {proposal.id} of vault {proposal.vault_id}, {what}", event_data(proposal)
    audit.record(db, caller, Category.PROPOSALS, "PROPOSAL_CREATED", said, access=access, told=told)
    changes.moved(db, proposal.workspace_id)


def _input(proposal_id: str, index: int, utxo: Utxo) -> dict[str, object]:
    return {
        "proposal_id": proposal_id,
        "input_index": index,
        "txid": utxo.txid,
        "vout": utxo.vout,
        "amount_sats": utxo.amount,
        "branch": utxo.branch,
        "address_index": utxo.address_index,
    }


def _keep_change_address(db: Session, vault: VaultRow, draft: Draft) -> None:
    """Advances the vault's change index, unless a replacement reused the original's change address."""
    if draft.change_index is not None and draft.change_index >= vault.next_change_index:
        watch_branch(db, vault, CHANGE, use_change_index(db, vault, draft.change_index))


def use_change_index(db: Session, vault: VaultRow, index: int) -> int:
    """Advances and returns the vault's next change index after a proposal used ``index``.

    A wallet that restores the vault stops scanning after ``GAP`` unused addresses. Proposals that are never
    sent must not move the change beyond that: then an address is used twice, which only reveals that both
    outputs are ours.
    """
    following = index_after(index)
    if following < GAP or _is_used_from(db, vault, following - GAP):
        vault.next_change_index = max(vault.next_change_index, following)
    return vault.next_change_index


def _is_used_from(db: Session, vault: VaultRow, index: int) -> bool:
    """Whether the chain shows a coin at this change address or a later one."""
    return db.scalar(_USED, {"vault_id": vault.id, "least": index}) is not None


_USED = (
    select(ChainCoinRow.vout)
    .where(
        ChainCoinRow.vault_id == bindparam("vault_id"),
        # A literal, as in the index's condition: otherwise SQLite would not use the index.
        ChainCoinRow.branch == literal_column(str(CHANGE)),
        ChainCoinRow.address_index >= bindparam("least"),
    )
    .limit(1)
)
