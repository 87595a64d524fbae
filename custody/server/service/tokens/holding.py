"""Which tokens are a workspace's beside those that it made: what its vaults hold or own of others', by the index."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.domain.caller import WorkspaceAccess
from custody.server.store.models import Contract, Proposal, TokenCell, Vault
from multisig import Network, decode_address
from multisig.tokens.machine import Cell


def holding_vault(db: Session, access: WorkspaceAccess, contract: Contract) -> str | None:
    """The id of the workspace's vault whose ``address`` owns the token, else of the oldest that has any of it, after the last block
    that was read. None where there is none.
    """
    vaults = (
        select(Vault.address, Vault.id)
        .where(Vault.workspace_id == access.workspace_id, Vault.chain == contract.chain)
        .order_by(Vault.created_at, Vault.id)
    )
    # As values, so that each cell is found by its whole key: a token may have any number of holders.
    own = {
        decode_address(address, Network(contract.chain)): vault_id for address, vault_id in db.execute(vaults)
    }
    versions = select(Proposal.txid_expected).where(Proposal.family_id == contract.deploy_family_id)
    of_token = (TokenCell.chain == contract.chain, TokenCell.contract_id.in_(versions))
    owner = db.scalars(
        select(TokenCell.data).where(*of_token, TokenCell.cell == int(Cell.OWNER), TokenCell.holder == b"")
    ).first()
    if owner in own:
        return own[owner]
    held = select(TokenCell.holder).where(
        *of_token, TokenCell.cell == int(Cell.BALANCE), TokenCell.holder.in_(own)
    )
    holders = set(db.scalars(held))
    return next((vault_id for script, vault_id in own.items() if script in holders), None)
