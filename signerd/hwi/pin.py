"""promptpin, sendpin: the places of a PIN's digits in a matrix that only the device shows, carried to the daemon's unlocking."""

import re
import sys
import time
from collections.abc import Callable
from typing import Final

from signerd.asking import segment
from signerd.errors import DeviceFailed
from signerd.hwi.codes import Code, HwiError, device_code
from signerd.hwi.connection import DaemonConnection
from signerd.hwi.listing import PIN_AT_THE_HOST, Chosen, present
from signerd.hwi.values import Device, Step, read, read_all

# A device takes seconds to compare a PIN, and longer after wrong ones.
WORKS_SECONDS: Final = 60.0
_PLACES: Final = re.compile(r"[1-9]{1,50}", re.ASCII)
_LOCKED: Final = Code.DEVICE_NOT_READY
_MATRIX: Final = """Use 'sendpin' to provide the number positions for the PIN as displayed on your device's screen
The layout:
    7 8 9
    4 5 6
    1 2 3
"""


def prompt(
    daemon: DaemonConnection, chosen: Chosen, clock: Callable[[], float] = time.monotonic
) -> dict[str, bool]:
    device = _locked(chosen)
    path = f"/devices/{segment(device.id)}/unlock"
    step = _settled(daemon, path, read(Step.read, daemon.post(path)), clock)
    if step.state == "unlocked":
        raise _unlocked()
    if step.kind != "pin":
        _left_to_the_page(step)
    sys.stderr.write(_MATRIX)
    return {"success": True}


def send(
    daemon: DaemonConnection, chosen: Chosen, pin: str, clock: Callable[[], float] = time.monotonic
) -> dict[str, bool]:
    """``success`` is false where the device says that it was wrong."""
    device = _locked(chosen)
    if _PLACES.fullmatch(pin) is None:
        raise HwiError("a PIN is sent as the places of its digits, 1 to 9", Code.BAD_ARGUMENT)
    question = _open_question(daemon, device)
    try:
        step = read(Step.read, daemon.post(f"/questions/{segment(question)}", {"answer": pin}))
        step = _settled(daemon, f"/devices/{segment(device.id)}/unlock", step, clock)
    except DeviceFailed as error:
        if device_code(str(error)) is _LOCKED:
            return {"success": False}
        raise
    if step.state == "asks":
        _left_to_the_page(step)
    return {"success": True}


def _locked(chosen: Chosen) -> Device:
    """Raises HwiError."""
    device = present(chosen)
    if device.family not in PIN_AT_THE_HOST:
        raise HwiError(f"a {device.family} does not need a PIN sent from the host", Code.UNAVAILABLE_ACTION)
    if device.state == "ready":
        raise _unlocked()
    return device


def _unlocked() -> HwiError:
    return HwiError("The PIN has already been sent to this device", Code.DEVICE_ALREADY_UNLOCKED)


def _open_question(daemon: DaemonConnection, device: Device) -> str:
    """Raises HwiError."""
    asked = read_all(
        lambda answer: answer["id"] if (answer["device_id"], answer["kind"]) == (device.id, "pin") else None,
        daemon.get("/questions"),
    )
    if not asked:
        raise HwiError("the device does not ask for a PIN now: begin with 'promptpin'", _LOCKED)
    found: str = asked[0]
    return found


def _settled(daemon: DaemonConnection, path: str, step: Step, clock: Callable[[], float]) -> Step:
    """Past the device's own work; each request waits for some seconds of it."""
    deadline = clock() + WORKS_SECONDS
    while step.state == "works":
        if clock() >= deadline:
            raise HwiError("the device did not finish in time", Code.DEVICE_CONN_ERROR)
        step = read(Step.read, daemon.get(path))
    return step


def _left_to_the_page(step: Step) -> None:
    """A passphrase is no business of a caller's. Raises HwiError, so that nobody sends it as a PIN."""
    raise HwiError(
        f"the device asks for its {step.kind}: answer on signerd's page or with `signerd devices unlock`",
        Code.NO_PASSWORD,
    )
