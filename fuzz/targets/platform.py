"""The platform's answers to a whole daemon with its real journal, tasks and loopback.

An input is JSON: for each call of the daemon the answer, as [status, headers, body]. A string body is sent
as it is. An input that is no such JSON is the answer to every call.
"""

import asyncio
import contextlib
import json
import logging
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import httpx

from fuzz.json_mutator import mutate
from fuzz.target import Target, require
from signerd.client import AsyncDaemonClient
from signerd.daemon.service import Daemon
from signerd.errors import DaemonFailed, SignerdError
from signerd.loopback.serve import serving
from tests.support.daemons import MemoryStore, daemon_at, prepare, until
from tests.support.desk import VAULT, VAULT_ID, snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import EMAIL, PASSWORD, FakePlatform
from tests.support.tokens import GOLD, HELD, call, published, token_snapshot, told_call

# How often the daemon is asked for each platform call while the platform lies.
ROUNDS = 2
# Loopback answers and honest rounds take milliseconds;
# a machine that is busy with other things may take seconds.
PATIENCE_SECONDS = 60.0
# What the daemon polls once a minute it polls ten times a second.
_HASTE = 600.0
_ON_THE_WAY_SECONDS = 0.001


def _hasty_clock() -> float:
    return time.monotonic() * _HASTE


