"""Platforms in processes of their own over one database, called directly or as servers."""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import uvicorn

from benchmarks.custody.stage import UNLIMITED, Still, quiet
from custody.schemas.proposals import CreatePsbtRequest
from custody.server.app import Platform, open_platform
from custody.server.calls import Ctx
from custody.server.opening import PlatformDependencies
from custody.server.people.people import enter
from custody.server.proposals.paying import create_psbt
from custody.server.requests.changes import OutdatedDraft
from custody.server.rules.credentials import Caller
from custody.server.settings import Settings
from custody.server.web.listen import IDLE_SECONDS, ListenAddress, bind
from tests.support.platform import CHEAP, Clock, KeptMail

CONTEXT = multiprocessing.get_context("spawn")
START_SECONDS = 60.0


def beside(state: str, url: str) -> Platform:
    """Another platform over the same database, which does not follow the chain."""
    quiet()
    settings = Settings(
        state=Path(state),
        database_url=url,
        broadcast_wait_seconds=0,
        calls_per_minute=UNLIMITED,
        writes_per_minute=UNLIMITED,
    )
    platform = open_platform(settings, PlatformDependencies(clock=Clock(), hasher=CHEAP, mailer=KeptMail()))
    vars(platform.services.tools)["market"] = Still()
    return platform


def propose(platform: Platform, caller: Caller, request: CreatePsbtRequest) -> None:
    """The work of one create-psbt request, retried where another request took the coin or made the same
    transaction.
    """
    for tries in count():
        try:
            _propose(platform, caller, request, tries)
        except OutdatedDraft:
            continue
        return


def _propose(platform: Platform, caller: Caller, request: CreatePsbtRequest, tries: int) -> None:
    services = platform.services
    with services.store.read() as db:
        access = enter(db, caller, request.workspace_id, frozenset(), services.tools.clock())
        steps = create_psbt(Ctx(services, caller, db, access, tries=tries), request)
        next(steps)
    with services.store.write() as db, suppress(StopIteration):
        access = enter(db, caller, request.workspace_id, frozenset(), services.tools.clock())
        steps.send(Ctx(services, caller, db, access))


def _serve(state: str, url: str, pipe: Any) -> None:
    listener = bind(ListenAddress("127.0.0.1", 0), behind_proxy=False)
    app = beside(state, url).asgi
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", timeout_keep_alive=IDLE_SECONDS
    )
    pipe.send(listener.getsockname()[1])
    uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def serving(state: str, url: str) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port and pid."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_serve, args=(state, url, theirs))
    process.start()
    try:
        port = ours.recv()
        assert process.pid is not None, "it has told its port"
        yield port, process.pid
    finally:
        process.terminate()
        process.join(START_SECONDS)
