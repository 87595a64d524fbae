"""Following the feed for the person who does not look: gathered for a moment, told once, and never more often than a person can bear."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from signerd.feed import Feed
from signerd.notifying.bus import show
from signerd.notifying.words import Notice, notice_of

Show = Callable[[Notice], Awaitable[bool]]
Sleep = Callable[[float], Awaitable[None]]
# A platform that comes back tells of everything at once: that is one notice.
GATHER_SECONDS = 2.0
# Whoever is told of something looks at it; more often than this is noise, and a way to bury what matters (L6).
PAUSE_SECONDS = 15.0
# A feed is never silent for so long that this matters; a wait must have an end.
_QUIET_SECONDS = 3600.0

_log = logging.getLogger(__name__)


@dataclass
class Notifier:
    """``details``: names and the daemon's sentences as well; else counts alone."""

    feed: Feed
    details: bool
    show: Show = show
    sleep: Sleep = asyncio.sleep

    async def run(self) -> None:
        """Until cancelled. Nothing that goes wrong here ends anything."""
        position = self.feed.last
        while True:
            if not await self.feed.wait(position, None, _QUIET_SECONDS):
                continue
            await self.sleep(GATHER_SECONDS)
            lines = self.feed.since(position)
            position = self.feed.last
            if await self._told(notice_of(lines, details=self.details)):
                await self.sleep(PAUSE_SECONDS)

    async def _told(self, notice: Notice | None) -> bool:
        """Whether there was anything to tell, taken or not."""
        if notice is None:
            return False
        try:
            await self.show(notice)
        except Exception:  # noqa: BLE001 - the border to a desktop: whatever it does, the daemon goes on
            _log.warning("the desktop took no notice", exc_info=True)
        return True


@contextlib.asynccontextmanager
async def notifying(feed: Feed, mode: str) -> AsyncIterator[None]:
    """Beside the body. ``mode``: as ``[notifications] show``."""
    if mode == "off":
        yield
        return
    task = asyncio.create_task(Notifier(feed, details=mode == "details").run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
