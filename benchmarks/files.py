"""How many of our files one job runs through, which a newcomer has to read to follow it.

A job's count is of distinct files in which a function was called, in this process: the workers that hold
devices and the pure import of modules are not counted. The platform's jobs are counted in `custody` and
`multisig`, the daemon's in `signerd`, `firmware_bridge`, `custody.client`, `custody.schemas` and `multisig`.
"""

import asyncio
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from benchmarks.custody.stage import quiet
from firmware_bridge import Family
from signerd.core.states import State
from signerd.daemon.service import Daemon
from tests.conformance.rigs import make_rig, short_folder
from tests.support.custody import Desk, ok, open_desk
from tests.support.daemons import until_state
from tests.support.real_signer import pin, register, signer

ROOT = Path(__file__).parents[1]
PLATFORM = ("custody", "multisig")
DAEMON = ("signerd", "firmware_bridge", "custody/client", "custody/schemas", "multisig")


class Trace:
    """`called`: the files of which a function was called since `begin`,
    by any thread that began after `install`.
    """

    def __init__(self) -> None:
        self.called: set[str] = set()

    def install(self) -> None:
        sys.setprofile(self._on_event)
        threading.setprofile(self._on_event)

    def _on_event(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            self.called.add(frame.f_code.co_filename)

    @contextmanager
    def job(self, name: str, packages: tuple[str, ...]) -> Iterator[None]:
        self.called.clear()
        yield
        folders = tuple(f"{ROOT / package}/" for package in packages)
        touched = sorted(path for path in self.called.copy() if path.startswith(folders))
        print(f"| {name} | {len(touched)} |")
        if os.environ.get("BENCH_NAMES"):
            for path in touched:
                print(f"    {Path(path).relative_to(ROOT)}")


def main() -> None:
    trace = Trace()
    quiet()
    trace.install()
    print("| job | files touched |\n|---|---|")
    with tempfile.TemporaryDirectory(prefix="bench") as folder, open_desk(Path(folder) / "platform") as desk:
        desk.deposit(50_000_000, 50_000_000)
        asyncio.run(_jobs(trace, desk))


async def _jobs(trace: Trace, desk: Desk) -> None:
    with short_folder() as name:
        rig = make_rig(Family.TREZOR, Path(name), seed=desk.devices["alice"])
        async with signer(desk, "alice", rig, Path(name)) as daemon:
            await register(daemon)
            await pin(daemon, desk.vault["id"])
            await _proposal(trace, desk, daemon)


async def _proposal(trace: Trace, desk: Desk, daemon: Daemon) -> None:
    with trace.job("`create-psbt`", PLATFORM):
        psbt_id = ok(desk.propose(1_234_567))["psbt_id"]
    with trace.job("a poll that brings the proposal, checked", DAEMON):
        await until_state(daemon, psbt_id, State.WAITING_PERSON)
    shown = await daemon.proposal(psbt_id)
    with trace.job("an approval, from the word to the submission", DAEMON):
        await daemon.approve(psbt_id, shown.digest, frozenset())
        await until_state(daemon, psbt_id, State.SUBMITTED)
    signed = desk.signed("bob", psbt_id)
    with trace.job("`sign-psbt`, the last signature", PLATFORM):
        ok(desk.submit("bob", psbt_id, signed))


if __name__ == "__main__":
    main()
