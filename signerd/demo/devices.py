"""The virtual devices of the demo: each is a program, with its screen and buttons on the page and in the
terminal.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from device_simulators.page import DeviceScreen, SimulatorDesk, Stand
from multisig import Network
from signerd.demo.programs import START_SECONDS, DemoFailed, Program, Programs
from signerd.demo.terminal import InputEnded, Terminal, boxed

# The platform's embedded chain, called a signet: page, terminal and device then write an address alike. No
# device knows regtest's own form (ADR 6).
NETWORK = Network.SIGNET

# Gets the device's title and screen; True presses the right-hand button. Cancelled with a message where the
# question is answered elsewhere or withdrawn.
ButtonPress = Callable[[str, DeviceScreen], Awaitable[bool]]


@dataclass
class DemoDevice:
    """A virtual device in a process of its own, with its endpoint for ``signerd`` and its fingerprint."""

    title: str
    endpoint: str
    fingerprint: str
    program: Program
    desk: SimulatorDesk
    finger: ButtonPress
    stand: Stand = field(init=False)
    _asking: asyncio.Task[None] | None = None
    _watching: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.stand = Stand(self.title, f"fingerprint {self.fingerprint}", self._press)

    def watch(self, lines: AsyncIterator[str]) -> None:
        """Follow what the device says, for as long as it runs."""

        async def follow() -> None:
            async for line in lines:
                self._heard(json.loads(line))

        self._watching = asyncio.create_task(follow())

    async def stop(self) -> None:
        for task in (self._watching, self._asking):
            if task is not None:
                task.cancel()
        await self.program.stop()

    def _heard(self, event: dict[str, Any]) -> None:
        screen = DeviceScreen.after(event)
        if screen is None:
            return
        note = f": {OF_EVERY_VAULT}" if screen.lines[:1] == UNUSUAL_PATH else ""
        self.stand.about = f"fingerprint {self.fingerprint}{note}"
        if self._asking is not None:
            # The question was answered in the terminal, on the page or by the host.
            self._asking.cancel(screen.ended)
            self._asking = None
        self.desk.show(self.stand, screen)
        if screen.number:
            self._asking = asyncio.create_task(self._ask(screen))

    async def _ask(self, screen: DeviceScreen) -> None:
        # Where the terminal has ended, the page still has its buttons.
        with contextlib.suppress(InputEnded):
            await self._press(screen.number, await self.finger(self.title, screen))

    async def _press(self, number: int, yes: bool) -> None:
        await self.program.say(f"{'yes' if yes else 'no'} {number}")


async def start_device(
    programs: Programs, family: str, title: str, place: Path, desk: SimulatorDesk, finger: ButtonPress
) -> DemoDevice:
    """Start a virtual device. Its files are ``place`` with their endings. ``finger`` answers its prompts, and
    so can a person on the page of ``desk``, to which the caller adds its stand.
    """
    listen = f"{place}.sock" if family == "coldcard" else "127.0.0.1:0"
    args = ["device", "virtual", family, "--listen", listen, "--network", str(NETWORK), "--json"]
    program = await programs.start(title, "signerd", [*args, "--seed-file", f"{place}.seed"])
    lines = program.lines()
    try:
        ready = json.loads(await asyncio.wait_for(anext(lines), START_SECONDS))
    except (TimeoutError, StopAsyncIteration, ValueError):
        await program.stop()
        raise DemoFailed(f"{title} did not start; its log is {program.log}") from None
    device = DemoDevice(title, ready["endpoint"], ready["fingerprint"], program, desk, finger)
    device.watch(lines)
    return device


# A Trezor's first line where a key lies on another path than those of its own wallets.
UNUSUAL_PATH = ("Wrong address path",)
OF_EVERY_VAULT = "A Trezor warns so of every path of a vault's key. Here that is right: go on."


def a_person_at(terminal: Terminal) -> ButtonPress:
    """Asks the person at the terminal which button to press."""

    async def press(title: str, screen: DeviceScreen) -> bool:
        right = screen.yes or "yes"
        answers = {"y": right} | ({"n": screen.left} if screen.left else {})
        shown = boxed(title, screen.lines)
        if screen.lines[:1] == UNUSUAL_PATH:
            shown += f"\n{OF_EVERY_VAULT}"
        try:
            return await terminal.choose(f"{title}, which button?", answers, shown=shown) == right
        except asyncio.CancelledError as end:
            # A message says that the question is over; without one the demo is ending.
            if end.args:
                terminal.say(f"    {title}: {end.args[0]}")
            raise

    return press
