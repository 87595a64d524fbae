"""What the demo asks its person: a no is told and offered again, and the end waits for them."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from custody.common.exits import Exit
from signerd.demo import story
from signerd.demo.asking import StepDeclined, explore, with_retries
from signerd.demo.people import NotSigned
from signerd.demo.programs import Programs
from signerd.demo.stage import Demo
from signerd.demo.terminal import Terminal
from signerd.errors import AddressNotShown
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio


class Answers(Terminal):
    """A person whose answers are known beforehand; ``said``: what they were told and asked."""

    def __init__(self, *answers: str) -> None:
        super().__init__()
        self.said: list[str] = []
        self._left = list(answers)

    def say(self, text: str, *, doing: str = "") -> None:
        self.said.append(text)

    async def choose(self, question: str, answers: Any, **_how: Any) -> str:
        self.said.append(question)
        return str(answers[self._left.pop(0)])


def demo_with(tmp_path: Path, *answers: str, auto: bool = False) -> tuple[Demo, list[str]]:
    terminal = Answers(*answers)
    return Demo(tmp_path, Programs(tmp_path), auto, terminal=terminal), terminal.said


def failing(*outcomes: Exception | str) -> Callable[[], Any]:
    left = list(outcomes)

    async def attempt() -> str:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return attempt


async def test_a_no_is_told_with_what_to_do_and_the_step_is_offered_again(tmp_path):
    demo, said = demo_with(tmp_path, "", "y")
    attempt = failing(
        NotSigned("you said no."), AddressNotShown("the device said no", hint="Do this."), "done"
    )
    assert await with_retries(demo, attempt) == "done"
    again = "Try it again?"
    assert said == [f"Not done: you said no. {again}", f"Not done: the device said no. Do this. {again}"]
    demo, said = demo_with(tmp_path, "n")
    with pytest.raises(StepDeclined):
        await with_retries(demo, failing(NotSigned("you said no")))
    # Where no person is, nobody is asked: the demo fails.
    demo, said = demo_with(tmp_path, auto=True)
    with pytest.raises(NotSigned):
        await with_retries(demo, failing(NotSigned("the device said no")))
    assert said == []


async def test_the_end_offers_the_token_once_and_waits_until_it_is_told_to_stop(tmp_path):
    ran = []

    async def rest() -> None:
        assert not demo.finished
        ran.append("token")
        raise StepDeclined

    demo, said = demo_with(tmp_path, "t", "q")
    await explore(demo, rest)
    assert (ran, demo.finished) == (["token"], True)
    assert said.count("What now?") == 2


# The real program, with a story of one question in the place of the programs that it starts.
PROGRAM = """
import sys
from signerd.demo import story
from signerd.demo.asking import StepDeclined
from custody.common.exits import Exit
async def main_job(demo, _stack):
    if await demo.terminal.choose("Press?", {"y": "yes", "n": "no"}) == "no":
        raise StepDeclined
    return "f" * 64, None
story._main_job = main_job
sys.exit(story.main(auto=False))
"""


@contextlib.contextmanager
def killed_where_it_hangs(program: "subprocess.Popen[str]") -> Iterator[None]:
    """Its output ends then, and the test says what is missing."""
    watch = threading.Timer(PATIENCE, program.kill)
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


@pytest.mark.parametrize(
    ("person", "status", "last"),
    [
        ((signal.SIGINT,), Exit.INTERRUPTED, "Stopped."),
        ((signal.SIGTERM,), story.EXIT_TERMINATED, ""),
        (("n", signal.SIGINT), 0, "Stopped."),
        (("y", "q"), 0, "Stopped."),
        ((None,), Exit.FAILED, "`make demo AUTO=1` runs without a person"),
    ],
    ids=["ctrl-c-at-a-question", "told-to-end", "a-no-then-ctrl-c", "quit", "input-ends-in-the-story"],
)
def test_it_ends_at_once_and_calmly_wherever_the_person_ends_it(tmp_path, person, status, last):
    with (
        subprocess.Popen(
            [sys.executable, "-u", "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        ) as demo,
        killed_where_it_hangs(demo),
    ):
        assert demo.stdin is not None
        assert demo.stdout is not None
        said = ""
        for question, answer in zip(("n: no: ", "q: Stop everything: "), person, strict=False):
            while not said.endswith(question):
                some = demo.stdout.read(1)
                assert some, said
                said += some
            if isinstance(answer, signal.Signals):
                demo.send_signal(answer)
            elif answer is None:
                demo.stdin.close()
            else:
                demo.stdin.write(f"{answer}\n")
                demo.stdin.flush()
        said += demo.stdout.read()
    assert demo.returncode == status, said
    assert last in said
    assert "Traceback" not in said
    assert ("f" * 64 in said) == (person[0] == "y")
