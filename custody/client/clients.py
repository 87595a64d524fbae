"""The blocking client; ``awaiting`` has the one for asyncio. The protocol is in ``flow``."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from custody.client.api import Api
from custody.client.flow import Core, OnSession, Session
from custody.common.exchange import HttpRequest, Outcome, Waiting
from custody.common.plain_http import perform, tls_for


class Client(Api, Waiting[Core]):
    """Use it as a context manager.

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
        core = Core(base_url, now, session, on_session)
        super().__init__(core, transport or partial(perform, tls=tls_for(base_url, ca_file)), sleep)
