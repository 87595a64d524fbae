"""A chain backend that wraps a real one and fails on demand."""

from collections.abc import Callable
from typing import Any

from custody.server.chain.backend import ChainBackend, Outcome
from custody.server.errors import ChainUnavailable
from multisig import Transaction


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

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real if name == "network" else self._up(), name)

    def _up(self) -> ChainBackend:
        if self.down:
            raise ChainUnavailable("The node does not answer.")
        return self._real

    def broadcast(self, transaction: Transaction) -> Outcome:
        if self.answer:
            return self.answer(transaction)
        self.broadcasts.append(transaction.txid)
        outcome = self._up().broadcast(transaction)
        self.after_broadcast()
        return outcome
