"""Three attached idle devices: CPU time and memory of our processes, and what reaches the devices.

A device is a sleeping process that any message wakes: its wake-ups count all that it receives, on any socket.
"""

import asyncio
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.devices.desk import Device
from benchmarks.measure import best_ms
from firmware_bridge import Bridge, Deadlines, DeviceState
from firmware_bridge.bridge import LOOK_SECONDS
from firmware_bridge.model import Family, Listing
from firmware_bridge.presence import endpoint_listing, sysfs_listing
from tests.support.virtual import NETWORK

FAMILIES = (Family.TREZOR, Family.COLDCARD, Family.LEDGER)
SECONDS = 30.0
# Workers end at once, and the measurement begins then.
DEADLINES = Deadlines(idle=0.2)
SETTLING_SECONDS = 20.0
BUS = 30
SIGNING = ((0xD13E, 0xCC10, "03"), (0x2C97, 0x5011, "03"), (0x1209, 0x53C1, "ff"))


def descendants() -> list[int]:
    """Our descendants without the virtual devices."""
    parents = {int(path.name): parent for path in Path("/proc").glob("[0-9]*") if (parent := parent_of(path))}
    found, fresh = [], [os.getpid()]
    while fresh:
        fresh = [number for number, parent in parents.items() if parent in fresh]
        found += fresh
    return found


def parent_of(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def cpu_ms(number: int) -> float:
    tasks = Path(f"/proc/{number}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6


def wake_ups(number: int) -> int:
    lines = [
        line
        for task in Path(f"/proc/{number}/task").glob("*/status")
        for line in task.read_text().splitlines()
    ]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def what_is(number: int) -> str:
    """The role of a process: this one, multiprocessing's fork server, or its resource tracker."""
    if number == os.getpid():
        return "this process"
    return "tracker" if "resource_tracker" in Path(f"/proc/{number}/cmdline").read_text() else "fork server"


def memory_mb(number: int) -> tuple[float, float]:
    """Resident (RSS) and proportional (PSS) set size."""
    fields = dict(
        line.split(":") for line in Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()[1:]
    )
    resident, share = (int(fields[name].split()[0]) / 1024 for name in ("Rss", "Pss"))
    return resident, share


async def attached(bridge: Bridge, devices: list[Device]) -> list[int]:
    """Waits until all three are ready and their workers have ended; returns our other remaining processes."""
    theirs = {device.process.pid for device in devices}
    until = time.monotonic() + SETTLING_SECONDS
    before: list[int] = []
    while time.monotonic() < until:
        await asyncio.sleep(2 * DEADLINES.idle)
        states = [device.state for device in await bridge.list()]
        ours = [number for number in descendants() if number not in theirs]
        if states == [DeviceState.READY] * len(devices) and ours == before:
            return ours
        before = ours
    raise RuntimeError("the devices were not ready in time")


async def measure(devices: list[Device]) -> None:
    pids = [device.process.pid for device in devices]
    fresh = [wake_ups(number) for number in pids]
    endpoints = [device.endpoint for device in devices]
    async with Bridge(network=NETWORK, endpoints=endpoints, deadlines=DEADLINES) as bridge:
        watching = asyncio.create_task(bridge.watch())
        ours = [os.getpid(), *await attached(bridge, devices)]
        probed, cpu, began = [wake_ups(n) for n in pids], [cpu_ms(n) for n in ours], time.monotonic()
        await asyncio.sleep(SECONDS)
        lasted, cpu_after = time.monotonic() - began, [cpu_ms(n) for n in ours]
        heard = [wake_ups(number) - earlier for number, earlier in zip(pids, probed, strict=True)]
        used = [later - earlier for later, earlier in zip(cpu_after, cpu, strict=True)]
        states = {str(device.family): str(device.state) for device in await bridge.list()}
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        print(f"{'':>16} {'state':>8} {'woken by its probe':>19} {'woken while idle':>17}")
        for device, first, then, woken in zip(devices, fresh, probed, heard, strict=True):
            family = str(device.endpoint.family)
            print(f"{family:>16} {states[family]:>8} {then - first:19} {woken:17}")
        print(f"{'':>16} {'CPU ms/s':>8} {'% of a core':>19} {'RSS MB':>17} {'PSS MB':>8}")
        for number, ms in zip(ours, used, strict=True):
            resident, share = memory_mb(number)
            print(
                f"{what_is(number):>16} {ms / lasted:8.3f} {ms / lasted / 10:19.4f} "
                f"{resident:17.1f} {share:8.1f}"
            )
        print(f"{'together':>16} {sum(used) / lasted:8.3f} {sum(used) / lasted / 10:19.4f}")


def plug(root: Path, port: int, vendor: int, product: int, kind: str) -> None:
    folder = root / f"1-{port}"
    interface = folder / f"1-{port}:1.0"
    interface.mkdir(parents=True)
    (root / interface.name).symlink_to(interface)
    texts = {"idVendor": f"{vendor:04x}", "idProduct": f"{product:04x}", "busnum": "1", "devnum": str(port)}
    for name, text in texts.items():
        (folder / name).write_text(text)
    (interface / "bInterfaceClass").write_text(kind)


def _look(runner: asyncio.Runner, listing: Listing) -> None:
    async def look() -> None:
        await listing([])

    runner.run(look())


def look_ms(root: Path, devices: list[Device]) -> None:
    """The cost of one look, of the two kinds that a bridge takes."""
    for port in range(1, BUS + 1):
        plug(root, port, *(SIGNING[port - 1] if port <= len(SIGNING) else (0x046D, 0xC52B, "03")))
    bus = sysfs_listing(root, root / "dev")
    emulators = endpoint_listing([device.endpoint for device in devices])
    with asyncio.Runner() as runner:
        for name, listing in (("three virtual devices", emulators), (f"a bus of {BUS}, three signing", bus)):
            cost = best_ms(partial(_look, runner, listing))
            print(f"one look at {name}: {cost:.3f} ms, every {LOOK_SECONDS:.0f} s")


def main() -> None:
    if sys.platform != "linux":
        print("idle: only Linux tells what a process costs and how often it was woken")
        return
    print(f"idle, three devices attached, over {SECONDS:.0f} s")
    with tempfile.TemporaryDirectory(prefix="bench") as name, ExitStack() as stack:
        devices = []
        for family in FAMILIES:
            devices.append(Device.start(family, Path(name)))
            stack.callback(devices[-1].stop)
        asyncio.run(measure(devices))
        look_ms(Path(name) / "bus", devices)
