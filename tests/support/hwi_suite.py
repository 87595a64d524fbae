"""HWI's own suite for a maker, of a checkout, against the maker's virtual device, with `hwi` or `signerd-hwi`
for the program under test. Runs in its own namespace: `python -m tests.support.hwi_suite FAMILY PROGRAM
CHECKOUT` prints each test's name, and why it did not pass.

The device is the program that the suite starts as the maker's emulator. signerd runs all the while, as on a
desktop, and a person approves whatever it asks.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path

from device_simulators.panel import Panel, approve_all
from device_simulators.seed import Seed
from firmware_bridge import Endpoint, Family
from multisig import Network
from tests.conformance.rigs import VIRTUAL
from tests.support.bitcoind import find_bitcoind
from tests.support.hwi_parity import PLACES, signerd_at
from tests.support.namespace import ROOT, raise_loopback
from tests.support.patience import PATIENCE
from tests.support.wallets import Holder

NETWORK = Network.TESTNET4
OURS, THEIRS = "signerd-hwi", "hwi"
# The seeds of the makers' emulators, and a Trezor's as the suite loads it.
WORDS = {
    Family.TREZOR: "alcohol woman abuse must during monitor noble actual mixed trade anger aisle",
    Family.COLDCARD: "wife shiver author away frog air rough vanish fantasy frozen noodle athlete pioneer "
    "citizen symptom firm much faith extend rare axis garment kiwi clarify",
    Family.LEDGER: "glory promote mansion idle axis finger extra february uncover one trip resource lawn "
    "turtle enact monster seven myth punch hobby comfort wild raise skin",
}
EMULATORS = {
    Family.TREZOR: "TrezorEmulator",
    Family.COLDCARD: "ColdcardSimulator",
    Family.LEDGER: "LedgerEmulator",
}
_HWI = """#!{python}
import ctypes
import libusb_package
import usb1
usb1.loadLibrary(ctypes.CDLL(str(libusb_package.get_library_path())))
from hwilib._cli import main
main()
"""
_SIGNERD_HWI = """#!/bin/sh
exec {python} -m signerd.hwi --state {state} --wait 40 "$@"
"""
# It holds both ends of its standard input, which so never ends.
_EMULATOR = """#!{python}
import os
reading, writing = os.pipe()
os.dup2(reading, 0)
os.set_inheritable(writing, True)
with open({options!r}) as options:
    os.execve({python!r}, {command!r} + options.read().split(), {{"PYTHONPATH": {root!r}}})
"""


class Results(unittest.TextTestResult):
    """``told``: each test, and the last line of why it did not pass."""

    told: list[tuple[str, str | None]] = []  # noqa: RUF012 - the suite makes the one runner, which makes this

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        super().stopTest(test)
        words = [why.strip().splitlines()[-1] for _one, why in (*self.failures, *self.errors)]
        words += [f"skipped: {why}" for _one, why in self.skipped]
        self.told.append((test.id().partition(".")[2], words[0] if words else None))
        self.failures, self.errors, self.skipped = [], [], []


class Suite:
    """In a folder and a process of its own, where ``hwilib`` is the checkout's."""

    def __init__(self, family: Family, folder: Path) -> None:
        self.family, self.folder = family, folder
        os.chdir(folder / "test")
        sys.path.insert(0, str(folder / "test"))
        self.module = import_module(f"test_{family}")

    def run(self) -> None:
        suite, path = self.module, str(self.folder / "emulator.py")
        runner = unittest.TextTestRunner
        unittest.TextTestRunner = lambda **given: runner(**given, resultclass=Results)
        # By which it asks whether the emulator is up: signerd holds the device alone.
        suite.process_commands = lambda _given: self.rows()
        emulator = getattr(suite, EMULATORS[self.family])
        self.start, emulator.start = emulator.start, lambda one: self.started(one)  # noqa: PLW0108 - the suite calls a method
        self.stop, emulator.stop = emulator.stop, lambda one: self.stopped(one)  # noqa: PLW0108 - the same
        node = suite.Bitcoind.create(str(find_bitcoind()))
        if self.family is Family.TREZOR:
            suite.load_device_by_mnemonic, suite.device.wipe = self.loaded, lambda _client: None
            suite.trezor_test_suite(path, node, "bindist", "1")
        else:
            getattr(suite, f"{self.family}_test_suite")(path, node, "bindist")
        (self.folder / "told").write_text(json.dumps(Results.told))

    def rows(self) -> list[dict[str, object]]:
        """What the program under test sees."""
        done = subprocess.run(["../dist/hwi", "--emulators", "enumerate"], capture_output=True, check=True)
        return json.loads(done.stdout)

    def until(self, plugged: bool) -> None:
        """signerd looks every other second."""
        deadline = time.monotonic() + PATIENCE
        while [row.get("code") in {None, -12} for row in self.rows()] != [True] * plugged:
            assert time.monotonic() < deadline, self.rows()

    def started(self, emulator):
        self.emulator = emulator
        client = self.start(emulator)
        self.until(plugged=True)
        return client

    def stopped(self, emulator) -> None:
        self.stop(emulator)
        self.until(plugged=False)

    def loaded(self, client, mnemonic, pin, passphrase_protection, label, **_given) -> None:
        """A virtual Trezor has its words from the start: it starts again with those that the suite loads."""
        options = ["--label", label, *(["--pin", pin] if pin else [])]
        options += ["--passphrase-protection"] * passphrase_protection
        if not write(self.folder, mnemonic, options):
            return
        os.killpg(self.emulator.emulator_proc.pid, signal.SIGTERM)
        self.emulator.emulator_proc.wait(PATIENCE)
        self.until(plugged=False)
        self.emulator.emulator_proc = subprocess.Popen([self.folder / "emulator.py"], start_new_session=True)
        self.until(plugged=True)


