"""Which tokens are a workspace's beside those that it made: what its vaults hold or own of others', by the index."""

from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session

from custody.server.domain.caller import WorkspaceAccess
from custody.server.store.models import Contract, Proposal, TokenCell, Vault
from multisig import Network, decode_address
from multisig.tokens.machine import Cell


def is_held(db: Session, access: WorkspaceAccess, contract: Contract) -> bool:
    """Whether the ``address`` of one of the workspace's vaults has any of it, or owns it, after the last block that was read."""
    vaults = select(Vault.address).where(
        Vault.workspace_id == access.workspace_id, Vault.chain == contract.chain
    )
    # As values, so that each cell is found by its whole key: a token may have any number of holders.
    own = [decode_address(address, Network(contract.chain)) for address in db.scalars(vaults)]
    versions = select(Proposal.txid_expected).where(Proposal.family_id == contract.deploy_family_id)
    cell = exists().where(TokenCell.chain == contract.chain, TokenCell.contract_id.in_(versions))
    holds = cell.where(TokenCell.cell == int(Cell.BALANCE), TokenCell.holder.in_(own))
    owns = cell.where(TokenCell.cell == int(Cell.OWNER), TokenCell.holder == b"", TokenCell.data.in_(own))
    return bool(db.scalar(select(or_(holds, owns))))
