"""The loopback's latency: ``GET /v1/devices`` compared with a bare route and with ``hwi enumerate``, and
events.

The daemon and the bare route are processes of their own; the client is plain ``http.client`` on one
persistent connection. The daemon has a real bridge to a virtual Trezor;
the platform is a fake one in its own process.
"""

import asyncio
import contextlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.devices.command import hwi
from benchmarks.devices.desk import Device
from benchmarks.idle import cpu_ms, memory_mb
from firmware_bridge import Bridge, DeviceState
from firmware_bridge.model import Endpoint, Family
from tests.support.virtual import NETWORK, vault
from tests.support.wallets import make_spend

CALLS = int(os.environ.get("BENCH_CALLS", "2000"))
STREAMS = 100
TURN = 250
LINES = 50
HEADERS = {"Host": "signerd"}


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("signerd", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self._path)


def timed(
    connection: http.client.HTTPConnection, path: str, headers: dict[str, str], calls: int
) -> list[float]:
    """Milliseconds of each call."""
    spent = []
    for _ in range(calls):
        started = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        spent.append((time.perf_counter() - started) * 1000)
    return spent


# --- the processes that are asked ---------------------------------------------------------------------------


async def bare() -> None:
    """A FastAPI route that answers a list of one device, behind uvicorn's defaults."""
    import uvicorn
    from fastapi import FastAPI

    app = FastAPI()

    @app.get("/v1/devices")
    async def devices() -> list[dict[str, str]]:
        return [{"id": "a", "state": "ready", "model": "Trezor"}]

    # IPPROTO_TCP as ours: only then asyncio sets TCP_NODELAY, without which an answer waits 40 ms.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    print(json.dumps({"port": listening.getsockname()[1]}), flush=True)
    await server.serve(sockets=[listening])


async def daemon(folder: Path, endpoint: str) -> None:
    """Obeys standard input: ``line`` adds one to the feed, ``sign`` signs in a loop until ``rest``."""
    from signerd.loopback.access.gates import AppRates
    from signerd.loopback.serve import serving
    from tests.support.daemons import daemon_at, prepare
    from tests.support.served import make_outer

    # Lifts the rate limit of an app.
    AppRates.take = lambda _self, _who: None  # type: ignore[method-assign,assignment]  # the bound alone: its timing is measured too
    state = folder / "s"
    state.mkdir(mode=0o700)
    prepare(state)
    platform = make_outer(folder).platform
    places = [Endpoint.parse(endpoint)]
    async with (
        Bridge(network=NETWORK, endpoints=places, usb=False) as bridge,
        # With usual pauses: short ones would poll the platform ten times a second.
        daemon_at(state, platform, bridge, sleep=asyncio.sleep) as service,
        serving(service, state, port=0, clock=time.monotonic) as path,
    ):
        while not [one for one in await bridge.refresh() if one.state is DeviceState.READY]:  # noqa: ASYNC110 - asked, as a person asks
            await asyncio.sleep(0.1)
        asked = await service.apps.ask("Bench", frozenset({"read"}), None)
        await service.apps.accept(asked.id, asked.code, rights=None, days=1)
        token = (await service.apps.collect(asked.id, asked.secret)).token
        how = {"port": service.page_address.port, "token": token, "socket": str(path)}
        print(json.dumps(how), flush=True)
        await _obey(service, bridge)


async def _obey(service: Any, bridge: Bridge) -> None:
    signing: asyncio.Task[None] | None = None
    loop = asyncio.get_running_loop()
    while word := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        if word == "line":
            service.feed.add("bench", "info", str(time.monotonic_ns()))
        elif word == "sign":
            signing = asyncio.create_task(_sign(bridge))
        elif signing is not None:
            signing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await signing


async def _sign(bridge: Bridge) -> None:
    (device,) = await bridge.list()
    payment = make_spend(vault(), n_inputs=10)
    while True:
        await bridge.sign(device.id, payment, vault())


@contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    command = [sys.executable, "-m", "benchmarks.loopback", *arguments]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    try:
        yield started, json.loads(started.stdout.readline())
    finally:
        started.terminate()
        started.wait(20)


# --- what is measured ---------------------------------------------------------------------------------------


def say(running: subprocess.Popen[str], word: str) -> None:
    assert running.stdin is not None
    running.stdin.write(word + "\n")
    running.stdin.flush()


def latencies(
    running: subprocess.Popen[str], told: dict[str, Any], streams: int
) -> tuple[float, float, float]:
    """From a line in the feed to its reader: the median and the slowest of ``streams`` readers, and their
    memory in megabytes.
    """
    before = memory_mb(running.pid)[0]
    with ExitStack() as stack:
        readers = [stack.enter_context(_stream(told["socket"])) for _ in range(streams)]
        spent = []
        for _ in range(LINES):
            say(running, "line")
            spent += [_line(reader) for reader in readers]
        grown = memory_mb(running.pid)[0] - before
    return statistics.median(spent), max(spent), grown