class _Distant(FakePlatform):
    """A platform whose answers take a moment, so that the daemon's loop serves others meanwhile."""

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._answer_later)

    async def _answer_later(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(_ON_THE_WAY_SECONDS)
        return self.answer(request)


def check(data: bytes) -> None:
    """The daemon stays alive, answers its loopback, and accepts the next honest proposal."""
    logging.disable(logging.CRITICAL)
    try:
        asyncio.run(_live(_script(data)))
    finally:
        logging.disable(logging.NOTSET)


Script = dict[str, Callable[[], httpx.Response]]


def _script(data: bytes) -> Script:
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return {"": partial(httpx.Response, 200, content=data)}
    return {name: found for name, told in given.items() if (found := _answer(told)) is not None}


def _answer(told: object) -> Callable[[], httpx.Response] | None:
    """A new answer each time, which its receiver decodes: its Content-Encoding may be false."""
    match told:
        case [int(status), {**headers}, body] if 100 <= status < 600 and not isinstance(status, bool):
            raw = body if isinstance(body, str) else json.dumps(body)
            lines = [(_line(name), _line(value)) for name, value in headers.items()]
            sent = httpx.ByteStream(raw.encode("utf-8", "surrogatepass"))
            return partial(httpx.Response, status, headers=lines, stream=sent)
    return None


def _line(value: object) -> bytes:
    """A valid header value: a real connection carries no other."""
    return bytes(byte for byte in str(value).encode("utf-8", "replace") if 32 < byte < 127)[:200] or b"x"


def _answered(answer: Callable[[], httpx.Response] | None) -> httpx.Response | None:
    return None if answer is None else answer()


def _name(request: httpx.Request) -> str:
    single = "?psbt_id" if "psbt_id" in request.url.params else ""
    return f"{request.method} {request.url.path}{single}"


@cache
def _template() -> Path:
    """A state folder with a registered key and a pinned vault; made once, because that is slow."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz"))
    (folder / "state").mkdir(mode=0o700)
    prepare(folder / "state")
    return folder / "state"


async def _live(script: Script) -> None:
    with tempfile.TemporaryDirectory(prefix="fuzz") as scratch:
        state = Path(scratch) / "state"
        shutil.copytree(_template(), state, copy_function=shutil.copyfile)
        state.chmod(0o700)
        platform = _platform(Path(scratch))
        async with _running(state, platform) as (daemon, client):
            _stir(platform)
            platform.before = lambda request: _answered(script.get(_name(request), script.get("")))
            await _use(client, daemon)
            platform.before = lambda _request: None
            await _require_well(client, daemon, platform)


def _platform(folder: Path) -> FakePlatform:
    platform = _Distant(folder, {"p-1": snapshot_of(spend())})
    platform.published = {1: published(GOLD)}
    platform.holdings, platform.calls = [HELD], [told_call(1), told_call(2)]
    return platform


def _stir(platform: FakePlatform) -> None:
    """Makes the daemon ask about a token and for a new session."""
    platform.proposals["t-1"] = token_snapshot(call())
    platform.token = "ended"


@contextlib.asynccontextmanager
async def _running(state: Path, platform: FakePlatform) -> AsyncIterator[tuple[Daemon, AsyncDaemonClient]]:
    async with (
        daemon_at(state, platform, FakeBridge(), store=MemoryStore(), clock=_hasty_clock) as daemon,
        serving(daemon, state),
        AsyncDaemonClient(state) as client,
    ):
        await until(lambda: daemon.follower.rounds > 0 or daemon.task.done())
        require(not daemon.task.done(), "the daemon's tasks have ended")
        yield daemon, client


async def _use(client: AsyncDaemonClient, daemon: Daemon) -> None:
    """A person's actions meanwhile, so that every call is made. Refusals must have a code."""
    for _ in range(ROUNDS):
        daemon.keys.due.set()
        asked = len(daemon.feed.since(0))
        await _try(client.status())
        await _try(client.vaults())
        await _try(client.vault_tokens(VAULT_ID))
        for line in await _try(client.proposals(ended=True)) or ():
            shown = await _try(client.proposal(line.psbt_id))
            if shown is not None and shown.psbt_id != "p-1":
                await _try(client.decline(line.psbt_id, "no"))
            elif shown is not None:
                await _try(client.approve(line.psbt_id, shown.digest, shown.to_acknowledge))
        await asyncio.sleep(0.01 if len(daemon.feed.since(0)) > asked else 0.002)
    await _try(client.preview_pin(VAULT_ID))
    offered = await _try(client.preview_registration())
    if offered is not None:
        await _try(client.register(offered.device_id, offered.digest, replace=True))
    await _try(client.sign_out())
    await _try(client.sign_in(EMAIL, PASSWORD))
    await _try(client.confirm_sign_in("123456"))
    await asyncio.sleep(0.01)
    await _try(client.status())
    await _try(client.sign_out())


async def _try(asked: Awaitable[Any]) -> Any:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await asked
    except DaemonFailed:
        raise
    except SignerdError:
        return None


async def _require_well(client: AsyncDaemonClient, daemon: Daemon, platform: FakePlatform) -> None:
    require(not daemon.task.done(), "the daemon's tasks have ended")
    await _try(client.sign_in(EMAIL, PASSWORD))
    platform.proposals = {"p-9": snapshot_of(spend(n_inputs=3), "p-9")}
    rounds = daemon.follower.rounds
    try:
        await until(
            lambda: (
                daemon.follower.rounds > rounds
                and any(record.psbt_id == "p-9" for record in daemon.journal.records())
            ),
            PATIENCE_SECONDS,
        )
    except TimeoutError:
        require(promise=False, sentence=f"an honest proposal is not seen: {daemon.follower.trouble}")
    require(not daemon.task.done(), "the daemon's tasks have ended")
    status = await client.status()
    require(status.signed_in, "sign-in no longer works")
    require(daemon.journal.pin(VAULT_ID) is not None, "a pin is gone")
    pinned = daemon.journal.pin(VAULT_ID)
    require(pinned is not None and pinned.vault == VAULT, "a pinned vault is another one")
    require((await client.proposal("p-9")).psbt_id == "p-9", "a proposal cannot be shown")


def seeds() -> Iterator[bytes]:
    """The answers of an honest platform, one by one and all together."""
    heard = asyncio.run(_honest())
    yield from (json.dumps({name: answer}).encode() for name, answer in heard.items())
    yield json.dumps(heard).encode()
    yield json.dumps({name: [500, {}, {}] for name in heard}).encode()


async def _honest() -> dict[str, list[Any]]:
    heard: dict[str, list[Any]] = {}

    with tempfile.TemporaryDirectory(prefix="fuzz") as scratch:
        state = Path(scratch) / "state"
        shutil.copytree(_template(), state, copy_function=shutil.copyfile)
        state.chmod(0o700)
        platform = _platform(Path(scratch))

        def hear(request: httpx.Request) -> httpx.Response | None:
            platform.before = lambda _request: None
            response = platform.answer(request)
            platform.before = hear
            if response.status_code == httpx.codes.OK:
                kept = {"set-cookie", "etag"} & response.headers.keys()
                headers = {name: response.headers[name] for name in sorted(kept)}
                heard.setdefault(_name(request), [response.status_code, headers, response.json()])
            return response

        async with _running(state, platform) as (daemon, client):
            _stir(platform)
            platform.before = hear
            await _use(client, daemon)
    return heard


TARGET = Target("platform", check, seeds, largest=24_576, mutator=mutate, seconds=300)
