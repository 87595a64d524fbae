"""Reading how our registered key stands at the platform: after a sign-in, now and then, and when it speaks of it as revoked.

The list has no tag and rarely changes: an idle daemon asks for it six times an hour.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from custody.schemas.keys import Key
from signerd.account.backoff import Backoff
from signerd.account.platform import Platform
from signerd.account.sink import Sink
from signerd.core.effects import REGISTRATION
from signerd.core.standing import ListedKey, revocation_of
from signerd.core.text import said
from signerd.core.values import OwnKey
from signerd.errors import PlatformAnswersWrongly, PlatformError, PlatformRefused, SignedOut, SignerdError
from signerd.journal import Journal
from signerd.keeping import unforeseen
from signerd.troubles import Troubles

Sleep = Callable[[float], Awaitable[None]]
KEYS_EVERY_SECONDS = 600.0
KEYS = "keys"


_log = logging.getLogger(__name__)


@dataclass
class KeyWatch:
    """``run`` ends only by cancellation or by an error that must stop the daemon. ``due``: somebody wants it read now."""

    journal: Journal
    platform: Platform
    sink: Sink
    signed_in: asyncio.Event
    due: asyncio.Event
    jitter: Callable[[], float]
    now: Callable[[], datetime]
    troubles: Troubles
    sleep: Sleep = asyncio.sleep
    every: float = KEYS_EVERY_SECONDS
    reads: int = field(default=0, init=False)

    async def run(self) -> None:
        pause = Backoff(self.jitter)
        while True:
            await self.signed_in.wait()
            self.due.clear()
            try:
                await self.read_now()
            except (PlatformError, SignedOut) as error:
                self._tell(error)
                await self.sleep(pause.next())
                continue
            except SignerdError:
                raise
            except Exception:  # noqa: BLE001 - whatever an answer makes of us, it is read again
                _log.exception("reading the registered keys failed in an unforeseen way")
                self.troubles.stand(KEYS, {REGISTRATION: unforeseen("Reading your keys at the platform")})
                await self.sleep(pause.next())
                continue
            self.troubles.stand(KEYS, {})
            pause.reset()
            await self._until_due()

    async def read_now(self) -> None:
        """Raises leaves of PlatformError, SignedOut."""
        key_id, base = self.journal.keys.platform_key_id(), self._base()
        if key_id is None or base is None:
            return
        network = self.journal.network.api_name
        listed = [listed_key(key) for key in await self.platform.keys() if key.net == network]
        self.reads += 1
        told = revocation_of(base, key_id, listed, self.now())
        if told is not None:
            self.sink.perform(self.journal.revoke(told))

    def _tell(self, error: PlatformError | SignedOut) -> None:
        """Of a platform that gives no answer, and of nobody being signed in, the status speaks already."""
        if isinstance(error, PlatformRefused | PlatformAnswersWrongly):
            sentence = f"How your key stands at the platform cannot be read: {said(error)}"
            self.troubles.stand(KEYS, {REGISTRATION: sentence})

    def _base(self) -> OwnKey | None:
        """The account whose key the platform's list names."""
        registered = (own for own in self.journal.own_keys() if own.purpose == "vault" and own.account == 0)
        return next(registered, None)

    async def _until_due(self) -> None:
        try:
            async with asyncio.timeout(self.every):
                await self.due.wait()
        except TimeoutError:
            return


def listed_key(shape: Key) -> ListedKey:
    """An absent text is no key's."""
    fingerprint = shape.master_fingerprint.value or ""
    reason = shape.revoked_reason.value or ""
    return ListedKey(shape.id, shape.xpub.value or "", fingerprint, shape.status == "active", reason)
