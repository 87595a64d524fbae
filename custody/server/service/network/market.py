"""What a new transaction needs to know of the chain, remembered so that no database transaction waits for a node."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from custody.schemas.common import Priority
from custody.server.chain.backend import BlockRef, ChainBackend
from custody.server.domain.errors import ChainUnavailable
from custody.server.domain.fees import TARGET_BLOCKS, bounded
from custody.server.service.network.reachability import Reachability
from multisig import FeeRate

Backends = Mapping[str, ChainBackend]


def backend_of(backends: Backends, chain: str) -> ChainBackend:
    """The backend of a chain. Raises ChainUnavailable where none is configured."""
    backend = backends.get(chain)
    if backend is None:
        raise ChainUnavailable(f"This platform has no backend for {chain}.")
    return backend


@dataclass(frozen=True)
class Quote:
    """The tip and the rates as they were when last asked."""

    tip: BlockRef
    rates: Mapping[Priority, FeeRate]


def _ask(backend: ChainBackend) -> Quote:
    rates = {priority: bounded(backend.fee_estimate(blocks)) for priority, blocks in TARGET_BLOCKS.items()}
    return Quote(backend.tip(), rates)


class Market:
    """The watcher refreshes it at every look; whoever comes before that asks the backend."""

    def __init__(self, backends: Backends, reachability: Reachability) -> None:
        self._backends = backends
        self.reachability = reachability
        self._quotes: dict[str, Quote] = {}
        self._lock = threading.Lock()

    def refresh(self, chain: str) -> Quote:
        """Asks the backend. Raises ChainUnavailable."""
        backend = backend_of(self._backends, chain)
        try:
            quote = _ask(backend)
        except ChainUnavailable as error:
            self.reachability.silent(chain, error.detail)
            raise
        self.reachability.answered(chain, quote.tip)
        with self._lock:
            self._quotes[chain] = quote
        return quote

    def quote(self, chain: str) -> Quote:
        """The last answer. Raises ChainUnavailable where there is none and none can be had."""
        with self._lock:
            known = self._quotes.get(chain)
        return known or self.refresh(chain)
