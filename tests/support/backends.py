"""A chain backend that wraps a real one and fails on demand."""

from collections.abc import Callable, Collection

from custody.server.chain.backend import BlockRef, ChainBackend, ChainTransaction, FoundOutput, Outcome
from custody.server.errors import ChainUnavailable
from multisig import FeeRate, Network, Transaction


class Unreliable:
    """`down`: the backend does not answer. `answer`: what broadcasting returns instead.
    `after_broadcast` runs when the transaction has reached the network, before the call returns.
    """

    def __init__(self, real: ChainBackend) -> None:
        self._real = real
        self.down = False
        self.answer: Callable[[Transaction], Outcome] | None = None
        self.after_broadcast: Callable[[], None] = lambda: None
        self.broadcasts: list[str] = []

    @property
    def network(self) -> Network:
        return self._real.network

    def _up(self) -> ChainBackend:
        if self.down:
            raise ChainUnavailable("The node does not answer.")
        return self._real

    def tip(self) -> BlockRef:
        return self._up().tip()

    def block_at(self, height: int) -> BlockRef | None:
        return self._up().block_at(height)

    def outputs_to(self, scripts: Collection[bytes], *, since_height: int = 0) -> tuple[FoundOutput, ...]:
        return self._up().outputs_to(scripts, since_height=since_height)

    def transaction(self, txid: str) -> ChainTransaction | None:
        return self._up().transaction(txid)

    def broadcast(self, transaction: Transaction) -> Outcome:
        if self.answer:
            return self.answer(transaction)
        self.broadcasts.append(transaction.txid)
        outcome = self._up().broadcast(transaction)
        self.after_broadcast()
        return outcome

    def fee_estimate(self, target_blocks: int) -> FeeRate | None:
        return self._up().fee_estimate(target_blocks)
