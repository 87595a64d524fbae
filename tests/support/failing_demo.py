"""``python -m tests.support.failing_demo FILE``: the demo with two failures, every part real, until
it is killed at its last question. FILE receives the questions, and every process descended from the demo.

The first signer rejects the payment once on the device. The second signer has not pinned the vault, and
does not retry.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from device_simulators.page import DeviceScreen
from signerd.demo import stage, story
from signerd.demo.people import DemoSigner
from signerd.demo.stage import Demo
from signerd.demo.terminal import Terminal
from tests.support.descendants import command_of, descendants

CODE = "ABCD-EFGH"
ANSWERS = "yyyn"
_pin = story._pin


async def pin_but_for_the_second(demo: Demo, signer: DemoSigner, vault_id: str) -> str:
    return CODE if "second" in signer.name else await _pin(demo, signer, vault_id) and CODE


def finger(_terminal: Terminal):
    refused = []

    async def press(_title: str, screen: DeviceScreen) -> bool:
        first = not refused and any("0.12345678" in line for line in screen.lines)
        refused.extend(["the payment"] * first)
        return not first

    return press


def die(file: Path, asked: list[str]) -> NoReturn:
    family = descendants(os.getpid())
    file.write_text(json.dumps({"asked": asked, "family": {pid: command_of(pid) for pid in family}}))
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def main(file: Path) -> None:
    asked: list[str] = []

    async def choose(_self: Terminal, question: str, answers: Mapping[str, str], **_how: object) -> str:
        asked.append(question)
        if len(asked) <= len(ANSWERS):
            return answers[ANSWERS[len(asked) - 1]]
        die(file, asked)

    story._pin, stage.a_person_at, Terminal.choose = pin_but_for_the_second, finger, choose
    story.main(auto=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
