"""The virtual devices of the demo: each is a program, with its screen and buttons on the page."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from device_simulators.page import DeviceScreen, SimulatorDesk, Stand
from multisig import Network
from signerd.demo.programs import START_SECONDS, DemoFailed, Program, Programs

# The platform's embedded chain, called a signet: page, terminal and device then write an address alike. No
# device knows regtest's own form (ADR 6).
NETWORK = Network.SIGNET
# A Trezor's first line where a key lies on another path than those of its own wallets.
UNUSUAL_PATH = ("Wrong address path",)
OF_EVERY_VAULT = "A Trezor warns so of every path of a vault's key. Here that is right: go on."

# Gets the device's title and a screen with a question; true where no person is to press its buttons.
ScreenShown = Callable[[str, DeviceScreen], bool]


@dataclass
class DemoDevice:
    """A virtual device in a process of its own, with its endpoint for ``signerd`` and its fingerprint."""

    title: str
    endpoint: str
    fingerprint: str
    program: Program
    desk: SimulatorDesk
    asks: ScreenShown
    stand: Stand = field(init=False)
    _watching: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.stand = Stand(self.title, f"fingerprint {self.fingerprint}", self._press)

    def watch(self, lines: AsyncIterator[str]) -> None:
        """Follow what the device says, for as long as it runs."""
        self._watching = asyncio.create_task(self._watch(lines))

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        await self.program.stop()

    async def _watch(self, lines: AsyncIterator[str]) -> None:
        async for line in lines:
            await self._heard(json.loads(line))

    async def _heard(self, event: dict[str, Any]) -> None:
        screen = DeviceScreen.after(event)
        if screen is None:
            return
        note = f": {OF_EVERY_VAULT}" if screen.lines[:1] == UNUSUAL_PATH else ""
        self.stand.about = f"fingerprint {self.fingerprint}{note}"
        self.desk.show(self.stand, screen)
        if screen.number and self.asks(self.title, screen):
            await self._press(screen.number, yes=True)

    async def _press(self, number: int, yes: bool) -> None:
        await self.program.say(f"{'yes' if yes else 'no'} {number}")


async def start_device(
    programs: Programs,
    family: str,
    title: str,
    listen: str,
    seed_file: Path,
    desk: SimulatorDesk,
    asks: ScreenShown,
) -> DemoDevice:
    """Start a virtual device. A person answers its prompts on the page of ``desk``, to which the caller adds
    its stand.
    """
    args = ["device", "virtual", family, "--listen", listen, "--network", str(NETWORK)]
    args += ["--seed-file", str(seed_file), "--json"]
    program = await programs.start(title, "signerd", args)
    lines = program.lines()
    try:
        ready = json.loads(await asyncio.wait_for(anext(lines), START_SECONDS))
    except (TimeoutError, StopAsyncIteration, ValueError):
        await program.stop()
        raise DemoFailed(f"{title} did not start; its log is {program.log}") from None
    device = DemoDevice(title, ready["endpoint"], ready["fingerprint"], program, desk, asks)
    device.watch(lines)
    return device
