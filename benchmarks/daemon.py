"""The cost of an idle daemon: signed in at a real platform by long poll, with three devices attached.

The platform and the devices are processes of their own. Of the daemon's processes the first is compared with
Specter's bridge; the others are multiprocessing's fork server and resource tracker. The proportional set size
(PSS) divides shared pages between the processes that share them.
"""

import asyncio
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks.idle import cpu_ms, memory_mb, parent_of, wake_ups
from custody.client import AsyncClient
from device_simulators.page import DeviceScreen
from signerd.demo import stage
from signerd.demo.devices import DemoDevice, start_device
from signerd.demo.people import DemoAccount, DemoSigner
from signerd.demo.programs import Programs

FAMILIES = ("ledger", "coldcard", "trezor")
SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))
# Workers end a minute after their last use (`Deadlines.idle`);
# by then every first round is over.
SETTLING_SECONDS = 150.0
# The best peer: cryptoadvance/specter-desktop,
# its HWI bridge alone (`python -m cryptoadvance.specter server --hwibridge`).
SPECTER_MB = 108.0
MOST_MB, MOST_PERCENT = 55.0, 0.05


@dataclass(frozen=True)
class Spent:
    """One process over the time of the measurement."""

    name: str
    cpu_ms: float
    wakes: int
    resident_mb: float
    shared_mb: float


def below(pid: int) -> list[int]:
    """The process and its descendants."""
    parents = {int(path.name): parent_of(path) for path in Path("/proc").glob("[0-9]*")}
    found, fresh = [pid], [pid]
    while fresh:
        fresh = [number for number, parent in parents.items() if parent in fresh]
        found += fresh
    return found


def what_is(pid: int, daemon: int) -> str:
    if pid == daemon:
        return "daemon"
    command = Path(f"/proc/{pid}/cmdline").read_text()
    return "tracker" if "resource_tracker" in command else "fork server"


async def _press_yes(_title: str, _screen: DeviceScreen) -> bool:
    return True


async def three_devices(demo: stage.Demo) -> list[DemoDevice]:
    devices = []
    for family in FAMILIES:
        place = demo.root / family
        devices.append(await start_device(demo.programs, family, family, place, demo.desk, _press_yes))
    return devices


def with_all(demo: stage.Demo, devices: list[DemoDevice]) -> DemoSigner:
    """A signer whose daemon has all three devices."""
    signer = DemoSigner(
        "signer", DemoAccount("Signer", "Bench"), demo.root / "signer", devices[0], demo.programs
    )
    signer.prepare(demo.url)
    path = signer.state / "config.toml"
    endpoints = ", ".join(f'"{device.endpoint}"' for device in devices)
    text = path.read_text().replace(f'endpoints = ["{devices[0].endpoint}"]', f"endpoints = [{endpoints}]")
    path.write_text(text)
    return signer


async def at_the_platform(demo: stage.Demo, signer: DemoSigner) -> None:
    """A member, signed in."""
    async with AsyncClient(demo.url) as owner:
        await demo.owner.sign_in(owner, demo.mailbox)
        roles = await owner.roles(demo.workspace_id)
        await stage.join(demo, owner, signer, roles[0].role_id)


async def settled(signer: DemoSigner, daemon: int) -> list[int]:
    """The processes once all devices are ready, the platform is followed and every worker has ended."""
    until = time.monotonic() + SETTLING_SECONDS
    before: list[int] = []
    while time.monotonic() < until:
        await asyncio.sleep(2.0)
        now = below(daemon)
        # A request would count as work: the daemon is asked only just before the measurement.
        if now == before and len(now) <= 3:
            status = await signer.daemon.status()
            if status.devices_ready == len(FAMILIES) and status.platform_reachable:
                await asyncio.sleep(10.0)
                return below(daemon)
        before = now
    raise RuntimeError(f"the daemon was not at rest in time; its processes: {before}")


async def measure(signer: DemoSigner, daemon: int) -> list[Spent]:
    pids = await settled(signer, daemon)
    cpu, woken = [cpu_ms(pid) for pid in pids], [wake_ups(pid) for pid in pids]
    await asyncio.sleep(SECONDS)
    return [
        Spent(what_is(pid, daemon), cpu_ms(pid) - used, wake_ups(pid) - wakes, *memory_mb(pid))
        for pid, used, wakes in zip(pids, cpu, woken, strict=True)
    ]


def show(spent: list[Spent]) -> None:
    print(f"{'':>12} {'CPU ms/s':>9} {'% of a core':>12} {'woken/min':>10} {'RSS MB':>8} {'PSS MB':>8}")
    for one in spent:
        print(
            f"{one.name:>12} {one.cpu_ms / SECONDS:9.3f} {one.cpu_ms / SECONDS / 10:12.4f} "
            f"{one.wakes * 60 / SECONDS:10.0f} {one.resident_mb:8.1f} {one.shared_mb:8.1f}"
        )
    daemon, together = spent[0], sum(one.shared_mb for one in spent)
    percent = sum(one.cpu_ms for one in spent) / SECONDS / 10
    print(f"{'together':>12} {'':>9} {percent:12.4f} {'':>10} {'':>8} {together:8.1f}")
    print(
        f"daemon ÷ Specter's bridge ({SPECTER_MB:.0f} MB): {daemon.resident_mb / SPECTER_MB:.2f}; "
        f"÷ the aim of {MOST_MB:.0f} MB: {daemon.resident_mb / MOST_MB:.2f}; "
        f"all processes ÷ the aim of {MOST_PERCENT} % of a core: {percent / MOST_PERCENT:.2f}"
    )


def libraries(pid: int) -> None:
    """Resident memory by origin: the interpreter and its heap first."""
    sizes: Counter[str] = Counter()
    name = ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        head = line.split()
        if "-" in head[0] and not head[0].endswith(":"):
            name = Path(head[5]).name if len(head) > 5 else "memory of its own"
        elif head[0] == "Rss:":
            sizes[name] += int(head[1])
    parts = ", ".join(f"{name} {size / 1024:.1f}" for name, size in sizes.most_common(8))
    print(f"resident, MB: {parts}")


async def run(root: Path) -> None:
    logs = root / "logs"
    logs.mkdir()
    programs = Programs(logs)
    demo = stage.Demo(root, programs, auto=True)
    demo.tell = lambda _text: None  # type: ignore[method-assign,assignment]  # it prints
    try:
        demo.url = stage.free_url()
        await stage.start_platform(demo)
        await stage.organise(demo)
        signer = with_all(demo, await three_devices(demo))
        first = await signer.start_daemon()
        await at_the_platform(demo, signer)
        await signer.leave()
        await first.stop()
        # With a stored session, as on every day but the first.
        daemon = await signer.start_daemon()
        show(await measure(signer, daemon.process.pid))
        libraries(daemon.process.pid)
        await signer.leave()
    finally:
        await programs.stop()


def main() -> None:
    if sys.platform != "linux":
        print("daemon: only Linux tells what a process costs and how often it was woken")
        return
    print(f"the daemon with a platform and three devices attached, idle over {SECONDS:.0f} s")
    root = Path(tempfile.mkdtemp(prefix=f"bench-{secrets.token_hex(2)}-"))
    try:
        asyncio.run(run(root))
    finally:
        shutil.rmtree(root, ignore_errors=True)
