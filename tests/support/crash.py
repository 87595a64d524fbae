"""The crash harness: a daemon that is killed at its n-th fault point, started again, and looked at.

``python -m tests.support.crash FOLDER [POINT…]`` kills once at each named point, or where none is named at every point
that an undisturbed run passes, each in a folder of its own, and prints one JSON line for each kill. The daemon runs in
a forked child that ends by SIGKILL: no ``finally`` runs, nothing is flushed. What the platform was told and how often
the device was asked stand in files, as they stand in another machine's database and in a person's memory.

Invariants, whatever the point: the proposal is submitted in the end; every submission carries the same bytes under the
same key; once a signature is stored the device is not asked again, and a second time only where the kill came between
asking it and storing; the audit chain is whole; nobody is asked twice for the same decision.
"""

import asyncio
import json
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from signerd.core.audit import first_fault
from signerd.core.states import State
from signerd.core.values import Limits
from signerd.faults import FaultPoint
from signerd.journal import Journal
from signerd.journal.folder import write_private
from tests.support.daemons import MemoryStore, approve, daemon_at, prepare, until
from tests.support.desk import NETWORK, snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform

PSBT_ID = "p-1"
ASKING = (State.WAITING_PERSON, State.INTERRUPTED)
# Between the device's yes and the stored signature nothing can be kept: the person is asked once more.
UNKEPT = frozenset({"device:after:sign", "journal:before:DeviceReturned"})


@dataclass(frozen=True)
class Killer:
    """A fault point hook: ends this process at the n-th passing of one point."""

    point: str
    passing: int
    seen: Counter[str]

    def __call__(self, point: str) -> None:
        self.seen[point] += 1
        if point == self.point and self.seen[point] == self.passing:
            os.kill(os.getpid(), signal.SIGKILL)


async def live(folder: Path, fault: FaultPoint) -> None:
    """A daemon, and a person who says yes whenever asked, until the signature is at the platform."""
    platform = FakePlatform(folder, {PSBT_ID: snapshot_of(spend())})
    bridge = FakeBridge(prompts=folder / "prompts")
    store = FileMemory(folder / "session")
    async with daemon_at(folder / "state", platform, bridge, store=store, fault=fault) as daemon:

        def state() -> State | None:
            return next((r.state for r in daemon.journal.records() if r.psbt_id == PSBT_ID), None)

        while True:
            await until(lambda: state() in (*ASKING, State.SUBMITTED))
            if state() is State.SUBMITTED:
                return
            with (folder / "yes").open("a") as file:
                file.write(".")
            await approve(daemon, PSBT_ID)


class FileMemory(MemoryStore):
    """The session's secret outlives the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(path.read_text() if path.exists() else None)

    def save(self, secret: str) -> None:
        super().save(secret)
        write_private(self._path, secret.encode())


def in_child(run: Callable[[], None]) -> int:
    """Run in a forked process; the signal that ended it, or 0. Any other end is this program's failure."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run()
            status = 0
        except BaseException:  # noqa: BLE001 - the child's outermost border: it says what happened and ends
            traceback.print_exc()
        finally:
            os._exit(status)
    _, how = os.waitpid(child, 0)
    if os.WIFSIGNALED(how):
        return os.WTERMSIG(how)
    if os.WEXITSTATUS(how):
        raise SystemExit("the daemon failed by itself")
    return 0


def new_folder(root: Path, name: str) -> Path:
    folder = root / name
    (folder / "state").mkdir(parents=True, mode=0o700)
    prepare(folder / "state")
    return folder


def points_of_a_run(root: Path) -> Counter[str]:
    """Every fault point that an undisturbed run passes, and how often."""
    folder = new_folder(root, "undisturbed")

    def run() -> None:
        seen: list[str] = []
        asyncio.run(live(folder, seen.append))
        (folder / "points").write_text("\n".join(seen))

    in_child(run)
    return Counter((folder / "points").read_text().splitlines())


def kill_at(root: Path, point: str, passing: int) -> dict[str, object]:
    """Kill once, start again until it is done, and tell what is wrong then."""
    folder = new_folder(root, f"{point.replace(':', '-')}-{passing}")
    killer = Killer(point, passing, Counter())
    killed = in_child(lambda: asyncio.run(live(folder, killer))) == signal.SIGKILL
    try:
        in_child(lambda: asyncio.run(live(folder, lambda _point: None)))
    except SystemExit as error:
        raise SystemExit(f"after a kill at {point}, passing {passing}: {error}") from None
    told = FakePlatform(folder).signatures(PSBT_ID)
    return {
        "point": point,
        "passing": passing,
        "killed": killed,
        "submissions": len(told),
        "asked": len((folder / "prompts").read_text()),
        "wrong": faults(folder, point),
    }


def faults(folder: Path, point: str) -> list[str]:
    """What breaks an invariant after the restart."""
    platform = FakePlatform(folder)
    wrong = []
    told = platform.signatures(PSBT_ID)
    if not told:
        wrong.append("the signature never arrived")
    if len({(entry["psbt"], entry["key"]) for entry in told}) > 1:
        wrong.append("different bytes or keys were submitted")
    asked, yes = len((folder / "prompts").read_text()), len((folder / "yes").read_text())
    most = 2 if point in UNKEPT else 1
    if asked > most:
        wrong.append(f"the device was asked {asked} times")
    # A yes that was recorded is not asked for again, unless the device was being asked when the kill came.
    if yes > 1 and not _may_ask_again(point):
        wrong.append(f"the person was asked {yes} times")
    with Journal(folder / "state", network=NETWORK, limits=Limits()) as journal:
        if journal.record(PSBT_ID).state is not State.SUBMITTED:
            wrong.append(f"the proposal is {journal.record(PSBT_ID).state}")
        fault = first_fault(journal.audit())
        if fault is not None:
            wrong.append(fault[1])
    return wrong


def _may_ask_again(point: str) -> bool:
    return point in UNKEPT or point in {
        "journal:before:Approved",
        "journal:after:DeviceFound",
        "device:before:sign",
    }


def main(root: Path, wanted: list[str]) -> None:
    every = points_of_a_run(root)
    for point in wanted or sorted(every):
        # The polling rounds repeat: more of them say nothing new.
        for passing in range(1, min(every[point], 2) + 1):
            print(json.dumps(kill_at(root, point, passing)), flush=True)  # noqa: T201 - this is a program


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
