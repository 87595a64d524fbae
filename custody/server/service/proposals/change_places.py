"""Which address the next change goes to: one that nobody was given yet, and that a wallet restoring the vault finds."""

from sqlalchemy import bindparam, literal_column, select
from sqlalchemy.orm import Session

from custody.server.service.stored_vaults import GAP
from custody.server.store.models import ChainCoin, Vault
from multisig import CHANGE


def use_change_index(db: Session, vault: Vault, index: int) -> int:
    """The vault's next one. A proposal's change goes there: the next one's to the next, unless too many were proposed and never sent.

    A wallet that restores the vault stops looking after ``GAP`` addresses that nobody used. Whoever makes proposals and ends
    them must not bring anybody's change beyond that: then an address is given twice, which only tells that both are ours.
    """
    following = index + 1
    if following < GAP or _is_used_from(db, vault, following - GAP):
        vault.next_change_index = max(vault.next_change_index, following)
    return vault.next_change_index


def _is_used_from(db: Session, vault: Vault, index: int) -> bool:
    """Whether the chain shows a coin at this change address, or at a later one."""
    return db.scalar(_USED, {"vault_id": vault.id, "least": index}) is not None


_USED = (
    select(ChainCoin.vout)
    .where(
        ChainCoin.vault_id == bindparam("vault_id"),
        # As it stands in the index's condition, or SQLite would not take it.
        ChainCoin.branch == literal_column(str(CHANGE)),
        ChainCoin.address_index >= bindparam("least"),
    )
    .limit(1)
)
