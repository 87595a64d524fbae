"""Tokens, and the calls on them, as the specification's records."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from custody.schemas import asset_tokens as wire
from custody.schemas.asset_tokens import CONTRACT, CONTRACT_CALLS, CONTRACTS, WORKSPACE_CONTRACTS
from custody.schemas.call import Page
from custody.schemas.common import Listed, Unreadable
from custody.schemas.proposals import ProposalStatus, TxType
from custody.server.calls import Ctx, serves
from custody.server.errors import NotFound
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.shown import shape_of, shown
from custody.server.store.models import (
    ContractCallRow,
    ContractRow,
    DecisionRow,
    ProposalRow,
    TokenCellRow,
    VaultRow,
    VaultSignerRow,
)
from custody.server.store.store import going_on
from custody.server.tokens.index_reading import state_of, supplies_of
from custody.server.tokens.status import OF_CONTRACT, TokenFamily, token_families
from custody.server.vaults.stored import vault_in
from multisig import Network, decode_address
from multisig.tokens import token_amount
from multisig.tokens.machine import Cell

# A contract's id on chain, once its deployment is confirmed.
_DEPLOYED_AS = (
    select(ProposalRow.txid_expected)
    .where(
        ProposalRow.family_id == ContractRow.deploy_family_id,
        ProposalRow.tx_type == TxType.DEPLOY.value,
        ProposalRow.status == ProposalStatus.CONFIRMED.value,
        # In a join SQLite would begin with all cells of the chain.
        exists()
        .where(
            TokenCellRow.chain == ContractRow.chain,
            TokenCellRow.contract_id == ProposalRow.txid_expected,
            TokenCellRow.cell == int(Cell.DEPLOYED),
        )
        .correlate(ContractRow, ProposalRow),
    )
    .limit(1)
    .correlate(ContractRow)
    .scalar_subquery()
)


def contract_in(
    db: Session, access: WorkspaceAccess, contract_uid: int
) -> tuple[ContractRow, str | None, str | None]:
    """A token that the workspace made, or that its vaults hold or own now; its id on chain, once its
    deployment is confirmed; and the workspace's vault that holds or owns it, None where the workspace made
    it. Raises NotFound for all others (P24).
    """
    query = select(ContractRow, _DEPLOYED_AS).where(ContractRow.uid == contract_uid)
    contract, contract_id = db.execute(query).one_or_none() or (None, None)
    if contract is not None and contract.workspace_id == access.workspace_id:
        return contract, contract_id, None
    vault_id = None if contract is None else holding_vault(db, access, contract)
    if contract is None or vault_id is None:
        raise NotFound("There is no such token in this workspace.")
    return contract, contract_id, vault_id


@serves(CONTRACT)
def contract(ctx: Ctx, query: wire.ContractQuery) -> wire.Contract:
    """The record with the bytecode, and with the deployment's transaction once it was broadcast. Of a token
    that another workspace made it has only what the chain and the bytecode say. Raises NotFound.
    """
    db, access = ctx.db, ctx.access
    contract, _contract_id, vault_id = contract_in(db, access, query.contract_uid)
    families = token_families(db, contract.chain, [contract.deploy_family_id])
    family = families[contract.deploy_family_id]
    if vault_id is None:
        (record,) = _own_records(db, access, [contract], families)
    else:
        supplies = supplies_of(db, contract.chain, _ids_of([family]))
        # Without its maker's vault, proposal and people (P24).
        record = _contract_record(access.network, contract, family, [], supplies)
        record = record.model_copy(update={"vault_id": vault_id, "deploy_psbt_id": None})
    raw = state = None
    if family.best.txid is not None:
        raw = db.scalar(select(ProposalRow.final_tx).where(ProposalRow.id == family.best.id))
        state = state_of(db, contract.chain, family.best.txid)
    if vault_id is not None and state is not None:
        # The address of another workspace's vault (P24).
        state = state.model_copy(update={"owner_address": None})
    return record.model_copy(
        update={
            "bytecode": contract.bytecode.decode(),
            "deployment_hex": None if raw is None else raw.hex(),
            "state": state,
        }
    )


@serves(CONTRACTS)
@serves(WORKSPACE_CONTRACTS)
def contracts(ctx: Ctx, wanted: wire.WorkspaceContractsQuery | wire.ContractsQuery) -> Listed[wire.Contract]:
    """The tokens that were made from the vault, or in the workspace, the oldest first. Raises NotFound
    (vault).
    """
    db, access = ctx.db, ctx.access
    query = (
        select(ContractRow).where(ContractRow.workspace_id == access.workspace_id).order_by(ContractRow.uid)
    )
    if isinstance(wanted, wire.ContractsQuery):
        query = query.where(ContractRow.vault_id == vault_in(db, access, wanted.vault_id).id)
    if wanted.after is not None:
        query = query.where(ContractRow.uid > wanted.after)
    rows = db.scalars(query.limit(wanted.limit)).all()

    def records(some: Sequence[ContractRow]) -> list[wire.Contract]:
        families = token_families(db, access.chain, [each.deploy_family_id for each in some])
        return _own_records(db, access, some, families)

    return shown(rows, records, "contract_uid", lambda each: each.uid)


def _own_records(
    db: Session,
    access: WorkspaceAccess,
    contracts: Sequence[ContractRow],
    families: Mapping[str, TokenFamily],
) -> list[wire.Contract]:
    signers = _signers(db, contracts, families)
    supplies = supplies_of(db, access.chain, _ids_of(families.values()))
    return [
        _contract_record(
            access.network, contract, families[contract.deploy_family_id], signers[contract.uid], supplies
        )
        for contract in contracts
    ]


def _ids_of(families: Iterable[TokenFamily]) -> list[str]:
    """The contracts' ids on chain, of those that were broadcast."""
    return [family.best.txid for family in families if family.best.txid is not None]


