"""Platforms in processes of their own over one database: as services that are called, or as servers that answer requests."""

import multiprocessing
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from benchmarks.custody.stage import UNLIMITED, Still, quiet
from custody.schemas.proposals import CreatePsbtRequest
from custody.server.app import Outside, Platform, Settings, open_platform
from custody.server.domain.caller import Caller
from tests.support.custody import Desk
from tests.support.platform import CHEAP, Clock, KeptMail

CONTEXT = multiprocessing.get_context("spawn")
START_SECONDS = 60.0
CLIENTS = 4


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
    """What a request does between its door and its answer."""
    services = platform.services
    with services.store.read() as db:
        access = services.people.enter(db, caller, request.workspace_id, frozenset())
        prepared = services.proposals.draft(db, caller, access, request)
    with services.store.write() as db:
        access = services.people.enter(db, caller, request.workspace_id, frozenset())
        services.proposals.create(db, caller, access, request, prepared)


def _work(state: str, url: str, caller: Caller, body: dict[str, Any], seconds: float, pipe: Any) -> None:
    platform, request = beside(state, url), CreatePsbtRequest.model_validate(body)
    propose(platform, caller, request)
    pipe.send("ready")
    pipe.recv()
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        try:
            propose(platform, caller, request)
        except Exception as error:
            if type(error).__name__ != "Outdated":
                raise
            continue
        done += 1
    pipe.send(done / (time.perf_counter() - began))
    platform.close()


def together(
    state: Path, url: str, caller: Caller, body: dict[str, Any], count: int, seconds: float
) -> float:
    """Proposals a second of so many processes that begin at the same time."""
    pipes, processes = [], []
    for _ in range(count):
        ours, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=_work, args=(str(state), url, caller, body, seconds, theirs))
        process.start()
        pipes.append(ours)
        processes.append(process)
    for pipe in pipes:
        pipe.recv()
    for pipe in pipes:
        pipe.send("go")
    total = sum(pipe.recv() for pipe in pipes)
    for process in processes:
        process.join(START_SECONDS)
    return float(total)


def _serve(state: str, url: str, pipe: Any) -> None:
    platform = beside(state, url)
    listener = socket.create_server(("127.0.0.1", 0))
    pipe.send(listener.getsockname()[1])
    config = uvicorn.Config(platform.asgi, log_config=None, access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def servers(state: Path, url: str, count: int) -> Iterator[list[str]]:
    """The addresses of so many servers."""
    processes, addresses = [], []
    try:
        for _ in range(count):
            ours, theirs = CONTEXT.Pipe()
            process = CONTEXT.Process(target=_serve, args=(str(state), url, theirs))
            process.start()
            processes.append(process)
            addresses.append(f"http://127.0.0.1:{ours.recv()}")
        yield addresses
    finally:
        for process in processes:
            process.terminate()
            process.join(START_SECONDS)


def posted(
    desk: Desk, addresses: list[str], calls: list[tuple[str, str, dict[str, Any]]], *, clients: int = CLIENTS
) -> float:
    """Answers a second to these calls (who, path, body), from clients that share them."""
    people = {"admin": desk.admin, **desk.signers}
    with ExitStack() as stack:
        https = [
            stack.enter_context(httpx.Client(base_url=addresses[number % len(addresses)], timeout=30))
            for number in range(clients)
        ]

        def post(number: int) -> None:
            for who, path, body in calls[number::clients]:
                answer = https[number].post(path, json=body, headers=people[who].headers)
                if answer.status_code != 200:
                    raise RuntimeError(answer.text)

        for http in https:
            http.get("/health")
        with ThreadPoolExecutor(clients) as pool:
            began = time.perf_counter()
            list(pool.map(post, range(clients)))
            return len(calls) / (time.perf_counter() - began)
