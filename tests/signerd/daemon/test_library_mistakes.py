"""What the device library raises where nobody foresaw it is told and tried again, and ends nothing (F)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from firmware_bridge import Device, DeviceEvent, DeviceState
from signerd.core.states import State
from signerd.daemon.service import Daemon
from tests.support.daemons import approve, daemon_at, until, until_state
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform

pytestmark = pytest.mark.anyio


@dataclass
class Mistaken(FakeBridge):
    """``wrong``: which of its methods raise; ``raised`` counts how often each did."""

    wrong: set[str] = field(default_factory=set)
    raised: dict[str, int] = field(default_factory=dict)

    def _perhaps(self, method: str) -> None:
        if method in self.wrong:
            self.raised[method] = self.raised.get(method, 0) + 1
            raise RuntimeError(f"nobody foresaw it in {method}")

    async def list(self) -> tuple[Device, ...]:
        self._perhaps("list")
        return await super().list()

    async def watch(self) -> None:
        self._perhaps("watch")
        await super().watch()

    async def events(self) -> AsyncIterator[DeviceEvent]:
        self._perhaps("events")
        async for event in super().events():
            yield event
            self._perhaps("events")


async def troubled(daemon: Daemon) -> list[str]:
    return [note for note in (await daemon.status()).notes if "nobody foresaw" in note]


TOLD = {"watch": "Looking for devices", "events": "Listening to devices", "list": "Listing the devices"}


@pytest.mark.parametrize("method", TOLD)
async def test_f_a_mistake_of_the_library_is_told_and_tried_again(
    prepared: Path, platform: FakePlatform, method: str
) -> None:
    bridge = Mistaken(wrong={method})
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        if method == "list":
            # Nobody is looked for before somebody waits.
            await approve(daemon, "p-1")
        await until(lambda: bridge.raised.get(method, 0) > 3)
        (note,) = await troubled(daemon)
        assert note.startswith(TOLD[method])
        told = [line for line in daemon.feed.since(0, "devices") if line.kind == "attention"]
        assert [line.text.startswith(TOLD[method]) for line in told] == [True]
        bridge.wrong = set()
        if method != "list":
            await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.SUBMITTED)
        assert bridge.asked == 1
        await until(lambda: not daemon.troubles.sentences())
        assert await troubled(daemon) == []


async def test_f_what_changed_while_nobody_listened_is_noticed(
    prepared: Path, platform: FakePlatform
) -> None:
    bridge = Mistaken(wrong={"events"})
    bridge.state = DeviceState.LOCKED
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        await until(lambda: bridge.raised.get("events", 0) > 0)
        bridge.state = DeviceState.READY
        bridge.wrong = set()
        await until_state(daemon, "p-1", State.SUBMITTED)


async def test_f_a_library_that_always_fails_is_asked_less_and_less(
    prepared: Path, platform: FakePlatform
) -> None:
    """The hurried clock hides the pauses; that they grow is `account/test_backoff.py`'s. Here: the rest goes on."""
    bridge = Mistaken(wrong=set(TOLD))
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        status = await daemon.status()
        assert status.devices_ready == 0
        assert status.platform_reachable
        await daemon.reject("p-1", "not now")
        await until(lambda: bool(platform.told()))
