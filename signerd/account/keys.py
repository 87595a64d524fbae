"""Reading our keys at the platform: whether the registered one still counts, and how many of its accounts are free.

Read after a sign-in, before a registration, when the platform speaks of a revoked key, and six times an hour: the list
has no tag and rarely changes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from custody.pace import Backoff
from custody.schemas.keys import Key
from multisig import Fingerprint
from signerd.account.platform import Platform
from signerd.account.sink import Sink
from signerd.core.accounts import Accounts
from signerd.core.effects import REGISTRATION
from signerd.core.key_status import ListedKey, revocation_of
from signerd.core.text import said
from signerd.core.values import OwnKey
from signerd.errors import PlatformAnswersWrongly, PlatformError, PlatformRefused, SignedOut, SignerdError
from signerd.feed import Troubles
from signerd.journal import Journal
from signerd.supervisor import unforeseen

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
    _listed: tuple[Key, ...] = field(default=(), init=False)

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
            pause.reset()
            await self._until_due()

    async def read_now(self) -> None:
        """Raises leaves of PlatformError, SignedOut."""
        network = self.journal.network.api_name
        self._listed = tuple(key for key in await self.platform.keys() if key.net == network)
        self.reads += 1
        key_id, base = self.journal.keys.platform_key_id(), self._base()
        if key_id is None or base is None:
            self.troubles.stand(KEYS, {})
            return
        told = revocation_of(base, key_id, [listed_key(key) for key in self._listed], self.now())
        if told is not None:
            self.sink.perform(self.journal.revoke(told))
        advice = None if told else self.accounts_of(base.key.fingerprint).advice
        self.troubles.stand(KEYS, {} if advice is None else {REGISTRATION: advice})

    def accounts_of(self, fingerprint: Fingerprint) -> Accounts:
        """The vault accounts of the device with this fingerprint: here, and at the platform when it was last read."""
        known = sum(
            own.purpose == "vault" and own.key.fingerprint == fingerprint for own in self.journal.own_keys()
        )
        for key in self._listed:
            if key.status == "active" and key.master_fingerprint.value == str(fingerprint):
                return Accounts(known, key.next_account or 0, key.free_accounts)
        return Accounts(known)

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