def _contract_record(
    network: str,
    contract: ContractRow,
    family: TokenFamily,
    signers: list[wire.ContractSigner],
    supplies: Mapping[str, int],
) -> wire.Contract:
    """Before ``init`` the supply shown is the one that ``init`` will create."""
    is_broadcast = family.best.txid is not None
    return shape_of(
        wire.Contract,
        contract,
        contract_uid=contract.uid,
        contract_id=family.best.txid,
        symbol=contract.ticker,
        total_supply=str(token_amount(supplies.get(family.best.txid or "", contract.total_supply))),
        max_supply=str(token_amount(contract.max_supply)),
        status=OF_CONTRACT[family.status],
        bytecode_hash=contract.bytecode_hash.hex() if is_broadcast else None,
        network=network if is_broadcast else None,
        deploy_psbt_id=family.best.id if is_broadcast else None,
        signers=signers,
        bytecode=None,
    )


def _signers(
    db: Session, contracts: Collection[ContractRow], families: Mapping[str, TokenFamily]
) -> dict[int, list[wire.ContractSigner]]:
    """By contract, the signers of the deployment, and which of them signed its best version."""
    signers = defaultdict(list)
    wanted = {contract.vault_id for contract in contracts}
    query = (
        select(VaultSignerRow).where(VaultSignerRow.vault_id.in_(wanted)).order_by(VaultSignerRow.key_index)
    )
    for signer in db.scalars(query):
        signers[signer.vault_id].append(signer)
    versions = [family.best.id for family in families.values()]
    signed = set(
        db.execute(
            select(DecisionRow.proposal_id, DecisionRow.key_id).where(
                DecisionRow.proposal_id.in_(versions), DecisionRow.is_complete
            )
        )
    )
    return {
        contract.uid: [
            wire.ContractSigner(
                key_id=signer.key_id,
                is_signed=(families[contract.deploy_family_id].best.id, signer.key_id) in signed,
                user_id=str(signer.user_id),
            )
            for signer in signers[contract.vault_id]
        ]
        for contract in contracts
    }


def holding_vault(db: Session, access: WorkspaceAccess, contract: ContractRow) -> str | None:
    """The id of the workspace's vault whose ``address`` owns the token, or else of the oldest one that holds
    some of it, as of the last block that was read; None where there is none.
    """
    vaults = (
        select(VaultRow.address, VaultRow.id)
        .where(VaultRow.workspace_id == access.workspace_id, VaultRow.chain == contract.chain)
        .order_by(VaultRow.created_at, VaultRow.id)
    )
    # As values, so that cells are looked up by their whole key: a token may have any number of holders.
    own = {
        decode_address(address, Network(contract.chain)): vault_id for address, vault_id in db.execute(vaults)
    }
    versions = select(ProposalRow.txid_expected).where(ProposalRow.family_id == contract.deploy_family_id)
    of_token = (TokenCellRow.chain == contract.chain, TokenCellRow.contract_id.in_(versions))
    owner = db.scalars(
        select(TokenCellRow.data).where(
            *of_token, TokenCellRow.cell == int(Cell.OWNER), TokenCellRow.holder == b""
        )
    ).first()
    if owner in own:
        return own[owner]
    held = select(TokenCellRow.holder).where(
        *of_token, TokenCellRow.cell == int(Cell.BALANCE), TokenCellRow.holder.in_(own)
    )
    holders = set(db.scalars(held))
    return next((vault_id for script, vault_id in own.items() if script in holders), None)


@serves(CONTRACT_CALLS)
def contract_calls(ctx: Ctx, wanted: wire.ContractCallsQuery) -> Page[wire.ContractCall | Unreadable]:
    """The workspace's own calls, also on tokens of others; never the calls of other workspaces. Raises
    NotFound (token, vault).
    """
    db, access = ctx.db, ctx.access
    query = select(ContractCallRow).where(ContractCallRow.workspace_id == access.workspace_id)
    if wanted.contract_uid is not None:
        query = query.where(
            ContractCallRow.contract_uid == contract_in(db, access, wanted.contract_uid)[0].uid
        )
    if wanted.vault_id is not None:
        query = query.where(ContractCallRow.vault_id == vault_in(db, access, wanted.vault_id).id)
    total = db.scalar(query.with_only_columns(func.count())) or 0
    after = None if wanted.after is None else (wanted.after,)
    listed = going_on(query, (ContractCallRow.uid,), after, newest=wanted.order == "newest")
    rows = db.scalars(listed.limit(wanted.limit + 1)).all()

    def records(some: Sequence[ContractCallRow]) -> list[wire.ContractCall]:
        families = token_families(db, access.chain, [call.family_id for call in some])
        return [_call_record(call, families[call.family_id]) for call in some]

    items = shown(rows[: wanted.limit], records, "UID", lambda call: call.uid)
    return Page(items, total, has_more=len(rows) > wanted.limit)


def _call_record(call: ContractCallRow, family: TokenFamily) -> wire.ContractCall:
    return shape_of(
        wire.ContractCall,
        call,
        status=family.status,
        wallet_id=call.vault_id,
        psbt_id=family.best.id,
        tx_id=family.best.txid,
        failure_reason=family.reason,
        updated_at=family.updated_at,
        confirmed_at=family.confirmed_at,
    )
