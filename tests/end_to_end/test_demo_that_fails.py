"""What goes wrong in the demo is told, every part real as in the one that goes well."""

import os
import sys
from collections.abc import Mapping

import pytest

from device_simulators.page import Screen
from signerd.demo import stage, story
from signerd.demo.people import Signer
from signerd.demo.stage import Demo
from signerd.demo.terminal import Terminal

CODE = "ABCD-EFGH"


def test_a_refusal_can_be_tried_again_and_a_step_that_was_left_out_is_noticed(monkeypatch, capsys):
    """The first signer's device is told no once, when it shows the payment. The second signer has not pinned
    the vault, and wants no second try: nothing is confirmed, and everything runs until it is stopped.
    """
    pin, asked, refused = story._pin, [], []

    async def pin_but_for_the_second(demo: Demo, signer: Signer, vault_id: str) -> str:
        return CODE if "second" in signer.name else await pin(demo, signer, vault_id) and CODE

    def finger(_demo: Demo):
        async def press(_title: str, screen: Screen) -> bool:
            first = not refused and any("0.12345678" in line for line in screen.lines)
            refused.extend(["the payment"] * first)
            return not first

        return press

    async def choose(_self: Terminal, question: str, answers: Mapping[str, str], **_how: object) -> str:
        asked.append(question)
        return answers["yyynq"[len(asked) - 1]]

    monkeypatch.setattr(story, "_pin", pin_but_for_the_second)
    monkeypatch.setattr(stage, "_finger", finger)
    monkeypatch.setattr(Terminal, "choose", choose)
    reading, writing = os.pipe()
    with os.fdopen(reading) as somebody:
        monkeypatch.setattr(sys, "stdin", somebody)
        assert story.main(auto=False) == 0
    os.close(writing)
    said = capsys.readouterr().out
    approve, again = "You are the first signer. Approve? [y/n]", "Try it again? [Y/n]"
    assert asked == [approve, again, approve, again, "q or Ctrl-C: stop everything."]
    first, second = [line for line in said.splitlines() if line.startswith("Not done:")]
    assert "refused on the device" in first
    assert "not pinned" in second
    assert "Confirmed" not in said


@pytest.fixture(autouse=True)
def _folder(tmp_path_factory, monkeypatch):
    """What a run leaves to be looked at is not left in the system's folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("d")))
