"""The chains' backends in this process: which of them answer, and the tip and the fee rates of each."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from custody.schemas.common import Priority
from custody.server.chain.backend import BlockRef, ChainBackend
from custody.server.errors import ChainUnavailable
from custody.server.rules.fees import TARGET_BLOCKS, bounded, floor_of
from custody.server.rules.ports import Clock
from multisig import FeeRate

if TYPE_CHECKING:
    from custody.server.meters import Meters

log = structlog.get_logger()

Backends = Mapping[str, ChainBackend]


def backend_of(backends: Backends, chain: str) -> ChainBackend:
    """The backend of a chain. Raises ChainUnavailable where none is configured."""
    backend = backends.get(chain)
    if backend is None:
        raise ChainUnavailable(f"This platform has no backend for {chain}.")
    return backend


def fork_of(backend: ChainBackend, read: Iterable[tuple[int, str]], tip: BlockRef) -> int:
    """The height of the last block that was read and is still on the best chain, -1 where there is none.
    ``read``: heights and hashes, the highest first.

    Only another block at a height that was read shows a reorganisation: blocks that this backend does not
    have yet were not disconnected, for another process may have followed a node with more of them. Raises
    ChainUnavailable then.
    """
    highest, differs = -1, False
    for height, block_hash in read:
        highest = max(highest, height)
        block = backend.block_at(height) if height <= tip.height else None
        if block is not None and block.hash == block_hash:
            if differs or height == highest:
                return height
            break
        differs = differs or block is not None
    if highest >= 0 and not differs:
        raise ChainUnavailable(
            f"The chain backend is behind: its tip is at {tip.height}, and blocks up to {highest} were seen "
            "before."
        )
    return -1


@dataclass(frozen=True)
class Reach:
    """How a backend answered this process last. ``answered_at`` and ``tip`` are None where it never did."""

    is_up: bool
    answered_at: datetime | None = None
    tip: BlockRef | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Quote:
    """The backend's last tip and fee rates. ``floor``: the least to propose."""

    tip: BlockRef
    rates: Mapping[Priority, FeeRate]
    floor: FeeRate


class Market:
    """The last tip and rates of each chain, and which backends answered this process. The watcher refreshes
    them at every poll; before the first one the caller asks the backend. Thread-safe.
    """

    def __init__(self, backends: Backends, clock: Clock, meters: "Meters") -> None:
        self._backends = backends
        self._clock = clock
        self._meters = meters
        self._quotes: dict[str, Quote] = {}
        self._reached: dict[str, Reach] = {}
        self._lock = threading.Lock()

    @property
    def reached(self) -> Mapping[str, Reach]:
        """By chain, of all that have a backend in this process."""
        with self._lock:
            return {chain: self._reached.get(chain, Reach(is_up=False)) for chain in sorted(self._backends)}

    def refresh(self, chain: str) -> Quote:
        """Asks the backend. Raises ChainUnavailable."""
        backend = backend_of(self._backends, chain)
        try:
            floor = floor_of(backend.least_fee_rate())
            rates = {
                priority: bounded(backend.fee_estimate(blocks), floor)
                for priority, blocks in TARGET_BLOCKS.items()
            }
            quote = Quote(backend.tip(), rates, floor)
        except ChainUnavailable as error:
            self._silent(chain, error.detail)
            raise
        self._answered(chain, quote)
        return quote

    def quote(self, chain: str) -> Quote:
        """The last answer, or else a first one. Raises ChainUnavailable."""
        with self._lock:
            known = self._quotes.get(chain)
        return known or self.refresh(chain)

    def _answered(self, chain: str, quote: Quote) -> None:
        now, tip = self._clock(), quote.tip
        with self._lock:
            self._quotes[chain] = quote
            before = self._reached.get(chain)
            self._reached[chain] = Reach(is_up=True, answered_at=now, tip=tip)
        self._meters.backend_up.labels(chain).set(1)
        self._meters.answered_at.labels(chain).set(now.timestamp())
        self._meters.backend_tip.labels(chain).set(tip.height)
        if before is not None and not before.is_up:
            log.info("backend up", chain=chain, height=tip.height)

    def _silent(self, chain: str, reason: str) -> None:
        with self._lock:
            before = self._reached.get(chain)
            self._reached[chain] = replace(before or Reach(is_up=False), is_up=False, reason=reason)
        self._meters.backend_up.labels(chain).set(0)
        if before is None or before.is_up or before.reason != reason:
            log.warning("backend down", chain=chain, reason=reason)
