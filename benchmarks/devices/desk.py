"""Virtual devices, each a process of its own, so that a device's time is not counted as its host's.

All of a family have the same seed. Each compared program has its own, because a Coldcard and a Ledger serve
the program that connected last, and HWI's command line uses fixed addresses.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from device_simulators.fleet import FAMILIES
from firmware_bridge.model import Endpoint, Family
from tests.support.virtual import NETWORK, SEED_WORDS

# Where HWI expects emulators.
FIXED = {
    Family.TREZOR: "127.0.0.1:21324",
    Family.COLDCARD: "/tmp/ckcc-simulator.sock",
    Family.LEDGER: "127.0.0.1:9999",
}
# Left out where this checkout has no such virtual device.
COMPARED = tuple(family for family in FIXED if family in FAMILIES)


# Prompts about a registration, and about a transaction.
_APPROVALS = frozenset({"enrol", "sign-transaction"})


@dataclass
class Device:
    """A running virtual device and its prompts. It approves all of them, or waits for a person."""

    process: subprocess.Popen[str]
    endpoint: Endpoint
    _asked: list[str] = field(default_factory=list)
    _caught_up: threading.Event = field(default_factory=threading.Event)
    _prompted: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def start(
        cls,
        family: Family,
        folder: Path,
        *,
        listen: str | None = None,
        options: Sequence[str] = (),
        waits: bool = False,
    ) -> Self:
        command = [
            sys.executable,
            "-m",
            "device_simulators",
            str(family),
            "--json",
            *(() if waits else ("--auto", "approve")),
        ]
        command += ["--seed-file", str(_seed_file(folder)), "--network", str(NETWORK), "--allow-keypress"]
        if listen is not None:
            command += ["--listen", listen]
        command += options
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        device = cls(process, Endpoint.parse(ready["endpoint"]))
        threading.Thread(target=device._watch, args=(process.stdout,), daemon=True).start()
        return device

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)

    def approvals(self) -> int:
        """How often a person was asked to register or to sign; a question may have several screens."""
        assert self.process.stdin is not None
        self._caught_up.clear()
        # Answered after all earlier events of the screen.
        self.process.stdin.write('{"faults": {}}\n')
        self.process.stdin.flush()
        if not self._caught_up.wait(10):
            raise RuntimeError("the virtual device does not answer")
        return sum(kind in _APPROVALS for kind in self._asked)

    def wait_for_prompt(self) -> None:
        """Waits for a prompt."""
        if not self._prompted.wait(30):
            raise RuntimeError("the virtual device asks nothing")

    def _watch(self, lines: Iterator[str]) -> None:
        for event in map(json.loads, lines):
            if event["event"] == "prompt":
                self._asked.append(event["kind"])
                self._prompted.set()
            elif event["event"] == "faults-set":
                self._caught_up.set()


@dataclass(frozen=True)
class Desk:
    """The devices of one family: for our bridge, for HWI in this process, and for HWI's command line."""

    family: Family
    ours: Device
    bare: Device
    command: Device | None


@contextmanager
def desk(family: Family, folder: Path, *, fixed: bool = False, options: Sequence[str] = ()) -> Iterator[Desk]:
    """`fixed`: HWI's fixed addresses are free. `options`: of each virtual device."""
    with ExitStack() as stack:

        def start(listen: str | None = None) -> Device:
            device = Device.start(family, folder, listen=listen, options=options)
            stack.callback(device.stop)
            return device

        yield Desk(family, start(), start(), start(FIXED[family]) if fixed else None)


def _seed_file(folder: Path) -> Path:
    path = folder / "seed"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(SEED_WORDS, encoding="ascii")
    return path
