"""The blocking client's connection to the platform; ``awaiting`` has the one for asyncio. The protocol is in
``flow``.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from custody.client.flow import Core, Session, check_url
from custody.common.exchange import HttpRequest, Outcome, Waiting
from custody.common.plain_http import PlainTransport, tls_for

OnSession = Callable[[Session | None], None]


def make_core(
    base_url: str,
    now: Callable[[], float],
    session: Session | None,
    on_session: OnSession | None,
) -> Core:
    jitter = random.SystemRandom().random
    core = Core(check_url(base_url), now, jitter, session)
    if on_session is not None:
        core.on_session = on_session
    return core


class WaitingConnection(Waiting[Core]):
    """The blocking connection. Use it as a context manager.

    ``on_session`` is called with every new session (renewed tokens) and with None at its end, so that the
    caller can store it. ``ca_file``: a private certificate authority (PEM) that replaces
    the usual ones.

    ``transport`` replaces the network.

    Raises:
        InsecureUrl: for plain http to another machine. OSError: for a ``ca_file`` that cannot be used.
    """

    def __init__(
        self,
        base_url: str,
        *,
        session: Session | None = None,
        on_session: OnSession | None = None,
        transport: Callable[[HttpRequest], Outcome] | None = None,
        ca_file: Path | None = None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        core = make_core(base_url, now, session, on_session)
        super().__init__(core, transport or PlainTransport(tls=tls_for(base_url, ca_file)), sleep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held between two calls."""
