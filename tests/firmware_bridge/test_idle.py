"""The bridge sends nothing to connected devices that are not in use, however long it watches."""

import asyncio
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from firmware_bridge import Bridge, DeviceState, Endpoint, Family
from tests.conformance.rigs import NETWORK, replace_deadlines, running, short_folder
from tests.support.patience import PATIENCE

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how often a process was woken"),
]
LOOKS = 100
DEVICE = """
import asyncio, sys
from pathlib import Path
from firmware_bridge import Family
from tests.conformance.rigs import make_rig, plugged_in

async def main():
    async with plugged_in(make_rig(Family(sys.argv[1]), Path(sys.argv[2]))) as endpoint:
        print(endpoint, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@contextmanager
def device(family, folder, root):
    command = [sys.executable, "-c", DEVICE, str(family), str(folder)]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
    try:
        yield process.pid, Endpoint.parse(process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def wake_ups(pid):
    """A device is a sleeping process that any message wakes, on any socket."""
    statuses = [path.read_text().splitlines() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    lines = [line for lines in statuses for line in lines if line.startswith("voluntary_ctxt_switches")]
    return sum(int(line.split()[1]) for line in lines)


def asleep(pid, beyond=-1):
    """How often it was woken, once it sleeps again and was woken more often than that: going to sleep is what
    is counted.
    """
    deadline = time.monotonic() + PATIENCE
    while any(state != "S" for state in states(pid)) or wake_ups(pid) <= beyond:
        assert time.monotonic() < deadline, "it was not woken"
        os.sched_yield()
    return wake_ups(pid)


def states(pid):
    return [
        path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")
    ]


class Sleep:
    """Counts how many looks in a row the device has slept through."""

    def __init__(self, bridge, pid):
        self._look, self._pid = bridge._roster.look, pid
        self._woken, self._looks = wake_ups(pid), 0
        self.long = asyncio.Event()
        bridge._roster.look = self.look

    async def look(self):
        await self._look()
        woken = wake_ups(self._pid)
        self._looks = self._looks + 1 if woken == self._woken else 0
        self._woken = woken
        if self._looks == LOOKS:
            self.long.set()


@pytest.mark.parametrize("family", [Family.TREZOR, Family.COLDCARD, Family.LEDGER])
async def test_a_watched_device_sleeps(family, request):
    with short_folder() as folder, device(family, Path(folder), request.config.rootpath) as (pid, endpoint):
        deadlines = replace_deadlines(idle=0.0, retry=0.0)
        async with Bridge(network=NETWORK, endpoints=[endpoint], usb=False, deadlines=deadlines) as bridge:
            before = asleep(pid)
            (found,) = await bridge.refresh()
            assert found.state == DeviceState.READY
            # Its probe must wake it, or this test proves nothing.
            asleep(pid, beyond=before)
            sleep = Sleep(bridge, pid)
            # The worker lets go of the device, which wakes it once more; after that nothing does.
            async with running(bridge.watch(0.001)), asyncio.timeout(PATIENCE):
                await sleep.long.wait()
            assert await bridge.list() == (found,)
