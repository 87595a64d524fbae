"""Transactions by their bytes: hashed to their id, proven to be in their block, their spends run through the
engine.

The engine checks scripts and amounts over bytes that hash to their ids: that needs no trust. Whether a coin
is unspent is the explorer's word.
"""

from collections.abc import Iterable

from custody.common.bounded_cache import BoundedCache
from custody.server.chain.backend import (
    BlockRef,
    BroadcastRefused,
    ChainTransaction,
    RefusalCode,
)
from custody.server.chain.engine import NULL_TXID, InvalidSpend, verify_transaction
from custody.server.chain.esplora import blocks
from custody.server.chain.esplora.shapes import ConfirmationStatus, MerkleProof, Outspend, read
from custody.server.chain.esplora.wire import Wire
from custody.server.errors import ChainUnavailable
from multisig.errors import InvalidTransaction
from multisig.transaction import OutPoint, Transaction, TxOut

# Core's MAX_STANDARD_TX_WEIGHT.
MAX_WEIGHT = 400_000
KEPT_TRANSACTIONS = 10_000
KEPT_PROOFS = 100_000


def is_coinbase(transaction: Transaction) -> bool:
    return transaction.inputs[0].outpoint.txid == NULL_TXID


class Transactions:
    """Raises ChainUnavailable; ChainInconsistent where two answers cannot both be true."""

    def __init__(self, wire: Wire, chain: blocks.BestChain) -> None:
        self._wire = wire
        self._chain = chain
        self._raw: BoundedCache[str, Transaction] = BoundedCache(KEPT_TRANSACTIONS)
        self._proven: BoundedCache[tuple[str, str], bool] = BoundedCache(KEPT_PROOFS)
        self._valid: BoundedCache[str, bool] = BoundedCache(KEPT_TRANSACTIONS)

    def by_id(self, txid: str) -> Transaction | None:
        """The bytes under that id, whether or not they are still on the best chain or in the mempool."""
        known = self._raw.get(txid)
        if known is not None:
            return known
        body = self._wire.find(f"/tx/{txid}/raw")
        if body is None:
            return None
        try:
            transaction = Transaction.parse(body)
        except InvalidTransaction as error:
            raise ChainUnavailable("The explorer shows bytes that are no transaction.") from error
        if transaction.txid != txid:
            raise ChainUnavailable("The explorer shows the bytes of another transaction.")
        return self._raw.keep(txid, transaction)

    def named(self, txid: str) -> Transaction:
        """One that the explorer has named, by another's input or in a history. Raises ChainInconsistent where
        it lacks it.
        """
        transaction = self.by_id(txid)
        if transaction is None:
            raise blocks.ChainInconsistent("The explorer lacks a transaction that it names.")
        return transaction

    def find(self, txid: str) -> ChainTransaction | None:
        """On the best chain, with its proof, or in the mempool."""
        transaction = self.by_id(txid)
        if transaction is None:
            return None
        status = read(self._wire.get(f"/tx/{txid}/status"), ConfirmationStatus)
        block = self.prove(transaction, status)
        if block is not None:
            return ChainTransaction(transaction, block)
        if is_coinbase(transaction):
            return None
        # An explorer keeps the bytes of evicted transactions too, but names none of them as a coin's spender.
        waits = self._spender(transaction.inputs[0].outpoint) == txid
        return ChainTransaction(transaction, None) if waits else None

    def prove(self, transaction: Transaction, status: ConfirmationStatus) -> BlockRef | None:
        """The block that the status names, once it is proven; None for an unconfirmed transaction."""
        if not status.confirmed or status.block_height is None:
            return None
        height, header = status.block_height, self._chain.header_at(status.block_height)
        if header is None or header.hash != status.block_hash:
            raise blocks.ChainInconsistent(
                "The explorer puts a transaction into a block that is not of its best chain."
            )
        if header.time != status.block_time:
            raise blocks.ChainInconsistent("The explorer gives a block another time than its header.")
        if not blocks.could_hold_ours(self._chain.network, height):
            raise ChainUnavailable("The explorer puts a transaction where none of ours can be.")
        if not self._proven.get((transaction.txid, header.hash)):
            self._require_proof(transaction, height, header.merkle_root)
            self._proven.keep((transaction.txid, header.hash), value=True)
        return BlockRef(height, header.hash, header.time)

    def _require_proof(self, transaction: Transaction, height: int, root: bytes) -> None:
        body = self._wire.find(f"/tx/{transaction.txid}/merkle-proof")
        proof = None if body is None else read(body, MerkleProof)
        if proof is None or proof.block_height != height:
            raise blocks.ChainInconsistent("The explorer has no proof for a confirmation that it claims.")
        if blocks.is_ambiguous(transaction) or is_coinbase(transaction) != (proof.pos == 0):
            raise ChainUnavailable("The explorer's proof of a confirmation proves nothing.")
        if blocks.merkle_root(transaction.txid, proof.merkle, proof.pos) != root:
            raise ChainUnavailable("The explorer's proof of a confirmation is wrong.")

    def _spender(self, outpoint: OutPoint) -> str | None:
        """The txid of what spends it now, on the explorer's word alone."""
        outspend = read(self._wire.get(f"/tx/{outpoint.txid}/outspend/{outpoint.vout}"), Outspend)
        return outspend.txid if outspend.spent else None

    def outputs(self, outpoints: Iterable[OutPoint]) -> tuple[TxOut, ...]:
        """The outputs, spent or not. Raises ChainInconsistent where the explorer lacks one."""
        return tuple(map(self._output, outpoints))

    def _output(self, outpoint: OutPoint) -> TxOut:
        parent = self.named(outpoint.txid)
        if outpoint.vout >= len(parent.outputs):
            raise blocks.ChainInconsistent("The explorer shows a spend of what is not there.")
        return parent.outputs[outpoint.vout]

    def require_valid(self, transaction: Transaction) -> None:
        """Runs the scripts: a claimed spend of our coins without our keys' signatures is refused."""
        if self._valid.get(transaction.wtxid):
            return
        try:
            verify_transaction(transaction, self.outputs(txin.outpoint for txin in transaction.inputs))
        except InvalidSpend as error:
            raise ChainUnavailable("The explorer shows a spend that the coin's script forbids.") from error
        self._valid.keep(transaction.wtxid, value=True)

    def breaks_consensus(self, transaction: Transaction) -> BroadcastRefused | None:
        """The refusal where consensus forbids it, found without trusting the explorer; else None."""
        if transaction.weight > MAX_WEIGHT:
            return BroadcastRefused(transaction.txid, RefusalCode.TOO_LARGE, f"weighs more than {MAX_WEIGHT}")
        try:
            verify_transaction(transaction, self.outputs(txin.outpoint for txin in transaction.inputs))
        except InvalidSpend as error:
            code = RefusalCode.MALFORMED if error.input_index is None else RefusalCode.INVALID_SCRIPT
            return BroadcastRefused(transaction.txid, code, str(error))
        return None
