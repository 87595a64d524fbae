"""A small mempool: what waits for a block, each checked by the consensus engine and by the few rules of relay here."""

from collections.abc import Iterator, Mapping

from custody.server.chain.backend import (
    Accepted,
    AlreadyKnown,
    ChainTransaction,
    Outcome,
    RefusalCode,
    Refused,
    Spend,
)
from custody.server.chain.embedded.index import CoinIndex
from custody.server.chain.embedded.replacement import (
    MempoolEntry,
    NoReplacement,
    replaced_by,
    require_higher_fee,
)
from custody.server.chain.engine import InvalidSpend, verify_transaction
from multisig.transaction import OutPoint, Transaction, TxOut
from multisig.units import FeeRate, Sats

# Core's DEFAULT_MIN_RELAY_TX_FEE before release 30; later nodes take less, so what passes here passes there.
FEE_FLOOR = FeeRate(1_000)
# What the platform passes as maxfeerate to sendrawtransaction: 0.10 BTC/kvB.
FEE_CEILING = FeeRate(10_000_000)
# Core's MAX_STANDARD_TX_WEIGHT.
MAX_TRANSACTION_WEIGHT = 400_000
# Consensus: COINBASE_MATURITY.
COINBASE_MATURITY = 100
# BIP-65: below it a lock time is a height, from it on a time.
LOCKTIME_THRESHOLD = 500_000_000
SEQUENCE_FINAL = 0xFFFFFFFF
# BIP-68: this bit switches the relative lock off.
SEQUENCE_LOCK_DISABLED = 1 << 31


class _Refusal(Exception):
    def __init__(self, code: RefusalCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Mempool:
    """Entries in the order they came, so that a parent precedes its child. The caller serialises its calls."""

    def __init__(self, index: CoinIndex) -> None:
        self._index = index
        self._entries: dict[str, MempoolEntry] = {}
        self._spends: dict[OutPoint, str] = {}

    def __iter__(self) -> Iterator[MempoolEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def transaction(self, txid: str) -> ChainTransaction | None:
        entry = self._entries.get(txid)
        return None if entry is None else ChainTransaction(entry.transaction, None, None)

    def spender(self, outpoint: OutPoint) -> Spend | None:
        txid = self._spends.get(outpoint)
        return None if txid is None else Spend(txid, None)

    def add(self, transaction: Transaction) -> Outcome:
        """Check it and keep it where it passes, in the place of what it replaces (BIP-125)."""
        outcome, fee = self._assess(transaction)
        if isinstance(outcome, Accepted):
            self._drop(replaced_by(transaction, self._entries, self._spends))
            self._entries[transaction.txid] = MempoolEntry(transaction, fee)
            self._spends.update((txin.outpoint, transaction.txid) for txin in transaction.inputs)
        return outcome

    def check(self, transaction: Transaction) -> Outcome:
        """What `add` would answer."""
        return self._assess(transaction)[0]

    def rebuild(self, returned: tuple[Transaction, ...]) -> None:
        """After the chain moved: keep what is still valid of the `returned` transactions and of what waited here."""
        waiting = (*returned, *(entry.transaction for entry in self))
        self._entries.clear()
        self._spends.clear()
        for transaction in waiting:
            self.add(transaction)

    def _drop(self, leaving: Mapping[str, MempoolEntry]) -> None:
        for txid, entry in leaving.items():
            del self._entries[txid]
            for txin in entry.transaction.inputs:
                del self._spends[txin.outpoint]

    def _assess(self, transaction: Transaction) -> tuple[Outcome, Sats]:
        txid = transaction.txid
        known = self._index.transaction(txid)
        if known is not None or txid in self._entries:
            return AlreadyKnown(txid, confirmed=known is not None), Sats(0)
        try:
            fee = self._require_acceptable(transaction)
        except _Refusal as refusal:
            return Refused(txid, refusal.code, str(refusal)), Sats(0)
        return Accepted(txid), fee

    def _require_acceptable(self, transaction: Transaction) -> Sats:
        if transaction.weight > MAX_TRANSACTION_WEIGHT:
            raise _Refusal(RefusalCode.TOO_LARGE, f"weighs more than {MAX_TRANSACTION_WEIGHT}")
        self._require_final(transaction)
        leaving = self._replaced_by(transaction)
        spent = [self._coin(txin.outpoint) for txin in transaction.inputs]
        try:
            verify_transaction(transaction, spent)
        except InvalidSpend as error:
            code = RefusalCode.MALFORMED if error.input_index is None else RefusalCode.INVALID_SCRIPT
            raise _Refusal(code, str(error)) from error
        fee = Sats(sum(out.amount for out in spent) - sum(out.amount for out in transaction.outputs))
        if fee < FEE_FLOOR.fee_for(transaction.vsize):
            raise _Refusal(
                RefusalCode.FEE_TOO_LOW, f"{fee} sat for {transaction.vsize} vB is below the floor"
            )
        if fee > FEE_CEILING.fee_for(transaction.vsize):
            raise _Refusal(RefusalCode.FEE_TOO_HIGH, f"{fee} sat for {transaction.vsize} vB is above the cap")
        try:
            require_higher_fee(transaction, fee, leaving)
        except NoReplacement as error:
            raise _Refusal(RefusalCode.CONFLICT, str(error)) from error
        return fee

    def _replaced_by(self, transaction: Transaction) -> Mapping[str, MempoolEntry]:
        try:
            return replaced_by(transaction, self._entries, self._spends)
        except NoReplacement as error:
            raise _Refusal(RefusalCode.CONFLICT, str(error)) from error

    def _require_final(self, transaction: Transaction) -> None:
        tip = self._index.tip.height
        now = tip + 1 if transaction.locktime < LOCKTIME_THRESHOLD else self._index.median_time(tip)
        locked = transaction.locktime >= now
        if locked and any(txin.sequence != SEQUENCE_FINAL for txin in transaction.inputs):
            raise _Refusal(RefusalCode.NON_FINAL, f"locked until {transaction.locktime}")
        relative = transaction.version >= 2 and any(
            not txin.sequence & SEQUENCE_LOCK_DISABLED for txin in transaction.inputs
        )
        if relative:
            raise _Refusal(RefusalCode.NON_FINAL, "this chain takes no relative lock times (BIP-68)")

    def _coin(self, outpoint: OutPoint) -> TxOut:
        parent = self._entries.get(outpoint.txid)
        if parent is not None and outpoint.vout < len(parent.transaction.outputs):
            return parent.transaction.outputs[outpoint.vout]
        coin = self._index.coin(outpoint)
        if coin is None or self._index.spender(outpoint) is not None:
            raise _Refusal(RefusalCode.MISSING_INPUTS, f"{outpoint.txid}:{outpoint.vout} is missing or spent")
        if coin.coinbase and self._index.tip.height + 1 - coin.block.height < COINBASE_MATURITY:
            raise _Refusal(RefusalCode.IMMATURE, "a coinbase may be spent after 100 blocks")
        return coin.output
