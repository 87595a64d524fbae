"""Whether this process is ready: its database answers and has this version's schema, and no shutdown has
begun.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from custody.server.errors import DatabaseUnavailable
from custody.server.requests.changes import Changes
from custody.server.store import Store

# Several proxies may ask each second; the database is asked once a second at most.
FRESH_SECONDS: Final = 1.0
# A proxy gives up after a second or two.
DEADLINE_SECONDS: Final = 2.0

STOPPING: Final = "The process is stopping."
NO_ANSWER: Final = "The database does not answer in time."
AWAY: Final = "The database cannot be reached or is busy."
OUTDATED: Final = "A newer version of the platform has migrated the database: start that version."


class Readiness:
    def __init__(self, store: Store, changes: Changes) -> None:
        self._changes = changes
        self._outdated = Recent(store.is_outdated, fresh_seconds=FRESH_SECONDS)

    async def trouble(self, seconds: float = DEADLINE_SECONDS) -> str | None:
        """Why it is not ready; None where it is. Answers within that time whatever the database does, and
        needs no thread of the request pool.

        An unreachable chain does not count: members sign without it, and transactions wait. If it counted, a
        lost node would take all servers out of their proxy at once.
        """
        if self._changes.closing:
            return STOPPING
        answer = asyncio.wrap_future(self._outdated.ask())
        try:
            outdated = await asyncio.wait_for(asyncio.shield(answer), seconds)
        except TimeoutError:
            # The next caller may get the answer. An error that is never read must not be logged as unhandled.
            answer.add_done_callback(lambda done: done.cancelled() or done.exception())
            return NO_ANSWER
        except DatabaseUnavailable:
            return AWAY
        return OUTDATED if outdated else None


Answer = TypeVar("Answer")


@dataclass(eq=False)
class Recent(Generic[Answer]):
    """Runs `read` in a thread of its own, one at a time; for `fresh_seconds` every caller gets the same
    answer or error.

    `read` has deadlines of its own; a caller may wait on the future for any time.
    """

    read: Callable[[], Answer]
    fresh_seconds: float
    monotonic: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _future: Future[Answer] | None = None
    _asked_at: float = 0.0

    def ask(self) -> Future[Answer]:
        with self._lock:
            now = self.monotonic()
            if self._future is None or (
                self._future.done() and not self._asked_at <= now < self._asked_at + self.fresh_seconds
            ):
                self._future, self._asked_at = Future(), now
                threading.Thread(
                    target=self._answer, args=(self._future,), name="recent", daemon=True
                ).start()
            return self._future

    def _answer(self, future: Future[Answer]) -> None:
        try:
            answer = self.read()
        except Exception as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)
        else:
            future.set_result(answer)
