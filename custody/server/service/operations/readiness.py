"""Whether this process can do its work: its database answers with tables of this version, and it is not about to stop."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from custody.server.domain.errors import DatabaseUnavailable
from custody.server.domain.ports import Clock
from custody.server.service.backends import Backends, Reach, Reachability
from custody.server.service.operations.recent import Recent
from custody.server.service.requests.changes import Changes
from custody.server.store import Store

# A proxy asks each second or so, and so do several; the database is asked once a second at most.
FRESH_SECONDS: Final = 1.0
# Who asks gives up after a second or two, and learns nothing then.
DEADLINE_SECONDS: Final = 2.0

STOPPING: Final = "The process is about to stop."
NO_ANSWER: Final = "The database does not answer in time."
AWAY: Final = "The database cannot be reached or is busy."
OUTDATED: Final = "A newer version of the platform has migrated the database: start that version."


@dataclass(frozen=True)
class ChainReach:
    """A chain that this process has a backend for; ``silent_seconds`` since it last answered, None where it never did."""

    chain: str
    reachable: bool
    height: int | None
    silent_seconds: float | None


@dataclass(frozen=True)
class Ready:
    """``trouble``: why not, in words; None where it is ready.

    A chain that cannot be reached is told and no reason: people sign on without it, and the transaction waits for the network.
    Were it one, a node that is away would take every server out of its proxy at once.
    """

    trouble: str | None
    chains: tuple[ChainReach, ...]


class Readiness:
    def __init__(
        self, store: Store, clock: Clock, changes: Changes, backends: Backends, reachability: Reachability
    ) -> None:
        self._clock = clock
        self._changes = changes
        self._backends = backends
        self._reachability = reachability
        self._outdated = Recent(store.is_outdated, fresh_seconds=FRESH_SECONDS)

    async def ask(self, seconds: float = DEADLINE_SECONDS) -> Ready:
        """In that time at most, whatever the database does; no thread of the requests' is taken for it."""
        return Ready(STOPPING if self._changes.closing else await self._database(seconds), self._chains())

    async def _database(self, seconds: float) -> str | None:
        asked = asyncio.wrap_future(self._outdated.ask())
        try:
            outdated = await asyncio.wait_for(asyncio.shield(asked), seconds)
        except TimeoutError:
            # Somebody may hear it later; if it is an error then, nobody has to.
            asked.add_done_callback(lambda done: done.cancelled() or done.exception())
            return NO_ANSWER
        except DatabaseUnavailable:
            return AWAY
        return OUTDATED if outdated else None

    def _chains(self) -> tuple[ChainReach, ...]:
        known, now = self._reachability.known, self._clock()
        return tuple(_reach(chain, known, now) for chain in sorted(self._backends))


def _reach(chain: str, known: Mapping[str, Reach], now: datetime) -> ChainReach:
    reach = known.get(chain, Reach(is_up=False))
    silent = None if reach.answered_at is None else max(0.0, (now - reach.answered_at).total_seconds())
    return ChainReach(chain, reach.is_up, None if reach.tip is None else reach.tip.height, silent)
