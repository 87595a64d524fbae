"""Rows of a proposal or a token where only a few fields matter."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from custody.server.store.models import CoinLockRow, ProposalRow
from custody.server.vaults.stored import note_held
from multisig import OutPoint
from tests.support.platform import START


def a_proposal(proposal_id: str, **changes: object) -> ProposalRow:
    """A pending send of vault ``v`` in a family of its own."""
    fields = {
        "id": proposal_id, "family_id": proposal_id, "workspace_id": 1, "vault_id": "v", "tx_type": "send",
        "status": "PENDING", "created_by": 1, "psbt": b"", "txid_expected": f"txid of {proposal_id}",
        "recipients": [], "amounts_sats": [], "fee_sats": 0, "fee_rate_sat_per_kvb": 0, "contract_ids": [],
        "m": 1, "n": 1, "movement_sats": 0, "keeps_coins": False,
    }  # fmt: skip
    moment = changes.pop("at", START)
    return ProposalRow(**fields | dict.fromkeys(("expires_at", "created_at", "updated_at"), moment) | changes)


def lock_coins(db: Session, chain: str, outpoints: Sequence[OutPoint], family_id: str) -> None:
    """Another family's locks on these coins."""
    for one in outpoints:
        db.add(CoinLockRow(chain=chain, txid=one.txid, vout=one.vout, family_id=family_id))
    db.flush()
    note_held(db, chain, {one.txid for one in outpoints})
