"""Handing a notice to the desktop: a child that lives for one of them, with a deadline. Where there is no desktop, nothing is done."""

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from signerd import runtime
from signerd.notifying.words import Notice

# For a child that hangs. The child itself gives the desktop its time (``child.SECONDS``), from when it runs.
DEADLINE_SECONDS = 120.0
_CHILD = "signerd.notifying.child"


def session_bus(environment: Mapping[str, str] = os.environ) -> str | None:
    """The address of the person's bus, as the desktop gives it (sd-bus(3), D-Bus specification); None where there is none."""
    given = environment.get("DBUS_SESSION_BUS_ADDRESS")
    if given:
        return given
    folder = environment.get("XDG_RUNTIME_DIR")
    if not folder:
        return None
    usual = Path(folder) / "bus"
    return f"unix:path={usual}" if usual.is_socket() else None


async def show(notice: Notice, *, seconds: float = DEADLINE_SECONDS) -> bool:
    """Whether a desktop took it. Raises OSError where no process can be started."""
    address = session_bus()
    if address is None:
        return False
    child = await asyncio.create_subprocess_exec(
        *runtime.command(_CHILD, address),
        pass_fds=(runtime.line(),),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(seconds):
            await child.communicate(json.dumps(asdict(notice)).encode())
    except TimeoutError:
        return False
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    return child.returncode == 0