@contextmanager
def _stream(path: str) -> Iterator[Any]:
    connection = _Unix(path)
    connection.request("GET", "/v1/events?subject=bench", headers=HEADERS)
    try:
        yield connection.getresponse()
    finally:
        connection.close()


def _line(reader: Any) -> float:
    while True:
        text = reader.readline()
        if text.startswith(b"data: "):
            sent = int(json.loads(text[6:])["text"])
            return (time.monotonic_ns() - sent) / 1e6


def rows(
    told: dict[str, Any], bare_port: int
) -> dict[str, tuple[http.client.HTTPConnection, dict[str, str]]]:
    port = told["port"]
    return {
        "a bare FastAPI route": (http.client.HTTPConnection("127.0.0.1", bare_port), {}),
        "over TCP, with a token": (
            http.client.HTTPConnection("127.0.0.1", port),
            {"Authorization": f"Bearer {told['token']}"},
        ),
        "over the socket": (_Unix(told["socket"]), HEADERS),
    }


def show(title: str, told: dict[str, Any], pids: tuple[int, int]) -> None:
    """Measures in turns under the same noise, with the processor time of the answering process."""
    print(f"\nGET /v1/devices, {title}, {CALLS} calls each, in turns")
    print(f"{'':>26} {'p50 ms':>8} {'p99 ms':>8} {'CPU ms':>8} {'÷ bare':>7}")
    served, bare_port = pids[0], told["bare"]
    asked = rows(told, bare_port)
    spent: dict[str, list[float]] = {name: [] for name in asked}
    cpu = dict.fromkeys(asked, 0.0)
    for _ in range(max(CALLS // TURN, 1)):
        for number, (name, (connection, headers)) in enumerate(asked.items()):
            pid = pids[1] if number == 0 else served
            before = cpu_ms(pid)
            spent[name] += timed(connection, "/v1/devices", headers, TURN)
            cpu[name] += cpu_ms(pid) - before
    base = cpu["a bare FastAPI route"]
    for name, times in spent.items():
        times.sort()
        p50, p99 = statistics.median(times), times[int(len(times) * 0.99)]
        print(f"{name:>26} {p50:8.3f} {p99:8.3f} {cpu[name] / len(times):8.3f} {cpu[name] / base:7.2f}")
        asked[name][0].close()


def best_enumerate_ms() -> float:
    def once() -> float:
        started = time.perf_counter()
        asyncio.run(hwi("enumerate"))
        return (time.perf_counter() - started) * 1000

    return min(once() for _ in range(3))


def while_it_waits(folder: Path, bare: tuple[int, dict[str, Any]]) -> None:
    """While a device waits for its button, which is most of the time of a signing."""
    folder.mkdir()
    device = Device.start(Family.TREZOR, folder, waits=True)
    try:
        with process("daemon", str(folder), str(device.endpoint)) as (running, told):
            say(running, "sign")
            device.wait_for_prompt()
            told["bare"] = bare[1]["port"]
            show("while a payment waits on a virtual Trezor's screen", told, (running.pid, bare[0]))
    finally:
        device.stop()


def measure(folder: Path) -> None:
    device = Device.start(Family.TREZOR, folder)
    try:
        with (
            process("daemon", str(folder), str(device.endpoint)) as (running, told),
            process("bare") as (plain, base),
        ):
            told["bare"] = base["port"]
            print(f"load {os.getloadavg()[0]:.1f} when it began")
            show("at rest", told, (running.pid, plain.pid))
            print(f"{'hwi enumerate':>26} {best_enumerate_ms():8.1f}")
            say(running, "sign")
            show("while a virtual Trezor signs ten inputs, again and again", told, (running.pid, plain.pid))
            say(running, "rest")
            for streams in (1, STREAMS):
                middle, slowest, grown = latencies(running, told, streams)
                print(
                    f"\n{streams} event streams: a line reaches its reader in {middle:.2f} ms "
                    f"(slowest {slowest:.1f}); "
                    f"{grown:.1f} MB more resident"
                )
            while_it_waits(folder / "waits", (plain.pid, base))
    finally:
        device.stop()


def main() -> None:
    if sys.platform != "linux":
        print("loopback: only Linux tells what a process costs")
        return
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        measure(Path(folder))


PARTS: dict[str, Callable[..., Any]] = {
    "bare": bare,
    "daemon": lambda folder, place: daemon(Path(folder), place),
}

if __name__ == "__main__":
    asyncio.run(PARTS[sys.argv[1]](*sys.argv[2:]))
