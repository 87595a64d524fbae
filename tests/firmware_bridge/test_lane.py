"""One worker, one operation at a time, and a deadline for each: the device's seconds and the person's."""

import asyncio
import os
import signal
import sys
import threading
from contextlib import asynccontextmanager
from functools import partial

import pytest

from firmware_bridge.errors import Cancelled, TimedOut, WorkerCrashed
from firmware_bridge.lane import Lane, Patience
from firmware_bridge.model import Deadlines, Endpoint
from firmware_bridge.worker import spawn
from multisig import Network
from tests.support import workers
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio

DEADLINES = Deadlines(grace=0.2, idle=30.0)
PATIENT = Deadlines(grace=PATIENCE, idle=30.0)
ENDPOINT = Endpoint.parse("trezor:udp:127.0.0.1:1")


@asynccontextmanager
async def lane_to(entry=workers.scripted, deadlines=DEADLINES):
    lane = Lane(ENDPOINT, Network.REGTEST, deadlines=deadlines, spawner=partial(spawn, entry=entry))
    try:
        yield lane
    finally:
        lane.release()


@asynccontextmanager
async def at_work(**how):
    """A lane whose worker has its device open, and the worker's process."""
    async with lane_to(**how) as lane:
        await lane.call("echo", deadline=PATIENCE)
        yield lane, lane.worker_pid


async def until_gone(pid):
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        async with asyncio.timeout(PATIENCE):
            await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def test_an_answer_comes_back_and_the_worker_stays():
    async with at_work() as (lane, pid):
        assert await lane.call("echo", {"a": [1, "ü"]}, deadline=PATIENCE) == {"a": [1, "ü"]}
        assert lane.worker_pid == pid


async def test_a_hang_ends_at_the_deadline_and_the_worker_is_replaced():
    async with at_work() as (lane, pid):
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(TimedOut):
            await lane.call("hang", deadline=0.2)
        assert 0.2 <= loop.time() - started < 1.5
        await until_gone(pid)
        assert await lane.call("echo", {"a": 1}, deadline=PATIENCE) == {"a": 1}
        assert lane.worker_pid != pid


async def timed_out_after(op, args, **seconds):
    loop = asyncio.get_running_loop()
    async with at_work() as (lane, _pid):
        started = loop.time()
        with pytest.raises(TimedOut):
            await lane.call(op, args, **seconds)
        return loop.time() - started


@pytest.mark.parametrize("steps", [["sending"], ["confirm"], ["confirm", "signing"]])
async def test_a_worker_that_tells_without_an_end_extends_nothing(steps):
    taken = await timed_out_after("loop", {"steps": steps}, deadline=0.3, person=0.3)
    assert 0.3 <= taken < 0.6 + DEADLINES.grace + 2.0


async def test_the_next_worker_is_told_to_clear_up_once():
    async with lane_to() as lane:
        with pytest.raises(TimedOut):
            await lane.call("hang", deadline=0.1)
        assert await lane.call("recovered", deadline=PATIENCE) is True
        lane.release()
        assert await lane.call("recovered", deadline=PATIENCE) is False


async def test_a_silent_probe_is_cleared_up_by_an_operation_only():
    async with lane_to() as lane:
        with pytest.raises(TimedOut):
            await lane.call("probe", deadline=0.1, probing=True)
        assert await lane.call("recovered", deadline=PATIENCE, probing=True) is False
        lane.release()
        assert await lane.call("recovered", deadline=PATIENCE) is True


async def test_an_answer_in_the_grace_is_an_answer():
    # A cancel that comes before the device is open is lost, and the grace ends in a kill.
    async with at_work(deadlines=PATIENT) as (lane, _pid):
        assert await lane.call("finish_when_cancelled", deadline=0.1) == "late"


@pytest.mark.parametrize("who", ["cancel", "the caller"])
async def test_a_call_that_is_given_up_and_does_not_listen_ends_the_worker(who):
    async with at_work() as (lane, pid):
        call = asyncio.create_task(lane.call("hang", deadline=PATIENCE))
        await asyncio.sleep(0)
        if who == "cancel":
            await lane.cancel()
        else:
            call.cancel()
        with pytest.raises(Cancelled if who == "cancel" else asyncio.CancelledError):
            await call
        await until_gone(pid)
        assert await lane.call("recovered", deadline=PATIENCE) is True


async def test_a_crash_is_told_and_the_next_call_works():
    async with lane_to() as lane:
        with pytest.raises(WorkerCrashed):
            await lane.call("crash", deadline=PATIENCE)
        assert await lane.call("echo", deadline=PATIENCE) == {}


async def test_an_unused_worker_is_ended():
    async with at_work(deadlines=Deadlines(idle=0.05)) as (lane, pid):
        await until_gone(pid)
        assert lane.worker_pid is None
        # It ended by itself: the device needs no clean-up.
        assert await lane.call("recovered", deadline=PATIENCE) is False


