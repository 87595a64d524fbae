"""However the demo ends, nothing that it started outlives it."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from device_simulators.conformance.rigs import short_folder
from signerd.demo import story
from signerd.demo.people import Signer, _pressed
from signerd.demo.programs import DemoFailed, Programs
from tests.support.descendants import command_of, descendants, until_gone

PATIENCE_SECONDS = 120


def programs_of(folder: str) -> list[int]:
    """Every process that was given this folder, on its command line or in its environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            given = process.joinpath("cmdline").read_bytes() + process.joinpath("environ").read_bytes()
        except OSError:
            continue
        if folder.encode() in given:
            found.append(int(process.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system does not list its processes")
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_a_signal_ends_every_program(tmp_path: Path, ending: signal.Signals) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-u", "-m", "signerd", "demo", "--auto"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert demo.stdout is not None
    try:
        for line in demo.stdout:
            if "Three signers" in line:
                break
        (root,) = tmp_path.glob("signerd-demo-*")
        assert programs_of(str(root))
        demo.send_signal(ending)
        _out, err = demo.communicate(timeout=PATIENCE_SECONDS)
    finally:
        if demo.poll() is None:
            demo.kill()
            demo.wait()
    assert demo.returncode == story.EXIT_TERMINATED
    assert str(root) in err
    assert programs_of(str(root)) == []


def test_a_demo_that_is_killed_takes_every_program_along() -> None:
    """The platform, the devices, the daemons, their device workers and the fork servers of those: all that
    descends from it.
    """
    with short_folder() as folder:
        demo = subprocess.Popen(
            [sys.executable, "-u", "-m", "signerd", "demo", "--auto"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": folder},
        )
        with demo:
            assert demo.stdout is not None
            # A device that shows something has a worker.
            assert next((line for line in demo.stdout if " shows" in line), None) is not None
            family = descendants(demo.pid)
            commands = [command_of(pid) for pid in family]
            demo.kill()
        for part in ("custody.server serve", "device virtual", "signerd run", "multiprocessing.forkserver"):
            assert [command for command in commands if part in command], (part, commands)
        until_gone(*family, seconds=PATIENCE_SECONDS)


def test_where_one_desk_fails_the_others_start_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    async def desk(_demo: story.Demo, name: str, _maker: str) -> Signer:
        if name == "first":
            raise DemoFailed("no device")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)
        raise AssertionError

    async def desks() -> list[str]:
        with pytest.raises(DemoFailed, match="no device"):
            await story._desks(story.Demo(tmp_path, Programs(tmp_path), auto=True))
        return list(ended)

    monkeypatch.setattr(story, "_desk", desk)
    assert sorted(asyncio.run(desks())) == ["second", "third"]


def test_a_question_that_nobody_answers_holds_nothing_up() -> None:
    answered = threading.Event()

    def finger(_title: str, _lines: list[str]) -> bool:
        return answered.wait(30)

    async def leave() -> None:
        async with asyncio.timeout(0.05):
            await _pressed(finger, "Trezor", ["Send?"])

    with pytest.raises(TimeoutError):
        asyncio.run(leave())
    assert not answered.is_set()
    answered.set()


def test_a_question_without_anybody_is_answered_no(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(os.devnull).open() as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        assert story._person("Trezor", ["Send?"]) is False
