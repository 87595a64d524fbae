"""Which tokens are a workspace's beside those that it made: what its vaults hold or own of others', by the index."""

from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session

from custody.server.domain.caller import WorkspaceAccess
from custody.server.service.proposals.token_coins import ADDRESS_INDEX
from custody.server.store.models import Contract, Proposal, TokenCell, Vault, WatchedScript
from multisig import RECEIVE
from multisig.tokens.machine import Cell


def is_held(db: Session, access: WorkspaceAccess, contract: Contract) -> bool:
    """Whether the ``address`` of one of the workspace's vaults has any of it, or owns it, after the last block that was read."""
    own = (
        select(WatchedScript.script_pubkey)
        .join(Vault, Vault.id == WatchedScript.vault_id)
        .where(
            Vault.workspace_id == access.workspace_id,
            WatchedScript.chain == contract.chain,
            WatchedScript.branch == RECEIVE,
            WatchedScript.address_index == ADDRESS_INDEX,
        )
    )
    versions = select(Proposal.txid_expected).where(Proposal.family_id == contract.deploy_family_id)
    cell = exists().where(TokenCell.chain == contract.chain, TokenCell.contract_id.in_(versions))
    holds = cell.where(TokenCell.cell == int(Cell.BALANCE), TokenCell.holder.in_(own))
    owns = cell.where(TokenCell.cell == int(Cell.OWNER), TokenCell.holder == b"", TokenCell.data.in_(own))
    return bool(db.scalar(select(or_(holds, owns))))
