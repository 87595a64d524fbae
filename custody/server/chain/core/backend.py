"""Bitcoin Core as a ChainBackend: no wallet, every block and transaction read and checked from its
raw bytes.
"""

import threading
import time
from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal
from typing import Any

from custody.server.chain import backend
from custody.server.chain.core import node, rpc
from custody.server.chain.core.history import BlockFollower, MempoolView
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
VERDICTS = (rpc.TRANSACTION_ERROR, rpc.TRANSACTION_REJECTED, rpc.DESERIALIZATION, rpc.ALREADY_IN_CHAIN)


class CoreBackend:
    """Thread-safe. `first_height` is the block below which no watched script was ever paid.

    `url` is the node's RPC address, without user and password.
    """

    def __init__(
        self,
        network: Network,
        url: str,
        credentials: rpc.Credentials,
        *,
        first_height: int = 0,
        answer_seconds: float = rpc.ANSWER_SECONDS,
    ) -> None:
        self.network = network
        name = f"The {network.value} node"
        self._rpc = rpc.Rpc(url, credentials, name=name, answer_seconds=answer_seconds)
        self._node = node.Node(self._rpc, network)
        self._follower = BlockFollower(self._node, time.monotonic, first_height)
        self._mempool = MempoolView(self._node, time.monotonic)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Free its connections. Safe to repeat."""
        self._rpc.close()

    def tip(self) -> backend.BlockRef:
        return self._node.tip()

    def block_at(self, height: int) -> backend.BlockRef | None:
        if height < 0:
            return None
        (block_hash,) = self._node.hashes_at([height])
        if block_hash is None:
            return None
        ref = self._node.header(block_hash)
        if ref.height != height:
            raise node.garbled("another height")
        return ref

    def outputs_to(
        self, scripts: Collection[bytes], *, since_height: int = 0
    ) -> tuple[backend.FoundOutput, ...]:
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

    def transaction(self, txid: str) -> backend.ChainTransaction | None:
        (answer,) = self._node.ask(rpc.RpcCall("getrawtransaction", (txid, 1)))
        if isinstance(answer, rpc.RpcFailed) and answer.code == rpc.NOT_FOUND:
            if "being indexed" in answer.message:
                raise ChainUnavailable("The node is still indexing its newest block. Ask again.")
            return None
        fields = node.object_of(self._node.value(answer, "getrawtransaction"))
        transaction = node.transaction_of(fields.get("hex"), txid)
        if fields.get("blockhash") is None:
            return backend.ChainTransaction(transaction, None)
        if not fields.get("confirmations"):
            # Its block is on a branch that lost.
            return None
        return backend.ChainTransaction(transaction, self._node.header(node.hash_of(fields["blockhash"])))

    def data_at(self, height: int, prefix: bytes) -> backend.DataBlock | None:
        ref = self.block_at(height)
        if ref is None:
            return None
        return self._node.block(ref.hash).data_at(height, prefix, self._node.outputs)

    def broadcast(self, transaction: Transaction) -> backend.Outcome:
        txid, known = transaction.txid, self.transaction(transaction.txid)
        if known is not None and known.block is not None:
            return backend.AlreadyKnown(txid, confirmed=True)
        # A transaction in the mempool already is announced to the peers again.
        raw = transaction.serialize().hex()
        (answer,) = self._node.ask(rpc.RpcCall("sendrawtransaction", (raw, MAX_FEE_RATE, MAX_BURNT)))
        if isinstance(answer, rpc.RpcFailed) and answer.code in VERDICTS:
            return self._refused(transaction, answer.message)
        if self._node.value(answer, "sendrawtransaction") != txid:
            raise node.garbled("sendrawtransaction")
        return backend.Accepted(txid) if known is None else backend.AlreadyKnown(txid, confirmed=False)

    def fee_estimate(self, target_blocks: int) -> FeeRate | None:
        target = min(target_blocks, MAX_TARGET)
        (answer,) = self._node.ask(rpc.RpcCall("estimatesmartfee", (target, "economical")))
        rate = node.object_of(self._node.value(answer, "estimatesmartfee")).get("feerate")
        return None if rate is None or not (read := _fee_rate(rate)).sat_per_kvb else read

    def least_fee_rate(self) -> FeeRate:
        """Of its settings, and higher while its mempool is full."""
        (answer,) = self._node.ask(rpc.RpcCall("getmempoolinfo"))
        return _fee_rate(node.object_of(self._node.value(answer, "getmempoolinfo")).get("mempoolminfee"))

    # Outputs of scripts, in the best chain and the mempool

    def _look(self, wanted: frozenset[bytes]) -> tuple[backend.FoundOutput, ...]:
        for _ in range(MAX_LOOKS):
            try:
                return self._look_once(wanted)
            except node.ChainChanged:
                continue
        raise ChainUnavailable("The node's best chain changed at every try. Ask again.")

    def _look_once(self, wanted: frozenset[bytes]) -> tuple[backend.FoundOutput, ...]:
        """Everything as of one tip."""
        tip = self._node.tip()
        self._follower.catch_up(tip, wanted)
        waiting = self._mempool.look(wanted, tip.hash)
        known = (*self._follower.history.coins, *waiting)
        coins = [coin for coin in known if coin.script_pubkey in wanted]
        spends = self._node.spenders([coin.outpoint for coin in coins if coin.spent is None])
        if self._node.tip() != tip:
            raise node.ChainChanged("The node's best chain changed while it was read.")
        return tuple(
            replace(coin, spent=backend.SpendingTransaction(spends[coin.outpoint], None))
            if coin.outpoint in spends
            else coin
            for coin in coins
        )

    def _refused(self, transaction: Transaction, reason: str) -> backend.Outcome:
        """The node forgets a confirmed transaction whose outputs are spent, and calls its inputs missing."""
        code = backend.refusal_of(reason) or backend.RefusalCode.POLICY
        if backend.says_known(reason) or code is backend.RefusalCode.MISSING_INPUTS:
            known = self.transaction(transaction.txid)
            if known is not None:
                return backend.AlreadyKnown(transaction.txid, confirmed=known.block is not None)
        if code is backend.RefusalCode.INVALID_SCRIPT:
            spent = self._node.outputs([txin.outpoint for txin in transaction.inputs])
            if consensus(transaction, spent) is None:
                # Since release 30 the node gives one reason for consensus and for its own policy. Only a
                # breach of consensus is final: the coins of a valid signed payment must stay locked.
                code = backend.RefusalCode.POLICY
        if backend.says_known(reason):
            raise ChainUnavailable("The node knows the transaction, and then it does not. Ask again.")
        return backend.BroadcastRefused(transaction.txid, code, reason or "refused without a reason")


def _fee_rate(rate: Any) -> FeeRate:
    """BTC per 1,000 virtual bytes, which Core cuts to whole satoshi."""
    if isinstance(rate, bool) or not isinstance(rate, Decimal | int):
        raise node.garbled("feerate")
    try:
        return FeeRate(int(rate * SATS_PER_BTC))
    except (InvalidAmount, ArithmeticError, ValueError) as error:
        raise node.garbled("feerate") from error
