"""Any number of coins, written as the watcher would: anybody may pay a vault, as often as they like."""

from collections.abc import Iterator, Sequence
from hashlib import sha256

from sqlalchemy import insert
from sqlalchemy.orm import Session

from custody.server.chain.backend import BlockRef
from custody.server.network.deposits import ChainSnapshot
from custody.server.network.movements import MovementWriter
from custody.server.store.models import ChainCoinRow, ChainTransactionRow, VaultRow
from custody.server.vaults.stored import policy_of
from multisig import RECEIVE, OutPoint, Sats, Transaction, TxIn, TxOut
from tests.support.platform import START

# Outputs of one transaction, as a stranger would send them.
OUTPUTS = 250


def flood(
    db: Session,
    vault: VaultRow,
    amounts: Sequence[int],
    *,
    height: int | None = 1,
    outputs: int = OUTPUTS,
    salt: object = "",
) -> list[OutPoint]:
    """Pays the vault's first address and stores the previous transactions. ``salt`` makes other coins."""
    script = policy_of(vault).script_pubkey(RECEIVE, 0)
    made: list[OutPoint] = []
    for number, batch in enumerate(_batches(amounts, outputs)):
        transaction = _payment(f"{vault.id} {salt} {number}", script, batch)
        raw = transaction.serialize()
        db.execute(insert(ChainTransactionRow), {"chain": vault.chain, "txid": transaction.txid, "raw": raw})
        db.execute(insert(ChainCoinRow), list(_coins(vault, transaction, height)))
        made += [OutPoint(transaction.txid, vout) for vout in range(len(batch))]
    # As the watcher does after it has written the coins.
    blocks = () if height is None else (BlockRef(height, "00" * 32, 0),)
    snapshot = ChainSnapshot(BlockRef(0, "00" * 32, 0), 0, blocks, ())
    MovementWriter(vault.chain, lambda: START).apply(db, snapshot, {outpoint.txid for outpoint in made})
    return made


def _batches(amounts: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(amounts), size):
        yield amounts[start : start + size]


def _payment(salt: str, script: bytes, amounts: Sequence[int]) -> Transaction:
    spent = OutPoint(sha256(salt.encode()).hexdigest(), 0)
    outputs = tuple(TxOut(Sats(amount), script) for amount in amounts)
    return Transaction(2, (TxIn(spent, 0xFFFFFFFF, b"", ()),), outputs, 0)


def _coins(vault: VaultRow, transaction: Transaction, height: int | None) -> Iterator[dict[str, object]]:
    for vout, output in enumerate(transaction.outputs):
        yield {
            "chain": vault.chain,
            "txid": transaction.txid,
            "vout": vout,
            "vault_id": vault.id,
            "branch": RECEIVE,
            "address_index": 0,
            "amount_sats": int(output.amount),
            "script_pubkey": output.script_pubkey,
            "is_coinbase": False,
            "height": height,
            "block_hash": None if height is None else "00" * 32,
            "first_seen_at": START,
        }
