"""What the daemon is given from outside: clocks, randomness, devices; its fault points, for tests;
and what runs beside its work.

A fault point's name is ``<where>:<before|after>:<what>``, for instance ``journal:after:Approved``,
``platform:before:sign_psbt`` or ``device:after:sign``. In production the hook does nothing. The crash tests
pass one that kills the process at the n-th point.
"""

import asyncio
import contextlib
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

    from firmware_bridge import Bridge

FaultPoint = Callable[[str], None]


def no_fault(_point: str) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class DaemonDependencies:
    """``now``: Unix seconds; ``clock``: monotonic ones; ``jitter``: 0 to 1; ``entropy``: random bytes."""

    transport: "httpx.AsyncBaseTransport | None" = None
    bridge: "Bridge | None" = None
    fault: FaultPoint = no_fault
    now: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    entropy: Callable[[int], bytes] = os.urandom


USUAL = DaemonDependencies()


@contextlib.asynccontextmanager
async def alongside(work: Coroutine[Any, Any, object]) -> AsyncIterator[asyncio.Task[object]]:
    """Run it during the body."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
