"""Bitcoin Core as a ChainBackend: no wallet, every block and transaction read and checked from its
raw bytes.
"""

import threading
import time
from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal
from typing import Any

from custody.server.chain.backend import (
    Accepted,
    AlreadyKnown,
    BlockRef,
    BroadcastRefused,
    ChainTransaction,
    DataBlock,
    FoundOutput,
    Outcome,
    RefusalCode,
    SpendingTransaction,
    refusal_of,
    says_known,
)
from custody.server.chain.core.history import BlockFollower, MempoolView
from custody.server.chain.core.node import (
    ChainChanged,
    Node,
    garbled,
    hash_of,
    object_of,
    transaction_of,
)
from custody.server.chain.core.rpc import (
    ALREADY_IN_CHAIN,
    ANSWER_SECONDS,
    DESERIALIZATION,
    NOT_FOUND,
    TRANSACTION_ERROR,
    TRANSACTION_REJECTED,
    Credentials,
    Rpc,
    RpcCall,
    RpcFailed,
)
from custody.server.chain.engine import consensus
from custody.server.errors import ChainUnavailable
from multisig.errors import InvalidAmount
from multisig.network import Network
from multisig.transaction import Transaction
from multisig.units import SATS_PER_BTC, FeeRate

# 0.10 BTC/kvB: a higher fee is a typing error. No amount may be burnt in an unspendable output.
MAX_FEE_RATE, MAX_BURNT = "0.10", "0"
# Core's estimator knows targets up to a week.
MAX_TARGET = 1_008
# Where the tip changes during each of these reads, the caller tries again later.
MAX_LOOKS = 3
# How long a thread waits for another thread's scan.
LOCK_SECONDS = 120.0
# Errors about the transaction, not about the call.
VERDICTS = (TRANSACTION_ERROR, TRANSACTION_REJECTED, DESERIALIZATION, ALREADY_IN_CHAIN)


