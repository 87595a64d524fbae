"""Saying at the terminal, while a device shows an address, that it is another one: a Trezor has no button for that."""

import contextlib
import select
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TextIO

from signerd.errors import SignerdError

if TYPE_CHECKING:
    from signerd.client import DaemonClient

Tell = Callable[[str], None]

WORD: Final = "another"
OFFER: Final = f"If your device shows another address and no button on it means no, type '{WORD}' here."
# How long after the end of the showing the terminal is still listened to.
_POLL_SECONDS: Final = 0.2


@contextlib.contextmanager
def may_say_another(
    daemon: "Callable[[], DaemonClient]", tell: Tell, *, at: TextIO | None = None
) -> Iterator[None]:
    """While the body waits for the device. Where nobody sits at a terminal, it only waits."""
    terminal = sys.stdin if at is None else at
    if not terminal.isatty():
        yield
        return
    tell(OFFER)
    over = threading.Event()
    listener = threading.Thread(
        target=_listen, args=(daemon, terminal, over, tell), name="terminal", daemon=True
    )
    listener.start()
    try:
        yield
    finally:
        over.set()
        listener.join()


def _listen(
    daemon: "Callable[[], DaemonClient]", terminal: TextIO, over: threading.Event, tell: Tell
) -> None:
    while not over.is_set():
        ready, _, _ = select.select([terminal], [], [], _POLL_SECONDS)
        if not ready:
            continue
        line = terminal.readline()
        if not line:
            return
        if line.strip().lower() == WORD:
            with contextlib.suppress(SignerdError):
                _say(daemon)
                return
            tell("No address is on your device's screen.")


def _say(daemon: "Callable[[], DaemonClient]") -> None:
    with daemon() as second:
        registered = second.status().fingerprint
        for device in second.devices():
            if registered is not None and device.fingerprint == registered:
                second.another_address(device.id)
