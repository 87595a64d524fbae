"""A worker that a device has compromised: its attempts fail only where it is confined."""

import asyncio
import os
import pty
import socket
import sqlite3
import subprocess
import sys
import tty
from contextlib import ExitStack, closing
from functools import partial

import pytest

from firmware_bridge import Bridge, Deadlines, Endpoint, confinement
from firmware_bridge.errors import BridgeError
from firmware_bridge.lane import Lane
from multisig import Network
from tests.support import taken_over

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's"),
    pytest.mark.skipif(
        not (confinement.available().landlock and confinement.available().seccomp),
        reason="this kernel has no Landlock, or takes no filters",
    ),
]

PATIENCE = 60
DEADLINES = Deadlines(start=PATIENCE)
VICTIM = """
import sys
from tests.support import taken_over
print(taken_over.let_be_traced(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def around(tmp_path_factory):
    """The targets of the attempts, and the worker's own device."""
    folder = tmp_path_factory.mktemp("machine")
    state, home = folder / "state", folder / "home"
    for path in (state, home, home / ".ssh"):
        path.mkdir(mode=0o700)
    (home / ".ssh" / "id_ed25519").write_text("a key")
    journal = state / "journal.sqlite3"
    with closing(sqlite3.connect(journal)) as database, database:
        database.execute("CREATE TABLE entries (id INTEGER)")
    with ExitStack() as stack:
        victim = stack.enter_context(
            subprocess.Popen([sys.executable, "-c", VICTIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        stack.callback(victim.kill)
        tcp, bus = (stack.enter_context(socket.socket(family)) for family in (socket.AF_INET, socket.AF_UNIX))
        tcp.bind(("127.0.0.1", 0))
        tcp.listen(100)
        bus.bind(str(folder / "bus"))
        bus.listen(100)
        yield {
            "state": str(state),
            "home": str(home),
            "journal": str(journal),
            "own": _terminal(stack),
            "other": _terminal(stack),
            "tcp": tcp.getsockname()[1],
            "bus": str(folder / "bus"),
            "victim": victim.pid,
            "address": int(victim.stdout.readline()),
        }


def _terminal(stack: ExitStack) -> str:
    """A serial port: a pseudo terminal, whose other end is ours."""
    ours, theirs = pty.openpty()
    stack.callback(os.close, ours)
    stack.callback(os.close, theirs)
    tty.setraw(theirs)
    return os.ttyname(theirs)


@pytest.fixture(scope="module")
def ways(around):
    """How each attempt ended, in a confined worker and in one that is not."""
    return {confined: asyncio.run(_tried(around, confined=confined)) for confined in (True, False)}


async def _tried(around, *, confined):
    endpoint = Endpoint.parse(f"jade:serial:{around['own']}")
    spawner = partial(taken_over.start, confined=confined)
    lane = Lane(endpoint, Network.REGTEST, deadlines=DEADLINES, spawner=spawner)
    try:
        ended = {
            op: await lane.call(op, around, deadline=PATIENCE)
            for op in (*taken_over.NEEDED, *taken_over.FORBIDDEN)
        }
        return {**ended, "held": lane.confined}
    finally:
        lane.release()


@pytest.mark.parametrize("attempt", taken_over.FORBIDDEN)
def test_a_worker_that_is_taken_over_cannot(attempt, ways):
    assert ways[False][attempt] == "done"
    assert ways[True][attempt] in {"PermissionError", "OperationalError"}


@pytest.mark.parametrize("need", taken_over.NEEDED)
def test_a_confined_worker_can(need, ways):
    assert ways[True][need] == "done"


def test_the_worker_tells_what_holds_it(ways):
    available = confinement.available()
    assert ways[True]["held"] == (available.landlock, True)
    assert ways[False]["held"] == (0, False)


@pytest.mark.parametrize("sandbox", [True, False])
def test_a_bridge_confines_its_workers_unless_it_is_told_not_to(sandbox):
    async def held():
        async with Bridge(network=Network.REGTEST, usb=False, deadlines=DEADLINES, sandbox=sandbox) as bridge:
            lane = bridge._roster._make_lane(Endpoint.parse("jade:serial:/dev/no-such-port"))
            try:
                with pytest.raises(BridgeError):
                    await lane.call("probe", deadline=PATIENCE)
                return lane.confined
            finally:
                lane.release()

    assert asyncio.run(held()) == ((confinement.available().landlock, True) if sandbox else (0, False))
