"""One hand on a device's buttons, and two views of it: the page and the terminal."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from device_simulators.page import DeviceScreen, SimulatorDesk
from signerd.demo.devices import DemoDevice
from signerd.demo.programs import Program
from signerd.demo.terminal import InputEnded
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio


class Device:
    """The program of a virtual device: what it tells, and what it was told."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[str] = asyncio.Queue()
        self._events: asyncio.Queue[str] = asyncio.Queue()

    async def say(self, text: str) -> None:
        self.sent.put_nowait(text)

    async def stop(self) -> None:
        pass

    def tells(self, event: str, number: int) -> None:
        shown = (
            {"lines": [f"Question {number}"], "no": "No", "turn": "", "yes": "Yes"}
            if event == "prompt"
            else {}
        )
        self._events.put_nowait(json.dumps({"event": event, "id": number, **shown}))

    async def lines(self) -> AsyncIterator[str]:
        while True:
            yield await self._events.get()


class Terminal:
    """Asked, answers when it is told to, and notes which questions ended without an answer."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[int] = asyncio.Queue()
        self.ended: list[tuple[int, str]] = []
        self.answer: asyncio.Queue[str | Exception] = asyncio.Queue()

    async def __call__(self, _title: str, screen: DeviceScreen) -> bool:
        self.asked.put_nowait(screen.number)
        try:
            answer = await self.answer.get()
        except asyncio.CancelledError as end:
            self.ended.append((screen.number, *end.args))
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer == "yes"


async def test_a_question_is_answered_in_either_place_and_is_open_in_neither_then():
    program, terminal, desk = Device(), Terminal(), SimulatorDesk("Devices")
    device = DemoDevice("Ledger", "tcp:x", "9f441a36", cast("Program", program), desk, terminal)
    desk.add(device.stand)
    views: AsyncIterator[dict[str, Any]] = desk.views()

    async def on_the_page(number: int) -> None:
        while (await anext(views))["devices"][0]["number"] != number:
            pass

    async with asyncio.timeout(PATIENCE):
        device.watch(program.lines())
        program.tells("prompt", 1)
        await on_the_page(1)
        assert await terminal.asked.get() == 1
        await desk.press(0, 1, yes=True)
        assert await program.sent.get() == "yes 1"
        # The device says what it took; the terminal asks no more.
        program.tells("approved", 1)
        await on_the_page(0)
        program.tells("prompt", 2)
        assert await terminal.asked.get() == 2
        assert terminal.ended == [(1, "approved")]
        terminal.answer.put_nowait("no")
        assert await program.sent.get() == "no 2"
        program.tells("refused", 2)
        # The host gave up; then nobody is at the terminal, and the page still has its buttons.
        program.tells("prompt", 3)
        program.tells("withdrawn", 3)
        program.tells("prompt", 4)
        while await terminal.asked.get() != 4:
            pass
        terminal.answer.put_nowait(InputEnded())
        await on_the_page(4)
        await desk.press(0, 4, yes=False)
        assert await program.sent.get() == "no 4"
        await device.stop()
