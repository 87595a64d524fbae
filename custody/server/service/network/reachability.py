"""Which chains' backends answer, told once when that changes and not at every look."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from custody.server.chain.backend import BlockRef
from custody.server.domain.ports import Clock
from custody.server.meters import Meters

log = structlog.get_logger()


@dataclass(frozen=True)
class Reach:
    """How a backend answered this process last. ``answered_at`` and ``tip`` are None where it never did."""

    is_up: bool
    answered_at: datetime | None = None
    tip: BlockRef | None = None
    reason: str | None = None


class Reachability:
    """What the watcher and the market of one process find out. Safe from several threads."""

    def __init__(self, clock: Clock, meters: Meters) -> None:
        self._clock = clock
        self._meters = meters
        self._known: dict[str, Reach] = {}
        self._lock = threading.Lock()

    @property
    def known(self) -> Mapping[str, Reach]:
        """By chain; those that were asked."""
        with self._lock:
            return dict(self._known)

    def answered(self, chain: str, tip: BlockRef) -> None:
        now = self._clock()
        with self._lock:
            before, self._known[chain] = self._known.get(chain), Reach(is_up=True, answered_at=now, tip=tip)
        self._meters.backend_up.labels(chain).set(1)
        self._meters.answered_at.labels(chain).set(now.timestamp())
        self._meters.backend_tip.labels(chain).set(tip.height)
        if before is not None and not before.is_up:
            log.info("backend up", chain=chain, height=tip.height)

    def silent(self, chain: str, reason: str) -> None:
        with self._lock:
            before = self._known.get(chain)
            self._known[chain] = replace(before or Reach(is_up=False), is_up=False, reason=reason)
        self._meters.backend_up.labels(chain).set(0)
        if before is None or before.is_up:
            log.warning("backend down", chain=chain, reason=reason)