async def test_what_a_worker_prints_is_discarded(capfd):
    async with lane_to() as lane:
        assert await lane.call("print", deadline=PATIENCE) == "printed"
    assert capfd.readouterr() == ("", "")


async def test_a_worker_that_does_not_say_hello():
    async with lane_to(workers.mute, Deadlines(start=0.1)) as lane:
        with pytest.raises(WorkerCrashed, match="does not start"):
            await lane.call("echo", deadline=PATIENCE)


_ORPHAN = """
import asyncio, sys
from functools import partial
from firmware_bridge.lane import Lane
from firmware_bridge.worker import spawn
from firmware_bridge.model import Deadlines, Endpoint
from multisig import Network
from tests.support import workers

async def main():
    endpoint = Endpoint.parse("trezor:udp:127.0.0.1:1")
    spawner = partial(spawn, entry=workers.scripted)
    lane = Lane(endpoint, Network.REGTEST, deadlines=Deadlines(), spawner=spawner)
    await lane.call("echo", deadline=90)
    print(lane.worker_pid, flush=True)
    await lane.call("hang", deadline=60)

asyncio.run(main())
"""


async def test_a_worker_that_hangs_does_not_outlive_a_program_that_is_killed(request):
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _ORPHAN,
        env={"PYTHONPATH": str(request.config.rootpath)},
        stdout=asyncio.subprocess.PIPE,
    )
    pid = int(await program.stdout.readline())
    program.kill()
    await program.communicate()
    await until_gone(pid)


async def asked(lane, on_ask, **options):
    return await lane.call("question", {"question": "pin"}, deadline=PATIENCE, on_ask=on_ask, **options)


async def test_a_question_of_the_device_is_answered():
    async def on_ask(question):
        return f"to {question}: 1234"

    async with lane_to() as lane:
        assert await asked(lane, on_ask) == "to pin: 1234"


class Unsure:
    """A person who never answers; signals when the question begins and ends."""

    def __init__(self):
        self.reached = asyncio.Event()
        self.left = asyncio.Event()

    async def __call__(self, _question):
        self.reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()


async def test_a_cancel_ends_a_question_politely():
    person = Unsure()
    async with lane_to() as lane:
        call = asyncio.create_task(asked(lane, person))
        await person.reached.wait()
        pid = lane.worker_pid
        await lane.cancel()
        with pytest.raises(Cancelled):
            await call
        await asyncio.wait_for(person.left.wait(), PATIENCE)
        # The next question is answered by its own answer, and the worker did not have to die.
        assert await asked(lane, None) is None
        assert lane.worker_pid == pid


async def test_a_worker_that_dies_does_not_wait_for_the_persons_answer():
    person = Unsure()
    async with lane_to() as lane:
        call = asyncio.create_task(asked(lane, person))
        await person.reached.wait()
        os.kill(lane.worker_pid, signal.SIGKILL)
        with pytest.raises(WorkerCrashed):
            await call
        await asyncio.wait_for(person.left.wait(), PATIENCE)


async def test_an_operation_given_up_while_its_worker_starts_leaves_no_process():
    started, gate, children = asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()

    def slow(channel, endpoint, network):
        loop.call_soon_threadsafe(started.set)
        gate.wait(5)
        children.append(spawn(channel, endpoint, network, entry=workers.scripted))
        return children[-1]

    lane = Lane(ENDPOINT, Network.REGTEST, deadlines=DEADLINES, spawner=slow)
    call = asyncio.create_task(lane.call("echo", deadline=PATIENCE))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    gate.set()
    await loop.shutdown_default_executor()
    await asyncio.sleep(0)
    await until_gone(children[0].pid)


def ends_after(*steps, work=10.0, person=100.0):
    """When the call ends after these last notes: (seconds since the previous one, step)."""
    now, patience = 1000.0, Patience(work, person, 1000.0)
    for seconds, step in steps:
        now += seconds
        patience.step(step, now)
    return patience.ends - 1000.0


@pytest.mark.parametrize(
    ("steps", "ends"),
    [
        ([], 10),
        # Progress notes extend no deadline.
        ([(4, "sending"), (4, "sending")], 10),
        # The person's whole time begins with the question.
        ([(9, "confirm-transaction")], 109),
        # The rest of the device's time is left for the work after the approval.
        ([(9, "confirm-transaction"), (60, "signing")], 70),
        # Two questions share one person's time.
        ([(1, "confirm-output"), (60, "confirm-output"), (20, "confirm-transaction")], 101),
        # However often they alternate, the sum of both is the limit.
        ([(0.5, "confirm"), (5, "signing")] * 20, 110),
    ],
)
def test_each_side_has_its_seconds_once(steps, ends):
    assert ends_after(*steps) == pytest.approx(ends)
