"""What the end of an operation or a probe says about the device: its next state, and why in words."""

from typing import Final

from firmware_bridge import errors
from firmware_bridge.answers import Probed
from firmware_bridge.errors import BridgeError
from firmware_bridge.model import TRANSITIONS, DeviceState, Family, Happening
from firmware_bridge.usb_models import UDEV_RULES

# How an operation or a probe ended, as the device's next state sees it. A person's "no" is no fault of the device.
AFTER_OPERATION: Final[dict[type[BridgeError], Happening]] = {
    errors.RefusedByPerson: Happening.FOUND_READY,
    errors.Cancelled: Happening.FOUND_READY,
    errors.NotEnrolled: Happening.FOUND_READY,
    errors.WrongDevice: Happening.FOUND_READY,
    errors.BadDeviceSignature: Happening.FOUND_READY,
    errors.AddressMismatch: Happening.FOUND_READY,
    errors.Unsupported: Happening.FOUND_READY,
    errors.Disconnected: Happening.VANISHED,
    errors.Locked: Happening.FOUND_LOCKED,
    errors.WrongApp: Happening.FOUND_WRONG_APP,
    errors.NeedsPassphrase: Happening.FOUND_NEEDS_PASSPHRASE,
    errors.Busy: Happening.FOUND_BUSY,
    errors.NoPermission: Happening.FOUND_NO_PERMISSION,
    errors.TimedOut: Happening.FAILED,
    errors.DeviceFault: Happening.FAILED,
    errors.WorkerCrashed: Happening.FAILED,
}
# A probe that ends so has not found a working device, though an operation may end so on one.
AFTER_PROBE: Final = {
    **AFTER_OPERATION,
    errors.Unsupported: Happening.FOUND_UNSUPPORTED,
    errors.Cancelled: Happening.FAILED,
}
# An operation may end so before the device has heard of it: given up while it waited, or more than the make can do.
_PERHAPS_UNHEARD: Final = (errors.Cancelled, errors.Unsupported)
_BACK_TO: Final = {
    state: happening for (start, happening), state in TRANSITIONS.items() if start == DeviceState.BUSY
}


def tells_nothing(outcome: BridgeError) -> bool:
    """Whether it says nothing of the device's state: that is then what it was before."""
    return isinstance(outcome, _PERHAPS_UNHEARD)


def back_to(state: DeviceState) -> Happening:
    return _BACK_TO[state]


def after_operation(outcome: BridgeError) -> Happening:
    return AFTER_OPERATION.get(type(outcome), Happening.FAILED)


def after_probe(outcome: BridgeError) -> Happening:
    return AFTER_PROBE.get(type(outcome), Happening.FAILED)


def after_answer(answer: Probed) -> tuple[Happening, str | None]:
    """What a probe's answer says: ready, or what keeps the device from working."""
    if answer.obstacle is None:
        return Happening.FOUND_READY, None
    outcome = errors.from_worker(answer.obstacle, answer.detail)
    return AFTER_PROBE[type(outcome)], outcome.words


def no_permission(family: Family) -> str:
    return f"{errors.NoPermission.sentence} Install the rules file {UDEV_RULES[family]}."
