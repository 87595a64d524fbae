"""How a client is connected to the platform, for one that waits and for one that awaits. What they say and
hear is in ``flow``.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self

import httpx

from custody.client.flow import Core, Session, check_url
from custody.exchange import Awaiting, Waiting
from custody.receipts import Receipts
from custody.transports import AwaitingTransport, WaitingTransport, trust

OnSession = Callable[[Session | None], None]


def _core(
    base_url: str,
    now: Callable[[], float],
    session: Session | None,
    on_session: OnSession | None,
    receipts: Receipts | None,
) -> Core:
    jitter = random.SystemRandom().random
    core = Core(check_url(base_url), now, jitter, session)
    if receipts is not None:
        core.receipts = receipts
    if on_session is not None:
        core.on_session = on_session
    return core


class WaitingConnection(Waiting[Core]):
    """The blocking one. Use it as a context manager.

    ``on_session`` is told of every new session (renewed tokens) and of its end, so that the caller can store
    it. ``receipts`` remembers what the platform says of its audit log, and tells where it contradicts itself
    (`custody.receipts`). ``ca_file`` names a private certificate authority (PEM) to trust instead of the
    usual ones.

    Raises:
        InsecureUrl: for plain http to another machine.
    """

    def __init__(
        self,
        base_url: str,
        *,
        session: Session | None = None,
        on_session: OnSession | None = None,
        receipts: Receipts | None = None,
        transport: httpx.BaseTransport | None = None,
        ca_file: Path | None = None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        core = _core(base_url, now, session, on_session, receipts)
        self._http = httpx.Client(transport=transport, verify=trust(ca_file), trust_env=False)
        super().__init__(core, WaitingTransport(self._http), sleep)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


class AwaitingConnection(Awaiting[Core]):
    """For asyncio. Use it as an async context manager. Parameters as ``WaitingConnection``."""

    def __init__(
        self,
        base_url: str,
        *,
        session: Session | None = None,
        on_session: OnSession | None = None,
        receipts: Receipts | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        ca_file: Path | None = None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        core = _core(base_url, now, session, on_session, receipts)
        self._http = httpx.AsyncClient(transport=transport, verify=trust(ca_file), trust_env=False)
        super().__init__(core, AwaitingTransport(self._http), sleep)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.aclose()
