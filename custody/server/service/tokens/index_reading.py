"""What the index knows, for whoever reads it: how far it is, and single cells. What it does not know is never shown as zero."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import Session

from custody.server.domain.errors import IndexBehind
from custody.server.store.models import ChainBlock, Contract, Proposal, TokenBlock, TokenCell
from multisig.tokens.machine import Cell

# The watcher and the indexer look at the chain on their own, and a new block is in one a moment before the other.
BLOCKS_ON_THE_WAY = 1


def require_current(db: Session, chain: str) -> None:
    """Raises IndexBehind where the index is so far behind the chain, or on a branch that the chain has left, that its figures are of
    another day.
    """
    trouble = why_behind(db, chain)
    if trouble is not None:
        raise IndexBehind(trouble)


def why_behind(db: Session, chain: str) -> str | None:
    """In words; None where it is not.

    A height says nothing of the branch: after a reorganisation that the watcher saw, the index may stand as high on the one that
    was left. So both must have the same block where the lower of them is.
    """
    tip = db.scalar(select(func.max(ChainBlock.height)).where(ChainBlock.chain == chain))
    if tip is None:
        return None
    read = indexed_height(db, chain)
    if read < 0 or read < tip - BLOCKS_ON_THE_WAY:
        upto = "nothing" if read < 0 else f"block {read}"
        return f"The index of tokens is behind: it has read {upto} of {tip}."
    if shared_height(db, chain) < min(read, tip):
        return f"The index of tokens is behind: the chain has another block {min(read, tip)} by now."
    return None


def indexed_height(db: Session, chain: str) -> int:
    """Of the last block that the index has read; -1 where it has read none."""
    found = db.scalar(select(func.max(TokenBlock.height)).where(TokenBlock.chain == chain))
    return -1 if found is None else found


def shared_height(db: Session, chain: str) -> int:
    """Of the last block that the index has read and the watcher's chain has; -1 where they share none."""
    query = (
        select(ChainBlock.height)
        .join(
            TokenBlock,
            and_(
                TokenBlock.chain == ChainBlock.chain,
                TokenBlock.height == ChainBlock.height,
                TokenBlock.block_hash == ChainBlock.block_hash,
            ),
        )
        .where(ChainBlock.chain == chain)
        .order_by(ChainBlock.height.desc())
        .limit(1)
    )
    found = db.scalar(query)
    return -1 if found is None else found


def contracts_by_id(db: Session, chain: str, contract_ids: Collection[str]) -> dict[str, Contract]:
    """The tokens that were made here, by their id on chain: the txid of a version of the deployment."""
    if not contract_ids:
        return {}
    query = (
        select(Proposal.txid_expected, Contract)
        .join(Contract, Contract.deploy_family_id == Proposal.family_id)
        .where(Contract.chain == chain, Proposal.txid_expected.in_(contract_ids))
    )
    return dict(db.execute(query).all())


def numbers_of(
    db: Session, chain: str, contract_ids: Collection[str], cell: Cell, holder: bytes = b""
) -> dict[str, int]:
    """That cell of each token; absent where it holds nothing."""
    return (
        _numbers(db, TokenCell.contract_id.in_(contract_ids), *_at(chain, cell, holder))
        if contract_ids
        else {}
    )


def holdings_of(db: Session, chain: str, holder: bytes) -> dict[str, int]:
    """Raw units by contract, of every token that the output script holds."""
    return _numbers(db, *_at(chain, Cell.BALANCE, holder))


def owned_by(db: Session, chain: str, script: bytes) -> set[str]:
    """The tokens that the output script owns by now."""
    query = select(TokenCell.contract_id).where(*_at(chain, Cell.OWNER), TokenCell.data == script)
    return set(db.scalars(query))


def owners_of(db: Session, chain: str, contract_ids: Collection[str]) -> dict[str, bytes]:
    """Output scripts by contract; a token whose state is not known has none."""
    query = select(TokenCell.contract_id, TokenCell.data).where(
        *_at(chain, Cell.OWNER), TokenCell.contract_id.in_(contract_ids)
    )
    return {contract_id: owner for contract_id, owner in db.execute(query) if owner is not None}


def listed_by(db: Session, chain: str, contract_ids: Collection[str]) -> dict[str, list[bytes]]:
    """The output scripts on each token's list, in the order of their bytes. The owner is not among them."""
    query = (
        select(TokenCell.contract_id, TokenCell.holder)
        .where(
            TokenCell.chain == chain,
            TokenCell.contract_id.in_(contract_ids),
            TokenCell.cell == int(Cell.LISTED),
        )
        .order_by(TokenCell.contract_id, TokenCell.holder)
    )
    found: dict[str, list[bytes]] = {}
    for contract_id, holder in db.execute(query):
        found.setdefault(contract_id, []).append(holder)
    return found


def _at(chain: str, cell: Cell, holder: bytes = b"") -> tuple[ColumnElement[bool], ...]:
    return TokenCell.chain == chain, TokenCell.holder == holder, TokenCell.cell == int(cell)


def _numbers(db: Session, *where: ColumnElement[bool]) -> dict[str, int]:
    found = db.execute(select(TokenCell.contract_id, TokenCell.number).where(*where))
    return {contract_id: number for contract_id, number in found if number is not None}
