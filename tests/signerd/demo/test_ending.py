"""However the demo ends, nothing that it started outlives it."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signerd.demo import programs, story
from signerd.demo.programs import DemoFailed, Programs, side_by_side
from tests.conformance.rigs import short_folder
from tests.support.examples import drawn

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


@pytest.mark.slow(
    "every program as a whole: test_with_platform.py and the browser's main job try the same in less"
)
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system does not list its processes")
@pytest.mark.parametrize("ending", drawn([signal.SIGTERM, signal.SIGHUP], 1, of=__name__))
def test_a_signal_ends_every_program(ending: signal.Signals) -> None:
    with (
        short_folder() as folder,
        subprocess.Popen(
            [sys.executable, "-u", "-m", "signerd", "demo", "--auto"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": folder},
        ) as demo,
    ):
        assert demo.stdout is not None
        try:
            assert next((line for line in demo.stdout if "is switched on" in line), None) is not None
            (root,) = Path(folder).glob("signerd-demo-*")
            assert programs_of(str(root))
            demo.send_signal(ending)
            _out, err = demo.communicate(timeout=PATIENCE_SECONDS)
        finally:
            demo.kill()
        assert demo.returncode == story.EXIT_TERMINATED
        assert str(root) in err
        assert programs_of(str(root)) == []


def test_where_one_desk_fails_the_others_start_nothing_more() -> None:
    ended: list[str] = []

    async def desk(name: str) -> None:
        if name == "first":
            raise DemoFailed("no device")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def desks() -> list[str]:
        with pytest.raises(DemoFailed, match="no device"):
            await side_by_side(*(desk(name) for name in ("first", "second", "third")))
        return list(ended)

    assert sorted(asyncio.run(desks())) == ["second", "third"]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print('hello'); raise SystemExit('no such chain')", r"ended with status 1:\n    no such chain"),
        ("import time; print('hello', flush=True); time.sleep(600)", "was not ready within 2 s"),
    ],
    ids=["ends", "hangs"],
)
def test_a_program_that_does_not_come_up_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    (tmp_path / "broken.py").write_text(program)
    monkeypatch.setattr(programs, "START_SECONDS", 2)

    async def start() -> None:
        running = Programs(tmp_path)
        try:
            path = {"PYTHONPATH": str(tmp_path)}
            await (await running.start("platform", "broken", [], env=path)).until_said(re.compile("Serving"))
        finally:
            await running.stop()

    with pytest.raises(DemoFailed, match=said):
        asyncio.run(start())


def test_what_a_program_says_after_it_is_ready_goes_to_its_log(tmp_path: Path) -> None:
    (tmp_path / "talks.py").write_text("print('Serving'); print('more')")

    async def start() -> str:
        running = Programs(tmp_path)
        program = await running.start("platform", "talks", [], env={"PYTHONPATH": str(tmp_path)})
        await program.until_said(re.compile("Serving"))
        assert program._copying is not None
        await program._copying
        await running.stop()
        return program.log.read_text()

    assert asyncio.run(start()) == "more\n"
