"""Worker processes: memory, start time, and the time to replace a killed one."""

import asyncio
import os
import signal
import socket
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any

from benchmarks.devices.desk import Desk
from benchmarks.devices.rivals import PATH, bridge_to
from firmware_bridge import Bridge, protocol
from firmware_bridge.enrolment import Registrations
from firmware_bridge.worker import spawn
from tests.support.virtual import NETWORK, vault
from tests.support.wallets import make_spend

_ROUNDS = 20


@dataclass(frozen=True)
class Memory:
    """KiB. `full`: shared files counted whole and once, as if no other Python ran on the machine."""

    proportional: int
    full: int


async def memory(desks: Iterable[Desk], registrations: Registrations) -> dict[str, Memory]:
    """The memory of the workers and their servers, with each device open and a transaction signed."""
    async with bridge_to([each.ours for each in desks], registrations) as bridge:
        for device in await bridge.list():
            await bridge.sign(device.id, make_spend(vault(), n_inputs=10), vault())
        workers = worker_pids(bridge)
        serving = _serving_pids()
        return {
            f"{len(workers)} workers": _memory(workers),
            "with servers": _memory([*workers, *serving]),
        }


def best_and_median(figures: list[float]) -> tuple[float, float]:
    return min(figures), statistics.median(figures)


async def ready_ms() -> list[float]:
    """From the request for a worker until it says hello."""
    return [await _hello_ms() for _ in range(_ROUNDS)]


async def replaced_ms(each: Desk) -> list[float]:
    """Kills a worker: how much longer the next operation takes than the best one with a worker."""
    async with bridge_to([each.ours]) as bridge:
        (device,) = await bridge.list()
        warm = min([await _xpub_ms(bridge, device.id) for _ in range(_ROUNDS)])
        return [await _after_kill_ms(bridge, device.id) - warm for _ in range(_ROUNDS)]


def worker_pids(bridge: Bridge) -> list[int]:
    records = bridge._roster.records.values()  # noqa: SLF001 - the figures are about what no caller sees
    return [pid for record in records if (pid := record.lane.worker_pid) is not None]


async def _hello_ms() -> float:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        started = time.perf_counter()
        process = await asyncio.to_thread(spawn, theirs, "trezor:udp:127.0.0.1:1", NETWORK.value)
        reader, writer = await asyncio.open_connection(sock=ours.dup())
        hello = await reader.readexactly(protocol.body_size(await reader.readexactly(protocol.HEADER_SIZE)))
        elapsed = time.perf_counter() - started
        protocol.decode(hello)
        writer.close()
    await asyncio.to_thread(process.join, 5)
    return elapsed * 1000


async def _after_kill_ms(bridge: Bridge, device_id: str) -> float:
    (pid,) = worker_pids(bridge)
    os.kill(pid, signal.SIGKILL)
    return await _xpub_ms(bridge, device_id)


async def _xpub_ms(bridge: Bridge, device_id: str) -> float:
    started = time.perf_counter()
    await bridge.xpub(device_id, PATH)
    return (time.perf_counter() - started) * 1000


def _serving_pids() -> list[int]:
    server: Any = forkserver._forkserver  # noqa: SLF001 - no public call tells them
    tracker: Any = resource_tracker._resource_tracker  # noqa: SLF001
    return [pid for pid in (server._forkserver_pid, tracker._pid) if pid is not None]  # noqa: SLF001


def _memory(pids: list[int]) -> Memory:
    fields = [_smaps(pid) for pid in pids]
    proportional = sum(each["Pss"] for each in fields)
    own = sum(each["Pss_Anon"] for each in fields)
    files = max((each["Rss"] - each["Anonymous"] for each in fields), default=0)
    return Memory(proportional, own + files)


def _smaps(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    return {name: int(value.split()[0]) for name, value in (line.split(":") for line in lines)}
