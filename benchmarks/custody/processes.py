"""Platforms in processes of their own over one database: as services that are called, or as servers that answer requests."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import count, cycle
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from benchmarks.custody.bare import Bare, bare_engine
from benchmarks.custody.bare_http import bare_asgi
from benchmarks.custody.stage import UNLIMITED, Still, quiet
from custody.schemas.proposals import CreatePsbtRequest, SignPsbtRequest
from custody.server.app import Outside, Platform, Settings, open_platform
from custody.server.domain.caller import Caller
from custody.server.listen import Address, bind
from custody.server.service.people.people import place_question
from custody.server.service.proposals.verifying import read_returned, verify_returned
from custody.server.service.requests.outdated import Outdated
from custody.server.service.vaults.moving import vault_question
from tests.support.platform import CHEAP, Clock, KeptMail

CONTEXT = multiprocessing.get_context("spawn")
START_SECONDS = 60.0
CLIENTS = 4
_HOLD = "custody_database_write_hold_seconds_sum"


@dataclass(frozen=True)
class Done:
    """So many, in so many seconds, of which so many inside the writers' turn, the commit with it."""

    count: int
    seconds: float
    held: float


@dataclass(frozen=True)
class Call:
    """A request that is ready to be sent: whose (their headers), where to, the body's bytes."""

    headers: dict[str, str]
    path: str
    body: bytes


def beside(state: str, url: str) -> Platform:
    """Another platform of the same database, which does not follow the chain."""
    quiet()
    settings = Settings(
        state=Path(state),
        database_url=url,
        broadcast_wait_seconds=0,
        calls_per_minute=UNLIMITED,
        writes_per_minute=UNLIMITED,
    )
    platform = open_platform(settings, Outside(clock=Clock(), hasher=CHEAP, mailer=KeptMail()))
    vars(platform.services.proposals)["_market"] = Still()
    return platform


def propose(platform: Platform, caller: Caller, request: CreatePsbtRequest) -> None:
    """What a request does between its door and its answer: again, where another took the coin or made the same transaction."""
    for tries in count():
        try:
            _propose(platform, caller, request, tries)
        except Outdated:
            continue
        return


def _propose(platform: Platform, caller: Caller, request: CreatePsbtRequest, tries: int) -> None:
    services = platform.services
    place = place_question(caller.user_id, request.workspace_id)
    with services.store.read(lambda: (place, vault_question(request.wallet_id))) as db:
        access = services.people.enter(db, caller, request.workspace_id, frozenset())
        prepared = services.proposals.draft(db, caller, access, request, tries=tries)
    with services.store.write(lambda: (place, *prepared.questions)) as db:
        access = services.people.enter(db, caller, request.workspace_id, frozenset())
        services.proposals.create(db, caller, access, request, prepared)


def approve(platform: Platform, caller: Caller, request: SignPsbtRequest) -> None:
    """The same for a signed PSBT."""
    services = platform.services
    place = place_question(caller.user_id, request.workspace_id)
    with services.store.read(lambda: (place, *services.signing.questions(caller, request))) as db:
        access = services.people.enter(db, caller, request.workspace_id, frozenset())
        sought = services.signing.expect(db, caller, access, request)
    verified = verify_returned(read_returned(request, sought.txid), sought)
    with services.store.write(lambda: (place, *sought.questions_for(verified))) as db:
        access = services.people.enter(db, caller, request.workspace_id, frozenset())
        services.signing.submit(db, caller, access, request, verified)


class _Work:
    """What a process does when it is told to. Each returns how many it did."""

    def __init__(self, state: str, url: str, caller: Caller, bodies: Sequence[dict[str, Any]]) -> None:
        self._platform, self._caller = beside(state, url), caller
        self._requests = cycle([CreatePsbtRequest.model_validate(body) for body in bodies])
        # As a server has it: connections and statements are there.
        propose(self._platform, caller, next(self._requests))
        self._bare = Bare(self._platform.services.store, bare_engine(url))
        self._bare.propose()

    @property
    def held(self) -> float:
        """Seconds that this process's platform has held the writers' turn."""
        return self._platform.services.store.meters.registry.get_sample_value(_HOLD) or 0.0

    def propose(self, seconds: float) -> int:
        return _until(seconds, lambda: propose(self._platform, self._caller, next(self._requests)))

    def approve(self, given: Sequence[tuple[Caller, SignPsbtRequest]]) -> int:
        for caller, request in given:
            approve(self._platform, caller, request)
        return len(given)

    def propose_bare(self, seconds: float) -> int:
        return _until(seconds, self._bare.propose)

    def approve_bare(self, count: int) -> int:
        ids = self._bare.ids[-count:]
        for place in (0, 1):
            for one in ids:
                self._bare.approve(one, place)
        del self._bare.ids[-count:]
        return 2 * len(ids)

    def close(self) -> None:
        self._platform.close()


