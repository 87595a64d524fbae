"""Transactions by their bytes: hashed to their id, proven to be in their block, their spends run through the
engine; and whether the network would accept one, tested here: most explorers offer no such test.

The engine checks scripts and amounts over bytes that hash to their ids: that needs no trust. Whether a coin
is unspent, and which tip a lock time is compared with, is the explorer's word. A full mempool and the limits
on chains of unconfirmed transactions are not checked: the explorer's node reports them at the broadcast.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from custody.server.chain.backend import (
    Accepted,
    AlreadyKnown,
    BlockRef,
    ChainTransaction,
    Outcome,
    RefusalCode,
    Refused,
    Spend,
)
from custody.server.chain.engine import NULL_TXID, InvalidSpend, verify_transaction
from custody.server.chain.esplora.blocks import (
    BestChain,
    ChainInconsistent,
    could_hold_ours,
    is_ambiguous,
    merkle_root,
)
from custody.server.chain.esplora.shapes import Outspend, Proof, Status, read
from custody.server.chain.esplora.wire import BoundedCache, Wire
from custody.server.domain.errors import ChainUnavailable
from multisig.errors import InvalidTransaction
from multisig.transaction import LOCKTIME_THRESHOLD, OutPoint, Transaction, TxOut
from multisig.units import FeeRate

KEPT_TRANSACTIONS = 10_000
KEPT_PROOFS = 100_000


def is_coinbase(transaction: Transaction) -> bool:
    return transaction.inputs[0].outpoint.txid == NULL_TXID


class Transactions:
    """Raises ChainUnavailable; ChainInconsistent where two answers cannot both be true."""

    def __init__(self, wire: Wire, chain: BestChain) -> None:
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

    def find(self, txid: str) -> ChainTransaction | None:
        """On the best chain, with its proof, or in the mempool."""
        transaction = self.by_id(txid)
        if transaction is None:
            return None
        status = read(self._wire.get(f"/tx/{txid}/status"), Status)
        block = self.prove(transaction, status)
        if block is not None:
            return ChainTransaction(transaction, block.height, block.hash)
        return ChainTransaction(transaction, None, None) if self._waits(transaction) else None

    def prove(self, transaction: Transaction, status: Status) -> BlockRef | None:
        """The block that the status names, once it is proven; None for an unconfirmed transaction."""
        if not status.confirmed or status.block_height is None:
            return None
        height, header = status.block_height, self._chain.header_at(status.block_height)
        if header is None or header.hash != status.block_hash:
            raise ChainInconsistent(
                "The explorer puts a transaction into a block that is not of its best chain."
            )
        if header.time != status.block_time:
            raise ChainInconsistent("The explorer gives a block another time than its header.")
        if not could_hold_ours(self._chain.network, height):
            raise ChainUnavailable("The explorer puts a transaction where none of ours can be.")
        if not self._proven.get((transaction.txid, header.hash)):
            self._require_proof(transaction, height, header.merkle_root)
            self._proven.keep((transaction.txid, header.hash), value=True)
        return BlockRef(height, header.hash, header.time)

    def _require_proof(self, transaction: Transaction, height: int, root: bytes) -> None:
        body = self._wire.find(f"/tx/{transaction.txid}/merkle-proof")
        proof = None if body is None else read(body, Proof)
        if proof is None or proof.block_height != height:
            raise ChainInconsistent("The explorer has no proof for a confirmation that it claims.")
        if is_ambiguous(transaction) or is_coinbase(transaction) != (proof.pos == 0):
            raise ChainUnavailable("The explorer's proof of a confirmation proves nothing.")
        if merkle_root(transaction.txid, proof.merkle, proof.pos) != root:
            raise ChainUnavailable("The explorer's proof of a confirmation is wrong.")

    def spender(self, outpoint: OutPoint) -> Spend | None:
        """Who spends it now, on the explorer's word alone."""
        outspend = read(self._wire.get(f"/tx/{outpoint.txid}/outspend/{outpoint.vout}"), Outspend)
        if not outspend.spent or outspend.txid is None:
            return None
        return Spend(outspend.txid, outspend.status.block_height if outspend.status else None)

    def _waits(self, transaction: Transaction) -> bool:
        """Whether it is in the mempool: an explorer keeps the bytes of evicted transactions, too, but names
        none of them as a coin's spender.
        """
        if is_coinbase(transaction):
            return False
        spender = self.spender(transaction.inputs[0].outpoint)
        return spender is not None and spender.txid == transaction.txid

    def caller(self, transaction: Transaction) -> bytes:
        """The output script that its first input spends. Raises ChainInconsistent where the explorer lacks
        it.
        """
        return next(self._outputs_spent(transaction)).script_pubkey

    def spent_by(self, transaction: Transaction) -> tuple[TxOut, ...]:
        """The outputs it spends. Raises ChainInconsistent where the explorer lacks one."""
        return tuple(self._outputs_spent(transaction))

    def _outputs_spent(self, transaction: Transaction) -> Iterator[TxOut]:
        for txin in transaction.inputs:
            parent = self.by_id(txin.outpoint.txid)
            if parent is None or txin.outpoint.vout >= len(parent.outputs):
                raise ChainInconsistent("The explorer shows a spend of what it does not know.")
            yield parent.outputs[txin.outpoint.vout]

    def require_valid(self, transaction: Transaction) -> None:
        """Runs the scripts: a claimed spend of our coins without our keys' signatures is refused."""
        if self._valid.get(transaction.wtxid):
            return
        try:
            verify_transaction(transaction, self.spent_by(transaction))
        except InvalidSpend as error:
            raise ChainUnavailable("The explorer shows a spend that the coin's script forbids.") from error
        self._valid.keep(transaction.wtxid, value=True)


