"""A coin that is set aside, whose money another version of a payment has moved: where that version pays the
same address of the vault, or returns everything to it, what it makes there is set aside from then on.
"""

from collections.abc import Collection

from sqlalchemy import exists, select
from sqlalchemy.orm import Session, aliased

from custody.server.audit.log import AuditLog
from custody.server.proposals.lifecycle import pays
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import PLATFORM
from custody.server.store.models import ChainCoinRow, CoinAsideRow, ProposalInputRow, ProposalRow
from custody.server.store.store import rows_in
from custody.server.vaults.stored import IS_ASIDE_OF_COIN, place_of
from multisig import Psbt

MOVED = Event(
    "COIN_SET_ASIDE",
    "set aside the coin {coin} of the vault {vault} in the place of {former}, whose money it has",
    Category.CHAIN,
)


def carry_on(db: Session, audit: AuditLog, chain: str, txids: Collection[str]) -> None:
    """``txids``: of the transactions that make or spend a coin which has changed."""
    other = aliased(ProposalRow)
    version = (ProposalRow.family_id == other.family_id) & (ProposalRow.id != other.id)
    pairs = select(ProposalRow.id, other.id, other.txid_expected).join(other, version)
    is_there = exists().where(IS_ASIDE_OF_COIN).correlate(CoinAsideRow)
    for heir_id, former_id, txid in list(rows_in(db, pairs, ProposalRow.txid_expected, txids)):
        heir, former = db.get_one(ProposalRow, heir_id), db.get_one(ProposalRow, former_id)
        lost = (CoinAsideRow.txid == txid) & ~is_there
        if not pays(heir):
            spends = CoinAsideRow.txid == ProposalInputRow.txid, CoinAsideRow.vout == ProposalInputRow.vout
            lost |= exists().where(ProposalInputRow.proposal_id == heir_id, *spends)
        # Where several become one, it stays set aside as long as any of them.
        last = CoinAsideRow.until.is_not(None), CoinAsideRow.until.desc()
        rows = select(CoinAsideRow).where(CoinAsideRow.chain == chain, lost).order_by(*last)
        for row in db.scalars(rows).all():
            script = Psbt.parse(former.psbt).outputs[row.vout].script_pubkey if pays(heir) else None
            _move(db, audit, row, script, heir)


def _move(db: Session, audit: AuditLog, row: CoinAsideRow, script: bytes | None, heir: ProposalRow) -> None:
    """To what the heir pays to the script (None: to the vault), where that is on the chain."""
    made = ChainCoinRow.chain == row.chain, ChainCoinRow.vault_id == row.vault_id
    query = select(ChainCoinRow).where(*made, ChainCoinRow.txid == heir.txid_expected)
    coin = db.scalars(query if script is None else query.where(ChainCoinRow.script_pubkey == script)).first()
    if coin is None:
        return
    if db.get(CoinAsideRow, (row.chain, coin.txid, coin.vout)) is not None:
        db.delete(row)
        return
    former, row.txid, row.vout = f"{row.txid}:{row.vout}", coin.txid, coin.vout
    db.flush()
    facts = {"coin": f"{coin.txid}:{coin.vout}", "vault": row.vault_id, "former": former}
    audit.record(db, PLATFORM, MOVED, place_of(db, heir.workspace_id), **facts)
