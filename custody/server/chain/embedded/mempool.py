"""A small mempool: each transaction is checked by the consensus engine, relay rules, and BIP-125."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from custody.server.chain.backend import (
    Accepted,
    AlreadyKnown,
    BroadcastRefused,
    ChainTransaction,
    Outcome,
    RefusalCode,
    SpendingTransaction,
)
from custody.server.chain.embedded.index import CoinIndex
from custody.server.chain.engine import InvalidSpend, verify_transaction
from multisig.transaction import LOCKTIME_THRESHOLD, OutPoint, Transaction, TxOut
from multisig.units import FeeRate, Sats

# BIP-125: an input with this sequence or a lower one signals that the transaction may be replaced.
MAX_BIP125_SEQUENCE = 0xFFFFFFFD
# Core's DEFAULT_INCREMENTAL_RELAY_FEE before release 30; later nodes ask for less.
INCREMENTAL_RELAY = FeeRate(1_000)
# Core's MAX_REPLACEMENT_CANDIDATES.
MAX_EVICTED = 100
# Core's DEFAULT_ANCESTOR_LIMIT and DEFAULT_DESCENDANT_LIMIT, the transaction included, and their sizes in vB.
MAX_CHAIN = 25
MAX_CHAIN_VSIZE = 101_000


@dataclass(frozen=True)
class MempoolEntry:
    """A waiting transaction and what it pays."""

    transaction: Transaction
    fee: Sats


class _Refusal(Exception):
    def __init__(self, code: RefusalCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def require_higher_fee(transaction: Transaction, fee: Sats, leaving: Mapping[str, MempoolEntry]) -> None:
    """Rules 3 and 4: it pays the fees of what leaves and its own relay; and a higher rate than what it
    replaces directly.
    """
    if not leaving:
        return
    least = sum(entry.fee for entry in leaving.values()) + INCREMENTAL_RELAY.fee_for(transaction.vsize)
    if fee < least:
        words = f"insufficient fee: {fee} sat, and this replacement needs {least} sat"
        raise _Refusal(RefusalCode.CONFLICT, words)
    spent = {item.outpoint for item in transaction.inputs}
    for entry in leaving.values():
        is_direct = not spent.isdisjoint(item.outpoint for item in entry.transaction.inputs)
        if is_direct and fee * entry.transaction.vsize <= entry.fee * transaction.vsize:
            words = "insufficient fee: its rate is not above that of what it replaces"
            raise _Refusal(RefusalCode.CONFLICT, words)


def reachable(first: Iterable[str], near: Callable[[str], Iterable[str]]) -> set[str]:
    """These txids, those near them, and so on."""
    reached, waiting = set[str](), list(first)
    while waiting:
        txid = waiting.pop()
        if txid not in reached:
            reached.add(txid)
            waiting += near(txid)
    return reached


# Core's DEFAULT_MIN_RELAY_TX_FEE since release 30.
FEE_FLOOR = FeeRate(100)
# What the platform passes as maxfeerate to sendrawtransaction: 0.10 BTC/kvB.
FEE_CEILING = FeeRate(10_000_000)
# Core's MAX_STANDARD_TX_WEIGHT.
MAX_TRANSACTION_WEIGHT = 400_000
# BIP-68: this bit switches the relative lock off.
SEQUENCE_LOCK_DISABLED = 1 << 31


class Mempool:
    """Entries in order of arrival: a parent precedes its child. The caller serialises its calls."""

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
        return None if entry is None else ChainTransaction(entry.transaction, None)

    def spender(self, outpoint: OutPoint) -> SpendingTransaction | None:
        txid = self._spends.get(outpoint)
        return None if txid is None else SpendingTransaction(txid, None)

    def add(self, transaction: Transaction) -> Outcome:
        """Check it, and keep it where it passes, instead of what it replaces (BIP-125)."""
        outcome, fee = self.check(transaction)
        if isinstance(outcome, Accepted):
            for txid, entry in self._replaced_by(transaction).items():
                del self._entries[txid]
                for txin in entry.transaction.inputs:
                    del self._spends[txin.outpoint]
            self._entries[transaction.txid] = MempoolEntry(transaction, fee)
            self._spends.update((txin.outpoint, transaction.txid) for txin in transaction.inputs)
        return outcome

    def rebuild(self, returned: tuple[Transaction, ...]) -> None:
        """After the chain moved: keep what is still valid, of the `returned` transactions and of its own."""
        waiting = (*returned, *(entry.transaction for entry in self))
        self._entries.clear()
        self._spends.clear()
        for transaction in waiting:
            self.add(transaction)

    def check(self, transaction: Transaction) -> tuple[Outcome, Sats]:
        """What `add` would answer, and the fee."""
        txid = transaction.txid
        known = self._index.transaction(txid)
        if known is not None or txid in self._entries:
            return AlreadyKnown(txid, confirmed=known is not None), Sats(0)
        try:
            fee = self._require_acceptable(transaction)
        except _Refusal as refusal:
            return BroadcastRefused(txid, refusal.code, str(refusal)), Sats(0)
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
        require_higher_fee(transaction, fee, leaving)
        self._require_short_chain(transaction, leaving)
        return fee

    def _require_final(self, transaction: Transaction) -> None:
        tip = self._index.tip.height
        now = tip + 1 if transaction.locktime < LOCKTIME_THRESHOLD else self._index.median_time(tip)
        if transaction.locktime >= now and transaction.locktime_holds:
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
        if not self._index.is_mature(coin):
            raise _Refusal(RefusalCode.IMMATURE, "a coinbase may be spent after 100 blocks")
        return TxOut(coin.amount, coin.script_pubkey)

    def _replaced_by(self, transaction: Transaction) -> dict[str, MempoolEntry]:
        """The entries that would leave: those that spend one of its coins, and their descendants.

        Refused where one does not signal (rule 1) or is an ancestor of the transaction, where the transaction
        spends an unconfirmed coin that no replaced one did (rule 2), or where too many would leave (rule 5).
        """
        entries = self._entries
        spenders = (self._spends.get(item.outpoint) for item in transaction.inputs)
        direct = {txid: entries[txid].transaction for txid in spenders if txid is not None}
        leaving = {txid: entries[txid] for txid in reachable(direct, self._children)}
        for txid, rival in direct.items():
            if all(item.sequence > MAX_BIP125_SEQUENCE for item in rival.inputs):
                words = "spends the same coin, and does not signal that it may be replaced"
                raise _Refusal(RefusalCode.CONFLICT, f"{txid} in the mempool {words}")
        if len(leaving) > MAX_EVICTED:
            words = f"{len(leaving)} transactions would have to leave the mempool"
            raise _Refusal(RefusalCode.CONFLICT, words)
        known = {item.outpoint.txid for rival in direct.values() for item in rival.inputs}
        for parent in self._parents(transaction) if leaving else ():
            if parent in leaving or parent not in known:
                raise _Refusal(RefusalCode.CONFLICT, f"it spends {parent}, which is unconfirmed itself")
        return leaving

    def _require_short_chain(self, transaction: Transaction, leaving: Mapping[str, MempoolEntry]) -> None:
        """Core's limits before release 31, without its exception for a second small child (CPFP
        carve-out).
        """
        ancestors = reachable(
            self._parents(transaction), lambda txid: self._parents(self._entries[txid].transaction)
        )
        descendants = (reachable([each], self._children) - leaving.keys() for each in ancestors)
        for chain in (ancestors, *descendants):
            sizes = [self._entries[txid].transaction.vsize for txid in chain]
            if len(sizes) + 1 > MAX_CHAIN or sum(sizes) + transaction.vsize > MAX_CHAIN_VSIZE:
                raise _Refusal(RefusalCode.POLICY, "too-long-mempool-chain")

    def _parents(self, transaction: Transaction) -> set[str]:
        return {item.outpoint.txid for item in transaction.inputs} & self._entries.keys()

    def _children(self, txid: str) -> set[str]:
        outputs = range(len(self._entries[txid].transaction.outputs))
        return {self._spends[place] for vout in outputs if (place := OutPoint(txid, vout)) in self._spends}
