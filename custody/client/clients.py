"""The two clients, one blocking and one async. The protocol is in ``flow``, the calls in ``api``."""

import asyncio
import random
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self, TypeVar

import httpx

from custody.client.api import Api
from custody.client.body import Body
from custody.client.flow import Core, Exclusive, Plan, Send, Wait, check_url
from custody.client.session import Session

R = TypeVar("R")
DEFAULT_TIMEOUT = httpx.Timeout(20.0, connect=5.0)
OnSession = Callable[[Session | None], None]


def _core(
    base_url: str, now: Callable[[], float], session: Session | None, on_session: OnSession | None
) -> Core:
    jitter = random.SystemRandom().random
    core = Core(check_url(base_url), now, jitter, session)
    if on_session is not None:
        core.on_session = on_session
    return core


def _trust(ca_file: Path | None) -> ssl.SSLContext | bool:
    """Certificates are always verified: against the usual authorities, or a private one alone."""
    return True if ca_file is None else ssl.create_default_context(cafile=ca_file)


class Client(Api):
    """The blocking client. Use it as a context manager.

    ``on_session`` is told of every new session (renewed tokens) and of its end, so that the caller can store
    it. ``ca_file`` names a private certificate authority (PEM) to trust instead of the usual ones.

    Raises:
        InsecureUrl: for plain http to another machine.
    """

    def __init__(
        self,
        base_url: str,
        *,
        session: Session | None = None,
        on_session: OnSession | None = None,
        transport: httpx.BaseTransport | None = None,
        ca_file: Path | None = None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.core = _core(base_url, now, session, on_session)
        self._http = httpx.Client(
            transport=transport,
            verify=_trust(ca_file),
            timeout=DEFAULT_TIMEOUT,
            follow_redirects=False,
            trust_env=False,
        )
        self._sleep = sleep
        self._renewing = threading.Lock()

    def run(self, plan: Plan[R]) -> R:
        """Drive a plan to its answer."""
        result: httpx.Response | httpx.TransportError | None = None
        while True:
            try:
                step = plan.send(result)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]  # StopIteration does not carry the plan's type
            result = None
            match step:
                case Send(request):
                    result = self._perform(request)
                case Wait(seconds):
                    self._sleep(seconds)
                case Exclusive(inner):
                    with self._renewing:
                        self.run(inner)

    def _perform(self, request: httpx.Request) -> httpx.Response | httpx.TransportError:
        # httpx must not send cookies by itself: the client sets the refresh cookie, for one path only.
        self._http.cookies.clear()
        if "timeout" not in request.extensions:
            request.extensions["timeout"] = DEFAULT_TIMEOUT.as_dict()
        try:
            response = self._http.send(request, stream=True)
            try:
                body = Body(response)
                for piece in response.iter_bytes():
                    body.add(piece)
            finally:
                response.close()
        except httpx.TransportError as error:
            return error
        return body.whole()

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


class AsyncClient(Api):
    """The async client. Use it as an async context manager. Parameters as ``Client``."""

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
        self.core = _core(base_url, now, session, on_session)
        self._http = httpx.AsyncClient(
            transport=transport,
            verify=_trust(ca_file),
            timeout=DEFAULT_TIMEOUT,
            follow_redirects=False,
            trust_env=False,
        )
        self._sleep = sleep
        self._renewing = asyncio.Lock()

    async def run(self, plan: Plan[R]) -> R:
        """Drive a plan to its answer."""
        result: httpx.Response | httpx.TransportError | None = None
        while True:
            try:
                step = plan.send(result)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]  # StopIteration does not carry the plan's type
            result = None
            match step:
                case Send(request):
                    result = await self._perform(request)
                case Wait(seconds):
                    await self._sleep(seconds)
                case Exclusive(inner):
                    async with self._renewing:
                        await self.run(inner)

    async def _perform(self, request: httpx.Request) -> httpx.Response | httpx.TransportError:
        self._http.cookies.clear()
        if "timeout" not in request.extensions:
            request.extensions["timeout"] = DEFAULT_TIMEOUT.as_dict()
        try:
            response = await self._http.send(request, stream=True)
            try:
                body = Body(response)
                async for piece in response.aiter_bytes():
                    body.add(piece)
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            return error
        return body.whole()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.aclose()