# Core's MAX_STANDARD_TX_WEIGHT.
MAX_WEIGHT = 400_000
# Core's DEFAULT_MIN_RELAY_TX_FEE since release 30; older nodes want ten times as much, and say so.
FEE_FLOOR = FeeRate(100)
# sendrawtransaction's maxfeerate, 0.10 BTC/kvB.
FEE_CEILING = FeeRate(10_000_000)
# BIP-125, rule 4: a replacement pays for its own relay.
REPLACEMENT_RATE = FeeRate(1_000)
COINBASE_MATURITY = 100
# BIP-68: no relative lock; a lock in units of 512 seconds; the sixteen bits of the lock.
LOCK_DISABLED, LOCK_IN_TIME, LOCK_MASK, LOCK_GRANULARITY = 1 << 31, 1 << 22, 0xFFFF, 9
# BIP-113.
MEDIAN_TIME_SPAN = 11


@dataclass(frozen=True)
class _Coin:
    """An input's coin: the transaction that created it, and another that spends it."""

    made_by: ChainTransaction
    output: TxOut
    rival: Spend | None


class _Refusal(Exception):
    def __init__(self, code: RefusalCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Acceptance:
    """Raises ChainUnavailable."""

    def __init__(self, chain: BestChain, transactions: Transactions) -> None:
        self._chain = chain
        self._transactions = transactions

    def judge(self, transaction: Transaction) -> Outcome:
        """What `broadcast` would answer, as far as can be known here."""
        txid = transaction.txid
        known = self._transactions.find(txid)
        if known is not None:
            return AlreadyKnown(txid, confirmed=known.height is not None)
        try:
            self._require_acceptable(transaction)
        except _Refusal as refusal:
            return Refused(txid, refusal.code, str(refusal))
        return Accepted(txid)

    def breaks_consensus(self, transaction: Transaction) -> Refused | None:
        """The refusal where consensus forbids it, found without trusting the explorer; else None."""
        try:
            _require_size(transaction)
            _require_valid(transaction, self._transactions.spent_by(transaction))
        except _Refusal as refusal:
            return Refused(transaction.txid, refusal.code, str(refusal))
        return None

    def _require_acceptable(self, transaction: Transaction) -> None:
        _require_size(transaction)
        coins = tuple(self._coins(transaction))
        self._require_final(transaction)
        self._require_mature(transaction, coins)
        spent = tuple(coin.output for coin in coins)
        _require_valid(transaction, spent)
        _require_fee(transaction, spent)
        for rival in {coin.rival.txid for coin in coins if coin.rival is not None}:
            self._require_better(transaction, spent, rival)

    def _coins(self, transaction: Transaction) -> Iterator[_Coin]:
        for txin in transaction.inputs:
            made_by = self._transactions.find(txin.outpoint.txid)
            if made_by is None or txin.outpoint.vout >= len(made_by.transaction.outputs):
                raise _Refusal(RefusalCode.MISSING_INPUTS, f"{txin.outpoint} is missing")
            rival = self._transactions.spender(txin.outpoint)
            if rival is not None and rival.height is not None:
                raise _Refusal(RefusalCode.MISSING_INPUTS, f"{txin.outpoint} is spent")
            yield _Coin(made_by, made_by.transaction.outputs[txin.outpoint.vout], rival)

    def _require_final(self, transaction: Transaction) -> None:
        tip, lock = self._chain.tip().height, transaction.locktime
        now = tip + 1 if lock < LOCKTIME_THRESHOLD else self._median_time(tip)
        if lock >= now and transaction.locktime_holds:
            raise _Refusal(RefusalCode.NON_FINAL, f"locked until {lock}")

    def _require_mature(self, transaction: Transaction, coins: tuple[_Coin, ...]) -> None:
        next_height = self._chain.tip().height + 1
        for txin, coin in zip(transaction.inputs, coins, strict=True):
            height = next_height if coin.made_by.height is None else coin.made_by.height
            if is_coinbase(coin.made_by.transaction) and next_height - height < COINBASE_MATURITY:
                raise _Refusal(RefusalCode.IMMATURE, "a coinbase may be spent after 100 blocks")
            if transaction.version >= 2 and not self._lock_is_over(txin.sequence, height, next_height):
                raise _Refusal(RefusalCode.NON_FINAL, f"{txin.outpoint} is locked for a time (BIP-68)")

    def _lock_is_over(self, sequence: int, height: int, next_height: int) -> bool:
        if sequence & LOCK_DISABLED:
            return True
        lock = sequence & LOCK_MASK
        if not sequence & LOCK_IN_TIME:
            return height + lock <= next_height
        return self._median_time(height - 1) + (lock << LOCK_GRANULARITY) <= self._median_time(
            next_height - 1
        )

    def _median_time(self, height: int) -> int:
        blocks = (self._chain.block_at(at) for at in range(max(0, height + 1 - MEDIAN_TIME_SPAN), height + 1))
        times = sorted(block.time for block in blocks if block is not None)
        return times[len(times) // 2] if times else 0

    def _require_better(self, transaction: Transaction, spent: tuple[TxOut, ...], rival_id: str) -> None:
        """BIP-125 in short: a replacement pays more, at a better rate."""
        rival = self._transactions.by_id(rival_id)
        if rival is None:
            return
        fee, other = _fee(transaction, spent), _fee(rival, self._transactions.spent_by(rival))
        enough = fee >= other + REPLACEMENT_RATE.fee_for(transaction.vsize)
        if not enough or fee * rival.vsize <= other * transaction.vsize:
            raise _Refusal(RefusalCode.CONFLICT, f"{rival_id} in the mempool spends the same coin")


def _fee(transaction: Transaction, spent: tuple[TxOut, ...]) -> int:
    return sum(out.amount for out in spent) - sum(out.amount for out in transaction.outputs)


def _require_size(transaction: Transaction) -> None:
    if transaction.weight > MAX_WEIGHT:
        raise _Refusal(RefusalCode.TOO_LARGE, f"weighs more than {MAX_WEIGHT}")


def _require_valid(transaction: Transaction, spent: tuple[TxOut, ...]) -> None:
    try:
        verify_transaction(transaction, spent)
    except InvalidSpend as error:
        code = RefusalCode.MALFORMED if error.input_index is None else RefusalCode.INVALID_SCRIPT
        raise _Refusal(code, str(error)) from error


def _require_fee(transaction: Transaction, spent: tuple[TxOut, ...]) -> None:
    fee = _fee(transaction, spent)
    if fee < FEE_FLOOR.fee_for(transaction.vsize):
        raise _Refusal(RefusalCode.FEE_TOO_LOW, f"{fee} sat for {transaction.vsize} vB is below every floor")
    if fee > FEE_CEILING.fee_for(transaction.vsize):
        raise _Refusal(RefusalCode.FEE_TOO_HIGH, f"{fee} sat for {transaction.vsize} vB is above the cap")
