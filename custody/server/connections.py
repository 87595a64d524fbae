"""Bounds on connections: how long a request may take to arrive, how long it may be, and how many there are.
A reverse proxy does this better, but may be missing or misconfigured: then a few machines that send a byte a
minute must not take every connection (slow loris).
"""

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# From the connection, or the first byte of a later request on it, to the end of the headers; and from there
# to the end of the body.
HEADER_SECONDS: Final = 10.0
BODY_SECONDS: Final = 30.0
# Between two requests on one connection: longer than the proxy's own limit (nginx: 60 s), so that the proxy
# never sends a request on a connection that we are closing.
IDLE_SECONDS: Final = 65
MAX_HEADER_BYTES: Final = 32 * 1024
# Below the 1,024 files that a process may have open by default. Beyond them requests are
# answered with 503.
MAX_CONNECTIONS: Final = 800
# This many more are accepted and answered with 503; further ones are closed at once.
SPARE_CONNECTIONS: Final = 64


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol, which would wait for ever for the rest of a request, with a deadline for each
    part.
    """

    _phase: object = None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        if len(self.connections) > MAX_CONNECTIONS + SPARE_CONNECTIONS:
            self.transport.abort()
        else:
            self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None, 0)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # Nothing of a next request has arrived: uvicorn's keep-alive timeout applies from now on.
        if self.conn.their_state is h11.IDLE:
            self._expect(None, 0)

    def _look(self) -> None:
        """Called when data arrived. More data of the same part does not move its deadline."""
        state: Any = self.conn.their_state
        if state is h11.IDLE:
            self._expect(state, HEADER_SECONDS)
        elif state is h11.SEND_BODY:
            self._expect(state, BODY_SECONDS)
        else:
            self._expect(None, 0)

    def _expect(self, phase: object, seconds: float) -> None:
        if phase is self._phase:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._phase = phase
        self._deadline = None if phase is None else self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
