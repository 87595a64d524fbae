"""How many of our files and functions one job runs through, which a newcomer has to read to follow it; how
often it reads a stored proposal, and parses a PSBT.

A job's count is of distinct files in which a function was called, in this process: the workers that hold
devices and the pure import of modules are not counted. The platform's jobs are counted in `custody` and
`multisig`, the daemon's in `signerd`, `firmware_bridge`, `custody.client`, `custody.schemas` and `multisig`.
"""

import asyncio
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from types import FrameType

from benchmarks.custody.stage import quiet
from firmware_bridge import Family
from signerd.core.states import State
from signerd.daemon.service import Daemon
from tests.conformance.rigs import make_rig, short_folder
from tests.support.custody import Desk, ok, open_desk
from tests.support.daemons import until
from tests.support.real_signer import pin, register, signer

ROOT = Path(__file__).parents[1]
PLATFORM = ("custody", "multisig")
DAEMON = ("signerd", "firmware_bridge", "custody/client", "custody/schemas", "multisig")
READ, PARSED = "read_record", "parse"
PSBT = str(ROOT / "multisig/psbt/container.py")


class Trace:
    """By any thread that began after `install`: `called`, how often each function was called, by its file
    and name; `parsed`, how often each file had a PSBT parsed.
    """

    def __init__(self) -> None:
        self.called: Counter[tuple[str, str]] = Counter()
        self.parsed: Counter[str] = Counter()

    def install(self) -> None:
        sys.setprofile(self._on_event)
        threading.setprofile(self._on_event)

    def _on_event(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>":
            self.called[code.co_filename, code.co_name] += 1
            if code.co_name == PARSED and code.co_filename == PSBT and frame.f_back is not None:
                # Both sides are in this process: it counts for the one that calls it.
                self.parsed[frame.f_back.f_code.co_filename] += 1

    @contextmanager
    def job(self, name: str, packages: tuple[str, ...]) -> Iterator[None]:
        self.called.clear()
        self.parsed.clear()
        yield
        folders = tuple(f"{ROOT / package}/" for package in packages)
        counts = {key: count for key, count in self.called.copy().items() if key[0].startswith(folders)}
        files = sorted({path for path, _ in counts})
        reads = sum(count for (_, function), count in counts.items() if function == READ)
        # `multisig` is on both sides, and parses for the other's caller.
        parses = sum(count for path, count in self.parsed.items() if path.startswith(folders[:-1]))
        print(f"| {name} | {len(files)} | {len(counts)} | {reads} | {parses} |")
        if os.environ.get("BENCH_NAMES"):
            print(*(Path(path).relative_to(ROOT) for path in files), sep="\n")


def main() -> None:
    trace = Trace()
    quiet()
    trace.install()
    print("| job | files | functions | reads of a proposal | parses of a PSBT |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="bench") as folder, open_desk(Path(folder) / "platform") as desk:
        desk.deposit(50_000_000, 50_000_000)
        asyncio.run(_jobs(trace, desk))


async def _jobs(trace: Trace, desk: Desk) -> None:
    with short_folder() as name:
        rig = make_rig(Family.TREZOR, Path(name), seed=desk.devices["alice"])
        async with AsyncExitStack() as stack:
            with trace.job("a start, and a device that is plugged in, until it is ready", DAEMON):
                daemon = await stack.enter_async_context(signer(desk, "alice", rig, Path(name)))
            with trace.job("`register-key`", DAEMON):
                await register(daemon)
            await pin(daemon, desk.vault["id"])
            with trace.job("`signerd devices`, in the daemon", DAEMON):
                await daemon.devices()
            await _proposal(trace, desk, daemon)


async def _proposal(trace: Trace, desk: Desk, daemon: Daemon) -> None:
    def has_become(state: State) -> bool:
        # Of the daemon's news: to ask its journal would be counted.
        return any(line.text == state.value for line in daemon.feed.since(0, psbt_id))

    with trace.job("`create-psbt`", PLATFORM):
        psbt_id = ok(desk.propose(1_234_567))["psbt_id"]
    with trace.job("a poll that brings the proposal, checked", DAEMON):
        await until(lambda: has_become(State.WAITING_PERSON))
    shown = await daemon.proposal(psbt_id)
    with trace.job("an approval, from the word to the submission", DAEMON):
        await daemon.approve(psbt_id, shown.digest, frozenset())
        await until(lambda: has_become(State.SUBMITTED))
    signed = desk.signed("bob", psbt_id)
    with trace.job("`sign-psbt`, the last signature", PLATFORM):
        ok(desk.submit("bob", psbt_id, signed))


if __name__ == "__main__":
    main()
