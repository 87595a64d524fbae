"""A whole daemon over a fake platform and a fake device, in the test's own loop."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from custody.common.pace import Backoff
from signerd.account.config import Config
from signerd.app import DaemonDependencies, open_daemon
from signerd.core.audit import Note
from signerd.core.states import State
from signerd.daemon.runner import KEPT_FIRST_SECONDS, KEPT_LONGEST_SECONDS
from signerd.daemon.service import Daemon
from signerd.journal import held
from signerd.runtime import FaultPoint, no_fault
from tests.support.desk import PROFILE_KEY, own_keys, prepared_journal, snapshot_of, spend
from tests.support.fake_platform import EMAIL, PASSWORD, URL, FakePlatform
from tests.support.patience import PATIENCE


@dataclass
class MemoryStore:
    """A secret store in memory. ``kept`` is what a restart would find."""

    kept: str | None = None
    mode: str = "memory"

    def load(self) -> str | None:
        return self.kept

    def save(self, secret: str) -> None:
        self.kept = secret

    def clear(self) -> None:
        self.kept = None


JITTER = 0.5
# Seconds between the retries of a kept signature, in a daemon of ``daemon_at``.
_KEPT = Backoff(lambda: JITTER, KEPT_FIRST_SECONDS, KEPT_LONGEST_SECONDS)
PAUSES_OF_KEPT = tuple(_KEPT.next() for _try in range(5))


def make_config(**changes: object) -> Config:
    platform = {"url": URL, "long_poll_seconds": 0}
    return Config.model_validate(
        {"network": "regtest", "platform": platform, "devices": {"usb": False}, **changes}
    )


async def hurried_sleep(seconds: float) -> None:
    """Does not wait: the order stays, without the pauses."""
    await asyncio.sleep(min(seconds, 0.005))


async def unhurried_sleep(seconds: float) -> None:
    """Short pauses, for a daemon that shares its processor with a browser."""
    await asyncio.sleep(min(seconds, 0.1))


def prepare(state: Path) -> None:
    """A state folder with a registered device, two accounts and the profile, and a pinned vault."""
    prepared_journal(state, (*own_keys(), PROFILE_KEY)).close()


@contextlib.asynccontextmanager
async def daemon_at(
    state: Path,
    platform: FakePlatform,
    bridge: Any,
    *,
    store: MemoryStore | None = None,
    config: Config | None = None,
    fault: FaultPoint = no_fault,
    sign_in: bool = True,
    sleep: Callable[[float], Awaitable[None]] = hurried_sleep,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[Daemon]:
    outside = DaemonDependencies(
        transport=transport or platform.transport,
        bridge=bridge,
        fault=fault,
        clock=clock,
        now=now,
        jitter=lambda: JITTER,
        sleep=sleep,
    )
    kept = MemoryStore() if store is None else store
    with held(state):
        async with open_daemon(config or make_config(), state, kept, outside) as daemon:
            if sign_in and kept.kept is None:
                await daemon.sign_in(EMAIL, PASSWORD)
            yield daemon


async def until(what: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Waits until it holds, while the loop runs."""
    async with asyncio.timeout(patience):
        while not what():  # noqa: ASYNC110 - what is waited for is anything, and has no event
            await asyncio.sleep(0.002)


def state_of(daemon: Daemon, psbt_id: str) -> State | None:
    """None where the journal does not have it."""
    return next((r.state for r in daemon.journal.records() if r.psbt_id == psbt_id), None)


async def until_state(daemon: Daemon, psbt_id: str, *states: State) -> None:
    def reached() -> bool:
        return any(r.psbt_id == psbt_id and r.state in states for r in daemon.journal.records())

    try:
        await until(reached)
    except TimeoutError:
        seen = [(r.state, r.reason) for r in daemon.journal.records() if r.psbt_id == psbt_id]
        raise AssertionError(
            f"{psbt_id} did not become {states}: {seen}; {daemon.feed.since(0, psbt_id)}"
        ) from None


async def approve(daemon: Daemon, psbt_id: str, *acknowledged: str) -> None:
    """Approves what is shown now, once the daemon has heard of it."""
    await until(lambda: state_of(daemon, psbt_id) is not None)
    shown = await daemon.proposal(psbt_id)
    await daemon.approve(psbt_id, shown.digest, frozenset(acknowledged))


async def submits(daemon: Daemon, psbt_id: str, *acknowledged: str) -> None:
    """The person approves what is shown now, the device signs it, and the platform has it."""
    await approve(daemon, psbt_id, *acknowledged)
    await until_state(daemon, psbt_id, State.SUBMITTED)


def told(daemon: Daemon, subject: str, kind: str) -> list[str]:
    """What the feed said of it, of this kind."""
    return [line.text for line in daemon.feed.since(0, subject) if line.kind == kind]


def noted(daemon: Daemon, kind: str) -> list[Note]:
    """What of this kind is in the chain of decisions."""
    return [entry.note for entry in daemon.journal.audit() if entry.note.kind == kind]


async def notices(daemon: Daemon, words: str) -> list[str]:
    """The notes of the status with these words."""
    return [note for note in (await daemon.status()).notes if words in note]


async def some_rounds(daemon: Daemon, more: int = 2) -> None:
    """Waits until the platform was asked a few times more."""
    rounds = daemon.follower.rounds
    await until(lambda: daemon.follower.rounds > rounds + more)


async def is_well(daemon: Daemon, fake: FakePlatform) -> None:
    """Whether the daemon still works: the honest proposal is signed, and the next one seen."""
    await submits(daemon, "p-1")
    fake.proposals["p-2"] = snapshot_of(spend(n_inputs=3), "p-2")
    await until_state(daemon, "p-2", State.WAITING_PERSON)
    assert not daemon.task.done()
    assert (await daemon.status()).signed_in