class CoreBackend:
    """Thread-safe. `first_height` is the block below which no watched script was ever paid.

    `url` is the node's RPC address, without user and password.
    """

    def __init__(
        self,
        network: Network,
        url: str,
        credentials: Credentials,
        *,
        first_height: int = 0,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.network = network
        name = f"The {network.value} node"
        self._rpc = Rpc(url, credentials, name=name, answer_seconds=answer_seconds)
        self._node = Node(self._rpc, network)
        self._follower = BlockFollower(self._node, time.monotonic, first_height)
        self._mempool = MempoolView(self._node, time.monotonic)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Free its connections. Safe to repeat."""
        self._rpc.close()

    def tip(self) -> BlockRef:
        return self._node.tip()

    def block_at(self, height: int) -> BlockRef | None:
        if height < 0:
            return None
        (block_hash,) = self._node.hashes_at([height])
        if block_hash is None:
            return None
        ref = self._node.header(block_hash)
        if ref.height != height:
            raise garbled("another height")
        return ref

    def outputs_to(self, scripts: Collection[bytes], *, since_height: int = 0) -> tuple[FoundOutput, ...]:
        wanted = frozenset(scripts)
        if not wanted:
            return ()
        if not self._lock.acquire(timeout=LOCK_SECONDS):
            raise ChainUnavailable("Another request is still reading the node.")
        try:
            outputs = self._look(wanted)
        finally:
            self._lock.release()
        return tuple(each for each in outputs if each.touched_since(since_height))

    def transaction(self, txid: str) -> ChainTransaction | None:
        (answer,) = self._node.ask(RpcCall("getrawtransaction", (txid, 1)))
        if isinstance(answer, RpcFailed) and answer.code == NOT_FOUND:
            if "being indexed" in answer.message:
                raise ChainUnavailable("The node is still indexing its newest block. Ask again.")
            return None
        fields = object_of(self._node.value(answer, "getrawtransaction"))
        transaction = transaction_of(fields.get("hex"), txid)
        if fields.get("blockhash") is None:
            return ChainTransaction(transaction, None)
        if not fields.get("confirmations"):
            # Its block is on a branch that lost.
            return None
        return ChainTransaction(transaction, self._node.header(hash_of(fields["blockhash"])))

    def data_at(self, height: int, prefix: bytes) -> DataBlock | None:
        ref = self.block_at(height)
        if ref is None:
            return None
        return self._node.block(ref.hash).data_at(height, prefix, self._node.outputs)

    def broadcast(self, transaction: Transaction) -> Outcome:
        txid, known = transaction.txid, self.transaction(transaction.txid)
        if known is not None and known.block is not None:
            return AlreadyKnown(txid, confirmed=True)
        # A transaction in the mempool already is announced to the peers again.
        raw = transaction.serialize().hex()
        (answer,) = self._node.ask(RpcCall("sendrawtransaction", (raw, MAX_FEE_RATE, MAX_BURNT)))
        if isinstance(answer, RpcFailed) and answer.code in VERDICTS:
            return self._refused(transaction, answer.message)
        if self._node.value(answer, "sendrawtransaction") != txid:
            raise garbled("sendrawtransaction")
        return Accepted(txid) if known is None else AlreadyKnown(txid, confirmed=False)

    def fee_estimate(self, target_blocks: int) -> FeeRate | None:
        target = min(target_blocks, MAX_TARGET)
        (answer,) = self._node.ask(RpcCall("estimatesmartfee", (target, "economical")))
        rate = object_of(self._node.value(answer, "estimatesmartfee")).get("feerate")
        return None if rate is None else _fee_rate(rate)

    # Outputs of scripts, in the best chain and the mempool

    def _look(self, wanted: frozenset[bytes]) -> tuple[FoundOutput, ...]:
        for _ in range(MAX_LOOKS):
            try:
                return self._look_once(wanted)
            except ChainChanged:
                continue
        raise ChainUnavailable("The node's best chain changed at every try. Ask again.")

    def _look_once(self, wanted: frozenset[bytes]) -> tuple[FoundOutput, ...]:
        """Everything as of one tip."""
        tip = self._node.tip()
        self._follower.catch_up(tip, wanted)
        waiting = self._mempool.look(wanted, tip.hash)
        known = (*self._follower.history.coins, *waiting)
        coins = [coin for coin in known if coin.script_pubkey in wanted]
        spends = self._node.spenders([coin.outpoint for coin in coins if coin.spent is None])
        if self._node.tip() != tip:
            raise ChainChanged("The node's best chain changed while it was read.")
        return tuple(
            replace(coin, spent=SpendingTransaction(spends[coin.outpoint], None))
            if coin.outpoint in spends
            else coin
            for coin in coins
        )

    def _refused(self, transaction: Transaction, reason: str) -> Outcome:
        """The node forgets a confirmed transaction whose outputs are spent, and calls its inputs missing."""
        code = refusal_of(reason) or RefusalCode.POLICY
        if says_known(reason) or code is RefusalCode.MISSING_INPUTS:
            known = self.transaction(transaction.txid)
            if known is not None:
                return AlreadyKnown(transaction.txid, confirmed=known.block is not None)
        if code is RefusalCode.INVALID_SCRIPT:
            spent = self._node.outputs([txin.outpoint for txin in transaction.inputs])
            if consensus(transaction, spent) is None:
                # Since release 30 the node gives one reason for consensus and for its own policy. Only a
                # breach of consensus is final: the coins of a valid signed payment must stay locked.
                code = RefusalCode.POLICY
        if says_known(reason):
            raise ChainUnavailable("The node knows the transaction, and then it does not. Ask again.")
        return BroadcastRefused(transaction.txid, code, reason or "refused without a reason")


def _fee_rate(rate: Any) -> FeeRate | None:
    """BTC per 1,000 virtual bytes, which Core cuts to whole satoshi."""
    if isinstance(rate, bool) or not isinstance(rate, Decimal | int):
        raise garbled("feerate")
    try:
        fee_rate = FeeRate(int(rate * SATS_PER_BTC))
    except (InvalidAmount, ArithmeticError, ValueError) as error:
        raise garbled("feerate") from error
    return fee_rate if fee_rate.sat_per_kvb > 0 else None
