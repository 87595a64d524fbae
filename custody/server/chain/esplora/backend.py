"""The Esplora backend: an explorer's answers, verified as far as possible, with a bounded request rate.

Its fee estimates cannot be verified: the platform keeps them between a floor and a ceiling.
"""

import re
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import ROUND_CEILING, Decimal
from http import HTTPStatus

from custody.server.chain import backend
from custody.server.chain.esplora.blocks import BestChain, ChainInconsistent
from custody.server.chain.esplora.histories import Histories, ScriptHistory
from custody.server.chain.esplora.shapes import read, read_hash
from custody.server.chain.esplora.transactions import Transactions
from custody.server.chain.esplora.wire import RequestPace, Transport, Wire, words_of
from custody.server.chain.raw_blocks import read_block
from custody.server.errors import ChainUnavailable
from multisig.errors import InvalidAmount
from multisig.network import Network
from multisig.transaction import Transaction
from multisig.units import FeeRate


def _rate(sat_per_vb: Decimal) -> FeeRate | None:
    """Rounded up to a thousandth; None for an impossible rate."""
    if not sat_per_vb.is_finite() or not 0 < sat_per_vb < 10**9:
        return None
    try:
        return FeeRate(int((sat_per_vb * 1000).to_integral_value(ROUND_CEILING)))
    except InvalidAmount:
        return None


# Bitcoin's tip does not change at each of so many reads.
MAX_READS = 5
# electrs passes on its node's error code; these two blame the transaction (Core, rpc/protocol.h).
NODES_VERDICT = re.compile(r"RPC error\b.{0,20}-2[56]\b")


class EsploraBackend:
    """A ChainBackend that asks one explorer; nothing is sent before the first call.

    `url` is the API's, such as https://mempool.space/api, and may hold a user and password, or a key in its
    path. Raises ValueError for a URL that `check_url` refuses.
    """

    def __init__(
        self,
        url: str,
        network: Network,
        *,
        pace: RequestPace | None = None,
        transport: Transport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.network = network
        self._pace = pace or RequestPace()
        self._clock = clock
        self._wire = Wire(url, pace=self._pace, transport=transport, clock=clock)
        self._chain = BestChain(network, self._wire, self._pace, clock)
        self._transactions = Transactions(self._wire, self._chain)
        self._histories = Histories(self._wire, self._chain, self._transactions, clock)
        self._rates: tuple[float, dict[int, Decimal]] | None = None

    def close(self) -> None:
        """Ends the connections. Safe to repeat."""
        self._wire.close()

    def tip(self) -> backend.BlockRef:
        with self._doubting():
            return self._chain.tip()

    def block_at(self, height: int) -> backend.BlockRef | None:
        with self._doubting():
            return self._chain.block_at(height)

    def outputs_to(
        self, scripts: Collection[bytes], *, since_height: int = 0
    ) -> tuple[backend.FoundOutput, ...]:
        wanted = sorted(set(scripts))
        with self._doubting():
            outputs = self._read(wanted)
        return tuple(output for output in outputs if output.touched_since(since_height))

    def transaction(self, txid: str) -> backend.ChainTransaction | None:
        with self._doubting():
            # Checks first that the explorer is on this network.
            self._chain.tip()
            return self._transactions.find(txid)

    def data_at(self, height: int, prefix: bytes) -> backend.DataBlock | None:
        with self._doubting():
            ref = self._chain.block_at(height)
            if ref is None:
                return None
            # From the block's own bytes, checked against its header and merkle root; the callers from
            # transactions that hash to their ids.
            body = self._wire.find(f"/block/{ref.hash}/raw")
            if body is None:
                raise ChainInconsistent("The explorer lacks a block of the best chain that it shows.")
            return read_block(body, ref.hash).data_at(height, prefix, self._transactions.outputs)

    def broadcast(self, transaction: Transaction) -> backend.Outcome:
        known = self.transaction(transaction.txid)
        if known is not None and known.block is not None:
            return backend.AlreadyKnown(transaction.txid, confirmed=True)
        reply = self._wire.post("/tx", transaction.serialize().hex())
        if reply.status != HTTPStatus.OK:
            return self._refused(transaction, words_of(reply))
        self._histories.expire()
        txid = transaction.txid
        if read_hash(reply.content) != txid:
            raise ChainUnavailable("The explorer answers a broadcast with another transaction's id.")
        return backend.Accepted(txid) if known is None else backend.AlreadyKnown(txid, confirmed=False)

    def fee_estimate(self, target_blocks: int) -> FeeRate | None:
        self._chain.tip()
        if self._rates is None or self._clock() - self._rates[0] >= self._pace.fees_seconds:
            body = self._wire.find("/fee-estimates")
            # Sat/vB by target; none where the explorer's node has too little data.
            self._rates = self._clock(), {} if body is None else read(body, dict[int, Decimal])
        rates = self._rates[1]
        # The rate of the slowest target that is fast enough.
        targets = [target for target in rates if target <= target_blocks]
        return _rate(rates[max(targets)]) if targets else None

    def least_fee_rate(self) -> None:
        """No explorer tells it."""

    @contextmanager
    def _doubting(self) -> Iterator[None]:
        try:
            yield
        except ChainUnavailable:
            self._wire.cooldown.lied()
            raise

    def _read(self, scripts: list[bytes]) -> tuple[backend.FoundOutput, ...]:
        """The outputs of all of them, as of one tip."""
        period = self._pace.scripts_period(len(scripts))
        for _ in range(MAX_READS):
            tip = self._chain.tip()
            known = {script: self._histories.fresh(script, tip, period) for script in scripts}
            missing = [script for script, history in known.items() if history is None]
            try:
                histories = known | self._ask(missing, tip)
                if not missing or self._chain.refresh() == tip:
                    return tuple(output for each in histories.values() if each for output in each.outputs)
            except ChainInconsistent:
                self._chain.refresh()
        raise ChainUnavailable("The explorer contradicts itself at every read.")

    def _ask(self, scripts: list[bytes], tip: backend.BlockRef) -> dict[bytes, ScriptHistory]:
        with ThreadPoolExecutor(self._pace.parallel, thread_name_prefix="esplora") as threads:
            try:
                histories = threads.map(lambda script: self._histories.ask(script, tip), scripts)
                return dict(zip(scripts, histories, strict=True))
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _refused(self, transaction: Transaction, words: str) -> backend.Outcome:
        """The explorer's words as an outcome."""
        if backend.says_known(words):
            known = self.transaction(transaction.txid)
            return backend.AlreadyKnown(
                transaction.txid, confirmed=known is not None and known.block is not None
            )
        code = backend.refusal_of(words) or (
            backend.RefusalCode.POLICY if NODES_VERDICT.search(words) else None
        )
        if code is None:
            raise ChainUnavailable(f"The explorer does not take the transaction now: {words}")
        # A lying explorer must not free a payment's coins, see it made again, and then broadcast both.
        if code not in backend.FOR_GOOD:
            return backend.BroadcastRefused(transaction.txid, code, words)
        refused = self._transactions.breaks_consensus(transaction)
        if refused is None:
            raise ChainUnavailable(f"The explorer refuses a transaction that the rules allow: {words}")
        return refused
