"""One listing, asked so that its failure or its silence costs a late look and nothing else.

hidapi and libusb can hang on a device that is broken, and a program may run out of descriptors for a while. Neither says
that a device has gone.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence

from firmware_bridge.model import Endpoint
from firmware_bridge.sighting import Listing, Sighting

_log = logging.getLogger(__name__)


class Lookout:
    """`seconds`: for how long a look waits for the listing."""

    def __init__(self, listing: Listing, seconds: float) -> None:
        self._listing = listing
        self._seconds = seconds
        self._asking: asyncio.Future[Sequence[Sighting]] | None = None
        self._last: Sequence[Sighting] = ()
        self._trouble: str | None = None

    async def look(self, in_use: Collection[Endpoint]) -> Sequence[Sighting]:
        """What it shows; where it fails or says nothing in time, what it showed last."""
        # One that is late is not asked a second time: it may sit in a thread that nobody can end.
        asking = self._asking = self._asking or asyncio.ensure_future(self._listing(in_use))
        try:
            done, _late = await asyncio.wait([asking], timeout=self._seconds)
        except asyncio.CancelledError:
            self.close()
            raise
        if not done:
            self._note("it says nothing")
            return self._last
        self._asking = None
        return self._take(asking)

    def close(self) -> None:
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.cancel()

    def _take(self, asking: asyncio.Future[Sequence[Sighting]]) -> Sequence[Sighting]:
        try:
            self._last = asking.result()
        except Exception as error:  # noqa: BLE001 - a maker's or a caller's code: its bug must not end the looking
            self._note(f"{type(error).__name__}: {error}")
        else:
            self._note(None)
        return self._last

    def _note(self, trouble: str | None) -> None:
        if trouble is not None and trouble != self._trouble:
            _log.warning(
                "what is plugged in could not be looked at, and is taken to be as before: %s", trouble
            )
        self._trouble = trouble
