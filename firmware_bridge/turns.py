"""Taking turns at a device with other programs of the same person that do the same.

A bus does not keep two programs apart everywhere: the second one's first look takes a Coldcard's session from the first, and
ends what an emulator asks. So programs that know each other take a device's turn for each operation, and are told whose it is.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from firmware_bridge import errors
from firmware_bridge.families import clean_detail
from firmware_bridge.model import Endpoint

Turn = Callable[[Endpoint], AbstractContextManager[None]]
"""Held while the device is asked anything. Raises Busy, at once, where another program has it."""

# It stands in a sentence on a screen.
_MAX_NAME: Final = 120


def no_turns(_endpoint: Endpoint) -> AbstractContextManager[None]:
    return nullcontext()


def turns_in(folder: Path, name: str) -> Turn:
    """Turns by locks on files in a folder that only this person can enter. `name`: what others are told has the device.

    The kernel takes a lock back from a program that is killed.
    """

    @contextmanager
    def turn(endpoint: Endpoint) -> Iterator[None]:
        import fcntl  # Not on every system; whoever takes turns by files is on one that has it.

        place = folder / hashlib.sha256(str(endpoint).encode()).hexdigest()[:32]
        with place.open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = clean_detail(file.read(_MAX_NAME * 4).decode(errors="replace"))
                raise errors.Busy(f"In use by {(holder or 'another program')[:_MAX_NAME]}.") from None
            file.truncate(0)
            file.write(name.encode())
            file.flush()
            yield

    return turn
