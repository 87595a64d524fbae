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


def cannot(*_arguments: object, **_options: object) -> Hands:
    raise Unable("this device cannot be had")
