"""Which address the next change goes to: one that nobody was given yet, and that a wallet restoring the vault finds."""

from sqlalchemy import bindparam, literal_column, select, update
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import set_committed_value

from custody.server.service.network.watching import GAP, last_question
from custody.server.service.vaults.moving import Moved
from custody.server.store.models import ChainCoin, Vault, table_of
from custody.server.store.statements import AnyQuestion, Change, Query
from multisig import CHANGE


def use_change_index(db: Session, vault: Moved, index: int) -> int:
    """The vault's next one. A proposal's change goes there: the next one's to the next, unless too many were proposed and never sent.

    A wallet that restores the vault stops looking after ``GAP`` addresses that nobody used. Whoever makes proposals and ends
    them must not bring anybody's change beyond that: then an address is given twice, which only tells that both are ours.
    """
    following = index + 1
    if following < GAP or _is_used_from(db, vault, following - GAP):
        following = max(vault.next_change_index, following)
        _MOVE.later(db, {"moved_vault": vault.id, "following": following})
        if isinstance(vault, Vault):
            set_committed_value(vault, "next_change_index", following)
        return following
    return vault.next_change_index


def _is_used_from(db: Session, vault: Moved, index: int) -> bool:
    """Whether the chain shows a coin at this change address, or at a later one."""
    return bool(_USED.all(db, {"vault_id": vault.id, "least": index}))


def change_questions(vault_id: str, index: int) -> tuple[AnyQuestion, ...]:
    """What taking this index asks."""
    last, first_that_matters = last_question(vault_id, CHANGE), index + 1 - GAP
    if first_that_matters < 0:
        return (last,)
    return _USED.of({"vault_id": vault_id, "least": first_that_matters}), last


# Put together once: every proposal asks it, while other writers wait.
_VAULTS = table_of(Vault)
_MOVE = Change(
    update(_VAULTS)
    .where(_VAULTS.c.id == bindparam("moved_vault"))
    .values(next_change_index=bindparam("following"))
)
_USED = Query(
    select(ChainCoin.vout)
    .where(
        ChainCoin.vault_id == bindparam("vault_id"),
        # As it stands in the index's condition, or SQLite would not take it.
        ChainCoin.branch == literal_column(str(CHANGE)),
        ChainCoin.address_index >= bindparam("least"),
    )
    .limit(1)
)
