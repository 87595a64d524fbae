"""The embedded chain: a ChainBackend that also mines and pays out, for demos and tests."""

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from custody.server.chain import backend
from custody.server.chain.embedded import mining
from custody.server.chain.embedded.index import BlockStore, CoinIndex
from custody.server.chain.embedded.mempool import FEE_FLOOR, Mempool
from custody.server.chain.engine import Chainstate
from custody.server.chain.raw_blocks import BlockHeader, read_block
from custody.server.errors import ChainUnavailable
from multisig.network import Network
from multisig.script import decode_address, dust_threshold
from multisig.transaction import OutPoint, Transaction
from multisig.units import FeeRate, Sats

_log = logging.getLogger(__name__)

# Bounds one call: a thousand empty blocks take about a second.
MAX_BLOCKS_PER_CALL = 1_000
# Leaves room for the coinbase in a block of four million weight units.
MAX_TEMPLATE_WEIGHT = 3_990_000
# Nothing competes for space on this chain, so every target gets the same rate.
FALLBACK_FEE_RATE = FeeRate(2_000)


class EmbeddedChain:
    """A regtest chain in this process. Its state folder belongs to one program at a time.

    `clock` gives Unix seconds; it stamps the blocks. `network` is what the platform calls it, and how its
    addresses are written; its rules are regtest's either way. Raises ChainUnavailable where the folder is in
    use or broken.
    """

    def __init__(
        self, folder: Path, *, clock: Callable[[], float], network: Network = Network.REGTEST
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.network = network
        self._clock = clock
        self._lock = threading.RLock()
        self._store: BlockStore | None = BlockStore(folder / "blocks.sqlite3")
        self._engine = Chainstate(folder / "engine")
        self._index = CoinIndex()
        self._mempool = Mempool(self._index)
        self._replay()

    def close(self) -> None:
        """Free the engine and the folder. Safe to repeat."""
        with self._lock:
            self._engine.close()
            if self._store is not None:
                self._store.close()
                self._store = None

    # ChainBackend

    def tip(self) -> backend.BlockRef:
        with self._open():
            return self._index.tip

    def block_at(self, height: int) -> backend.BlockRef | None:
        with self._open():
            return self._index.block_at(height)

    def outputs_to(
        self, scripts: Collection[bytes], *, since_height: int = 0
    ) -> tuple[backend.FoundOutput, ...]:
        with self._open():
            wanted = frozenset(scripts)
            confirmed = (
                replace(coin, spent=self.spender(coin.outpoint))
                for script in wanted
                for coin in self._index.coins_of(script)
            )
            recent = (output for output in confirmed if output.touched_since(since_height))
            waiting = (
                replace(coin, spent=self._mempool.spender(coin.outpoint))
                for entry in self._mempool
                for coin in backend.outputs_of(entry.transaction, None, wanted)
            )
            return (*recent, *waiting)

    def transaction(self, txid: str) -> backend.ChainTransaction | None:
        with self._open():
            return self._index.transaction(txid) or self._mempool.transaction(txid)

    def data_at(self, height: int, prefix: bytes) -> backend.DataBlock | None:
        with self._open() as store:
            ref = self._index.block_at(height)
            if ref is None:
                return None
            if height == 0:
                # The genesis block is not stored.
                return backend.DataBlock(ref, "00" * 32, ())
            raw = store.raw(bytes.fromhex(ref.hash)[::-1])
            return read_block(raw, ref.hash).data_at(height, prefix, self._index.coins)

    def broadcast(self, transaction: Transaction) -> backend.Outcome:
        with self._open() as store:
            outcome, _ = self._mempool.check(transaction)
            if isinstance(outcome, backend.Accepted):
                with store.transaction():
                    store.append_to_mempool(transaction.serialize())
                self._mempool.add(transaction)
            return outcome

    def fee_estimate(self, target_blocks: int) -> FeeRate | None:  # noqa: ARG002 - the interface's signature
        return FALLBACK_FEE_RATE

    def least_fee_rate(self) -> FeeRate:
        return FEE_FLOOR

    # What only this chain can do

    def spender(self, outpoint: OutPoint) -> backend.SpendingTransaction | None:
        """The spend of that outpoint, on the best chain or in the mempool."""
        with self._open():
            return self._index.spender(outpoint) or self._mempool.spender(outpoint)

    def mine(self, count: int, *, empty: bool = False) -> tuple[backend.BlockRef, ...]:
        """Mine `count` blocks on the tip; the first takes what is in the mempool, unless `empty`."""
        if not 1 <= count <= MAX_BLOCKS_PER_CALL:
            raise ValueError(f"Mine between 1 and {MAX_BLOCKS_PER_CALL} blocks at a time.")
        with self._writing() as store:
            return tuple(self._mine_on_tip(store, empty=empty) for _ in range(count))

    def mine_what_waits(self) -> None:
        """Mine one block, unless the mempool is empty."""
        with self._open():
            if len(self._mempool):
                self.mine(1)

    def fund(self, address: str, amount: Sats) -> str:
        """Pay `amount` to `address` from the chain's own coins, mining what must mature first; returns the
        txid.

        The payment waits in the mempool until the next block. Raises InvalidAddress, WrongNetwork, or
        ValueError for dust and where the chain does not own that much.
        """
        script = decode_address(address, self.network)
        if amount < dust_threshold(script):
            raise ValueError(f"{amount} sat is dust; pay {dust_threshold(script)} sat or more.")
        with self._open():
            for _ in range(mining.MAX_ROUNDS):
                payment = mining.build_payment(self._index, self._mempool, script, amount, FALLBACK_FEE_RATE)
                if payment is None:
                    self.mine(mining.MATURING_BLOCKS, empty=True)
                    continue
                outcome = self.broadcast(payment)
                if (
                    isinstance(outcome, backend.BroadcastRefused)
                    and outcome.code is backend.RefusalCode.POLICY
                ):
                    # Too many of its own payments wait.
                    self.mine(1)
                    continue
                if not isinstance(outcome, backend.Accepted):
                    raise ChainUnavailable(f"The embedded chain refuses its own payment: {outcome}.")
                return payment.txid
        raise ValueError(f"The embedded chain does not own {amount} sat, not even after more blocks.")

    # Internals

    def _mine_on_tip(self, store: BlockStore, *, empty: bool) -> backend.BlockRef:
        chosen: list[Transaction] = []
        weight = fees = 0
        for entry in () if empty else self._mempool:
            weight += entry.transaction.weight
            if weight > MAX_TEMPLATE_WEIGHT:
                break
            chosen.append(entry.transaction)
            fees += entry.fee
        return self._extend(store, self._index.tip, tuple(chosen), Sats(fees))

    def _extend(
        self, store: BlockStore, parent: backend.BlockRef, transactions: tuple[Transaction, ...], fees: Sats
    ) -> backend.BlockRef:
        on_best_chain = self._index.block_at(parent.height) == parent
        median = self._index.median_time(parent.height) if on_best_chain else parent.time
        time = max(int(self._clock()), median + 1)
        raw = mining.build_block(
            parent=bytes.fromhex(parent.hash)[::-1],
            height=parent.height + 1,
            time=time,
            transactions=transactions,
            fees=fees,
            extra_nonce=store.count(),
        )
        header = BlockHeader.parse(raw)
        store.add(bytes.fromhex(header.hash)[::-1], raw)
        self._engine.submit(raw)
        self._mempool.rebuild(self._follow_engine(store))
        return backend.BlockRef(parent.height + 1, header.hash, time)

    @contextmanager
    def _writing(self) -> Iterator[BlockStore]:
        """New blocks are on disk before any caller sees them, all of one call together.

        Where they cannot be stored, or not all are valid, the store is as before; if the engine has moved on
        by then, the two disagree and the chain closes.
        """
        with self._open() as store:
            before = self._index.tip
            try:
                with store.transaction():
                    yield store
                    store.replace_mempool([entry.transaction.serialize() for entry in self._mempool])
            except BaseException:
                if self._index.tip != before or self._engine.height() != before.height:
                    _log.exception("the embedded chain stops: its blocks could not be stored")
                    self.close()
                raise

    def _follow_engine(self, store: BlockStore) -> tuple[Transaction, ...]:
        """Bring the index to the engine's best chain; returns the transactions that lost their block."""
        returned: tuple[Transaction, ...] = ()
        best = self._engine.height()
        while (tip := self._index.tip).height > best or self._engine.hash_at(tip.height)[
            ::-1
        ].hex() != tip.hash:
            returned = self._index.disconnect_tip() + returned
        for height in range(tip.height + 1, best + 1):
            block_hash = self._engine.hash_at(height)
            block = read_block(store.raw(block_hash), block_hash[::-1].hex())
            ref = backend.BlockRef(height, block.header.hash, block.header.time)
            self._index.connect(ref, tuple(each.parse() for each in block.transactions))
        return returned

    def _replay(self) -> None:
        with self._open() as store:
            genesis = backend.BlockRef(0, self._engine.hash_at(0)[::-1].hex(), mining.GENESIS_TIME)
            self._index.connect(genesis, ())
            for raw in store.blocks():
                self._engine.submit(raw)
            self._follow_engine(store)
            for raw in store.mempool():
                self._mempool.add(Transaction.parse(raw))

    @contextmanager
    def _open(self) -> Iterator[BlockStore]:
        with self._lock:
            if self._store is None:
                raise ChainUnavailable("The embedded chain is closed.")
            yield self._store
