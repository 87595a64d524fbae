"""Keeping a task of somebody else's code going: its mistake is told, it is begun again after a growing pause, and ends nothing else."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from custody.pace import Backoff
from signerd.errors import SignerdError
from signerd.feed import Troubles

Sleep = Callable[[float], Awaitable[None]]
# Begun again and still going after this long, it is taken to be well.
STEADY_SECONDS = 10.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Supervisor:
    troubles: Troubles
    jitter: Callable[[], float]
    sleep: Sleep = asyncio.sleep

    async def supervise(self, subject: str, what: str, run: Callable[[], Awaitable[None]]) -> None:
        """Until it returns by itself. ``what`` begins the sentence that tells of a failure: "Looking for devices".

        Our own errors are no mistakes of somebody else's, and go on up: a journal that cannot be written ends everything.
        """
        pause, again = Backoff(self.jitter), False
        while True:
            try:
                await self._run(what, run, pause, again=again)
            except SignerdError:
                raise
            except Exception:  # noqa: BLE001 - the border to code that is not ours: whatever it raises, the daemon goes on
                _log.exception("%s failed in an unforeseen way", what)
                self.troubles.stand(what, {subject: unforeseen(what)})
            else:
                self.troubles.stand(what, {})
                return
            await self.sleep(pause.next())
            again = True

    async def _run(
        self, what: str, run: Callable[[], Awaitable[None]], pause: Backoff, *, again: bool
    ) -> None:
        well = asyncio.create_task(self._well_after_a_while(what, pause)) if again else None
        try:
            await run()
        finally:
            if well is not None:
                well.cancel()

    async def _well_after_a_while(self, what: str, pause: Backoff) -> None:
        await self.sleep(STEADY_SECONDS)
        pause.reset()
        self.troubles.stand(what, {})


def unforeseen(what: str) -> str:
    return f"{what} failed in a way that nobody foresaw, and is tried again: signerd's own messages say how."
