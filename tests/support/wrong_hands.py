"""Operators of a device with which the contract must fail, to show that its cases can fail."""

from dataclasses import replace

from device_simulators.panel import Prompt
from tests.conformance.hands import Hands, ProcessHands, Unable


class Misreading(ProcessHands):
    """Reads another amount than the one on the screen."""

    def screen(self) -> Prompt | None:
        prompt = super().screen()
        if prompt is None:
            return None
        return replace(prompt, lines=tuple(line.replace("5", "6") for line in prompt.lines))


class Refusing(ProcessHands):
    """Rejects instead of approving."""

    def press_yes(self) -> None:
        super().press_no()


class Armless(ProcessHands):
    """Can only press and read, and knows no kinds of screens."""

    unplug, plug, lock, unlock = Hands.unplug, Hands.plug, Hands.lock, Hands.unlock

    def screen(self) -> Prompt | None:
        prompt = super().screen()
        return None if prompt is None or not prompt.yes else replace(prompt, kind="", no="no", yes="yes")


def cannot(*_arguments: object, **_options: object) -> Hands:
    raise Unable("this device cannot be had")


class Narrow(ProcessHands):
    """Reads a screen of twelve letters a line, as a debug link may."""

    def screen(self) -> Prompt | None:
        prompt = super().screen()
        if prompt is None:
            return None
        text = " ".join(prompt.lines)
        return replace(prompt, lines=tuple(text[at : at + 12] for at in range(0, len(text), 12)))
