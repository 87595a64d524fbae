"""The client for asyncio: over httpx."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import httpx

from custody.client.api import Api
from custody.client.flow import Core, OnSession, Session
from custody.common.exchange import Awaiting
from custody.common.plain_http import trust
from custody.common.transports import perform


class AsyncClient(Api, Awaiting[Core]):
    """Use it as an async context manager. Parameters as ``Client``; ``transport`` is httpx's."""

    def __init__(
        self,
        base_url: str,
        *,
        session: Session | None = None,
        on_session: OnSession | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        ca_file: Path | None = None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        core = Core(base_url, now, session, on_session)
        over = transport or httpx.AsyncHTTPTransport(verify=trust(ca_file), trust_env=False)
        http = httpx.AsyncClient(transport=over, trust_env=False)
        super().__init__(core, partial(perform, http), sleep, http.aclose)
