"""A device's buttons on the page, and the screen that is told in the terminal."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from device_simulators.page import DeviceScreen, SimulatorDesk
from signerd.demo.devices import DemoDevice
from signerd.demo.programs import Program
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


@pytest.mark.parametrize("alone", [False, True])
async def test_a_question_waits_on_the_page_unless_no_person_is_there(alone):
    program, desk, told = Device(), SimulatorDesk("Devices"), []

    def asks(_title: str, screen: DeviceScreen) -> bool:
        told.append(screen.number)
        return alone

    device = DemoDevice("Ledger", "tcp:x", "9f441a36", cast("Program", program), desk, asks)
    desk.add(device.stand)
    views: AsyncIterator[list[dict[str, Any]]] = desk.views()

    async def on_the_page(number: int) -> None:
        while (await anext(views))[0]["number"] != number:
            pass

    async with asyncio.timeout(PATIENCE):
        device.watch(program.lines())
        program.tells("prompt", 1)
        await on_the_page(1)
        if not alone:
            await desk.press(0, 1, yes=True)
        assert await program.sent.get() == "yes 1"
        # The device says what it took; the page has no button then.
        program.tells("approved", 1)
        await on_the_page(0)
        program.tells("prompt", 2)
        await on_the_page(2)
        if not alone:
            await desk.press(0, 2, yes=False)
        assert await program.sent.get() == ("yes 2" if alone else "no 2")
        assert (told, program.sent.empty()) == ([1, 2], True)
        await device.stop()
