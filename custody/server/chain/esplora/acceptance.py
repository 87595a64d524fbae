"""Whether the network would accept a transaction, tested here: most explorers offer no such test.

The engine checks scripts and amounts over bytes that hash to their ids: that needs no trust. Whether a coin
is unspent, and which tip a lock time is compared with, is the explorer's word. A full mempool and the limits
on chains of unconfirmed transactions are not checked: the explorer's node reports them at the broadcast.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from custody.server.chain.backend import (
    Accepted,
    AlreadyKnown,
    ChainTransaction,
    Outcome,
    RefusalCode,
    Refused,
    Spend,
)
from custody.server.chain.engine import InvalidSpend, verify_transaction
from custody.server.chain.esplora.blocks import BestChain
from custody.server.chain.esplora.transactions import Transactions, is_coinbase
from multisig.transaction import Transaction, TxOut
from multisig.units import FeeRate

# Core's MAX_STANDARD_TX_WEIGHT.
MAX_WEIGHT = 400_000
# Core's DEFAULT_MIN_RELAY_TX_FEE since release 30; older nodes want ten times as much, and say so.
FEE_FLOOR = FeeRate(100)
# sendrawtransaction's maxfeerate, 0.10 BTC/kvB.
FEE_CEILING = FeeRate(10_000_000)
# BIP-125, rule 4: a replacement pays for its own relay.
REPLACEMENT_RATE = FeeRate(1_000)
COINBASE_MATURITY = 100
# BIP-65: below it a lock time is a height, from it on a time.
LOCKTIME_THRESHOLD = 500_000_000
SEQUENCE_FINAL = 0xFFFFFFFF
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
        if lock >= now and any(txin.sequence != SEQUENCE_FINAL for txin in transaction.inputs):
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