def write(folder: Path, words: str, options: list[str]) -> bool:
    """What the virtual device is started with. Returns whether that is something else than before."""
    before = [path.read_text() if path.exists() else "" for path in (folder / "words", folder / "options")]
    (folder / "words").touch(0o600)
    (folder / "words").write_text(words)
    (folder / "options").write_text(" ".join(options))
    return before != [words, " ".join(options)]


def script(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o700)


def lay_out(family: Family, program: str, folder: Path) -> None:
    """The emulator and the program, where the suite looks for them."""
    place = PLACES[family]
    listen = str(place) if isinstance(place, Path) else f"127.0.0.1:{place}"
    command = [sys.executable, "-m", "device_simulators", str(family), "--listen", listen]
    command += ["--seed-file", str(folder / "words"), "--network", str(NETWORK)]
    command += ["--allow-keypress"] * (family is not Family.LEDGER)
    # HWI presses a Coldcard's buttons itself.
    command += ["--auto", "approve"] * (family is not Family.COLDCARD or program == OURS)
    values = {"python": sys.executable, "root": str(ROOT), "state": folder / "s"}
    write(folder, WORDS[family], ["--label", "test"])
    options = str(folder / "options")
    script(folder / "emulator.py", _EMULATOR.format(command=command, options=options, **values))
    script(folder / "dist" / "hwi", (_SIGNERD_HWI if program == OURS else _HWI).format(**values))


def run_suite(family: Family, folder: Path, checkout: Path) -> None:
    """``HWI_LOG`` names a file for what it says."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": f"{checkout}:{ROOT}",
        "HOME": str(folder),
    }
    command = [sys.executable, "-m", "tests.support.hwi_suite", str(family), str(folder)]
    with Path(os.environ.get("HWI_LOG", os.devnull)).open("w") as log:
        subprocess.run(command, env=environment, stdout=log, stderr=log, check=True)


async def scenario(family: Family, program: str, checkout: Path) -> list:
    raise_loopback()
    folder = Path(tempfile.mkdtemp(prefix="suite"))
    shutil.copytree(checkout / "test", folder / "test")
    lay_out(family, program, folder)
    async with AsyncExitStack() as stack:
        if program == OURS:
            seed, place = Seed.from_mnemonic(WORDS[family]), PLACES[family]
            device = VIRTUAL[family](seed, Panel(approve_all), NETWORK)
            endpoint = await (device.start(place) if isinstance(place, Path) else device.start(port=place))
            assert isinstance(endpoint, Endpoint)
            owner = Holder(seed, NETWORK)
            await stack.enter_async_context(signerd_at(endpoint, folder / "s", owner, NETWORK))
            await device.stop()
        await asyncio.to_thread(run_suite, family, folder, checkout)
    return json.loads((folder / "told").read_text())


if __name__ == "__main__":
    family = Family(sys.argv[1])
    if len(sys.argv) == 3:
        Suite(family, Path(sys.argv[2])).run()
    else:
        told = asyncio.run(scenario(family, sys.argv[2], Path(sys.argv[3])))
        print(json.dumps(told))  # noqa: T201 - the answer to the parent process
