"""The virtual devices of the demo, and the finger on their buttons: a person's, or the script's."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from signerd.demo.programs import DemoFailed, Program, Programs

READY_SECONDS = 300.0

# Shown the device's name and the lines of its screen; true presses yes.
Finger = Callable[[str, list[str]], bool]


@dataclass
class DemoDevice:
    """A virtual device in a process of its own, with its endpoint for ``signerd`` and its fingerprint."""

    title: str
    endpoint: str
    fingerprint: str
    program: Program
    _watching: asyncio.Task[None]

    async def stop(self) -> None:
        self._watching.cancel()
        await self.program.stop()


async def start_device(
    programs: Programs, family: str, title: str, listen: str, seed_file: Path, finger: Finger
) -> DemoDevice:
    """Start a virtual device and answer its prompts with ``finger``."""
    args = ["device", "virtual", family, "--listen", listen, "--seed-file", str(seed_file), "--json"]
    program = await programs.start(title, "signerd", args, talk=True)
    lines = program.lines()
    try:
        ready = json.loads(await asyncio.wait_for(anext(lines), READY_SECONDS))
    except (TimeoutError, StopAsyncIteration, ValueError):
        await program.stop()
        raise DemoFailed(f"{title} did not start; its log is {program.log}") from None

    async def watch() -> None:
        async for line in lines:
            event = json.loads(line)
            if event.get("event") == "prompt":
                pressed = await _pressed(finger, title, event["lines"])
                await program.say(f"{'yes' if pressed else 'no'} {event['id']}")

    return DemoDevice(title, ready["endpoint"], ready["fingerprint"], program, asyncio.create_task(watch()))


async def _pressed(finger: Finger, title: str, lines: list[str]) -> bool:
    """The finger's decision, in a thread that nobody waits for: who stops the demo never answers the question."""
    loop = asyncio.get_running_loop()
    decided: asyncio.Future[bool] = loop.create_future()

    def decide(pressed: bool) -> None:
        if not decided.done():
            decided.set_result(pressed)

    def ask() -> None:
        pressed = finger(title, lines)
        # The demo may have ended meanwhile.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(decide, pressed)

    threading.Thread(target=ask, name=title, daemon=True).start()
    return await decided
