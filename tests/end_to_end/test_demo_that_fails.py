"""The demo says so, and ends, where something in it does not work: every part real,
as in the one that goes well.
"""

import re

from signerd.demo import story


def test_a_refusal_on_a_device_fails_the_demo_loudly(monkeypatch, capsys):
    """The first signer's device is told no when it shows the payment: nothing is confirmed,
    and the reason is said.
    """

    def press(_title: str, lines: list[str]) -> bool:
        return not any("0.12345678" in line for line in lines)

    monkeypatch.setattr(story, "_script", lambda _demo: press)
    assert story.main(auto=True) == story.EXIT_FAILED
    said = capsys.readouterr()
    assert "The demo failed" in said.err
    assert "refused" in said.err.lower()
    assert not re.search(r"^[0-9a-f]{64}$", said.out, re.MULTILINE)


def test_a_step_that_does_nothing_is_noticed(monkeypatch, capsys):
    """A demo that skips a step must not reach its end."""

    async def nothing(*_args: object) -> str:
        return "no code"

    monkeypatch.setattr(story, "_pin", nothing)
    monkeypatch.setattr(story, "STEP_SECONDS", 5.0)
    assert story.main(auto=True) == story.EXIT_FAILED
    assert "The demo failed" in capsys.readouterr().err
