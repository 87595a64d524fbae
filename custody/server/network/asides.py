"""A coin that is set aside, and gone from the chain because another version of the payment that made it took
its place: what that one pays to the same address of the vault is set aside from then on.
"""

from collections.abc import Collection

from sqlalchemy import exists, select
from sqlalchemy.orm import Session, aliased

from custody.server.audit.log import AuditLog
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import PLATFORM
from custody.server.store.models import ChainCoinRow, CoinAsideRow, ProposalRow
from custody.server.store.store import rows_in
from custody.server.vaults.stored import IS_ASIDE_OF_COIN, place_of
from multisig import Psbt

MOVED = Event(
    "COIN_SET_ASIDE",
    "set aside the coin {coin} of the vault {vault} in the place of {former}, which another version of the "
    "payment replaced",
    Category.CHAIN,
)


def carry_on(db: Session, audit: AuditLog, chain: str, txids: Collection[str]) -> None:
    """``txids``: of the transactions that make or spend a coin which has changed."""
    other = aliased(ProposalRow)
    version = (ProposalRow.family_id == other.family_id) & (ProposalRow.id != other.id)
    pairs = select(ProposalRow.id, other.id, other.txid_expected).join(other, version)
    is_there = exists().where(IS_ASIDE_OF_COIN).correlate(CoinAsideRow)
    for heir_id, former_id, txid in list(rows_in(db, pairs, ProposalRow.txid_expected, txids)):
        aside = CoinAsideRow.chain == chain, CoinAsideRow.txid == txid
        for row in db.scalars(select(CoinAsideRow).where(*aside, ~is_there)).all():
            heir, former = db.get_one(ProposalRow, heir_id), db.get_one(ProposalRow, former_id)
            _move(db, audit, row, Psbt.parse(former.psbt).outputs[row.vout].script_pubkey, heir)


def _move(db: Session, audit: AuditLog, row: CoinAsideRow, script: bytes, heir: ProposalRow) -> None:
    """To what the heir pays to the script, where that is on the chain."""
    made = ChainCoinRow.chain == row.chain, ChainCoinRow.vault_id == row.vault_id
    same = ChainCoinRow.txid == heir.txid_expected, ChainCoinRow.script_pubkey == script
    coin = db.scalars(select(ChainCoinRow).where(*made, *same)).first()
    if coin is None or db.get(CoinAsideRow, (row.chain, coin.txid, coin.vout)) is not None:
        return
    former, row.txid, row.vout = f"{row.txid}:{row.vout}", coin.txid, coin.vout
    db.flush()
    facts = {"coin": f"{coin.txid}:{coin.vout}", "vault": row.vault_id, "former": former}
    audit.record(db, PLATFORM, MOVED, place_of(db, heir.workspace_id), **facts)