def _until(seconds: float, work: Callable[[], object]) -> int:
    done, ends_at = 0, time.perf_counter() + seconds
    while time.perf_counter() < ends_at:
        work()
        done += 1
    return done


def _worker(state: str, url: str, caller: Caller, bodies: Sequence[dict[str, Any]], pipe: Any) -> None:
    work = _Work(state, url, caller, bodies)
    pipe.send("ready")
    while (order := pipe.recv()) is not None:
        what, given = order
        held, began = work.held, time.perf_counter()
        count = getattr(work, what)(given)
        pipe.send(Done(count, time.perf_counter() - began, work.held - held))
    work.close()


class Team:
    """Processes that wait for orders."""

    def __init__(self, pipes: Sequence[Any]) -> None:
        self._pipes = pipes

    def do(self, what: str, given: Sequence[Any]) -> list[Done]:
        """The first of them, each its own part, at the same time."""
        for pipe, part in zip(self._pipes, given, strict=False):
            pipe.send((what, part))
        return [pipe.recv() for pipe, _ in zip(self._pipes, given, strict=False)]


@contextmanager
def team(
    state: str, url: str, caller: Caller, bodies: Sequence[dict[str, Any]], count: int
) -> Iterator[Team]:
    pipes, processes = [], []
    for _ in range(count):
        ours, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=_worker, args=(state, url, caller, bodies, theirs))
        process.start()
        pipes.append(ours)
        processes.append(process)
    try:
        for pipe in pipes:
            pipe.recv()
        yield Team(pipes)
        for pipe in pipes:
            pipe.send(None)
    finally:
        for process in processes:
            process.join(START_SECONDS)


def serve_platform(state: str, url: str, pipe: Any) -> None:
    _serve(beside(state, url).asgi, pipe)


def serve_bare(state: str, url: str, pipe: Any) -> None:
    bare = Bare(beside(state, url).services.store, bare_engine(url))
    _serve(bare_asgi(bare), pipe)


def _serve(app: ASGIApp, pipe: Any) -> None:
    listener = bind(Address("127.0.0.1", 0), behind_proxy=False)
    pipe.send(listener.getsockname()[1])
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def servers(serve: Callable[[str, str, Any], None], state: str, url: str, count: int) -> Iterator[list[int]]:
    """The ports of so many servers: the platform's, or the bare database's."""
    processes, ports = [], []
    try:
        for _ in range(count):
            ours, theirs = CONTEXT.Pipe()
            process = CONTEXT.Process(target=serve, args=(state, url, theirs))
            process.start()
            processes.append(process)
            ports.append(ours.recv())
        yield ports
    finally:
        for process in processes:
            process.terminate()
            process.join(START_SECONDS)


def posted(ports: Sequence[int], calls: Sequence[Call], *, clients: int = CLIENTS) -> float:
    """Seconds until all calls are answered, by clients that share them. A client is as little as sends bytes and reads them: it
    has the servers' cores.
    """
    with ExitStack() as stack:
        connections = []
        for number in range(clients):
            connection = HTTPConnection("127.0.0.1", ports[number % len(ports)], timeout=30)
            stack.callback(connection.close)
            connection.request("GET", "/health")
            connection.getresponse().read()
            connections.append(connection)

        def post(number: int) -> None:
            for call in calls[number::clients]:
                connections[number].request("POST", call.path, call.body, call.headers)
                answer = connections[number].getresponse()
                text = answer.read()
                if answer.status != 200:
                    raise RuntimeError(text.decode())

        with ThreadPoolExecutor(clients) as pool:
            began = time.perf_counter()
            list(pool.map(post, range(clients)))
            return time.perf_counter() - began
