"""Every way in which work with a device can fail.

What an outcome is stands at its class: its stable code, what is wrong, what to do, and the state in which the
device then is. A bad PSBT, key or text is an error of `multisig`.
"""

import re
from typing import ClassVar, Final

from firmware_bridge.model import DeviceState

# A detail of `WrongApp` that begins so describes a setting of the device, not an app.
_SETTINGS: Final = ("set to ", "bound to ")
_NEXT_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class BridgeError(Exception):
    """One outcome. `code` is stable, the text says what is wrong, `hint` what to do (some families have their
    own, `Maker.hints`), `detail` is the device's own words; `words` is the text with the detail, unless
    `says_all`: a library's words add nothing to it for a person.
    `state`: of the device after an operation or a probe that ends so. `advice`: what it needs in that state.
    `perhaps_unheard`: an operation may end so before the device was asked: its state stays what it was.
    `hwi_code`: what HWI itself would say (`hwilib.errors`).
    """

    code: ClassVar[str] = "bridge-error"
    sentence: ClassVar[str] = "The device could not do this."
    hint: str = "Read the message; it names what is wrong."
    says_all: ClassVar[bool] = False
    state: ClassVar[DeviceState] = DeviceState.PRESENT
    advice: ClassVar[str] = ""
    perhaps_unheard: ClassVar[bool] = False
    hwi_code: ClassVar[int] = -13

    def __init_subclass__(cls) -> None:
        """An outcome's code is its name, "refused-by-person"; what is more precise has the same code."""
        if BridgeError in cls.__bases__:
            cls.code = _NEXT_WORD.sub("-", cls.__name__).lower()

    def __init__(self, sentence: str | None = None, *, detail: str | None = None) -> None:
        super().__init__(sentence or self.sentence)
        self.detail = detail or None

    @property
    def words(self) -> str:
        """The sentence with the device's detail."""
        sentence = str(self)
        if self.says_all or self.detail is None or self.detail in sentence:
            return sentence
        return f"{sentence} ({self.detail})"


class RefusedByPerson(BridgeError):
    sentence = "The request was refused on the device."
    state = DeviceState.READY
    hwi_code = -14
    hint = "Nothing was done. Start again if the refusal was a mistake."
    says_all = True


class Cancelled(BridgeError):
    sentence = "The operation was cancelled before the device had finished."
    perhaps_unheard = True
    hwi_code = -14
    hint = "If the device still shows a question, answer no there."


class Disconnected(BridgeError):
    sentence = "The device is not connected."
    state = DeviceState.ABSENT
    hwi_code = -3
    hint = "Check the cable, connect the device again and repeat."
    says_all = True


class Locked(BridgeError):
    sentence = "The device is locked."
    state = DeviceState.LOCKED
    advice = "Unlock it with its PIN."
    hwi_code = -12
    hint = "Unlock it with its PIN and repeat."


class Uninitialised(BridgeError):
    sentence = "The device has no keys yet."
    state = DeviceState.UNINITIALISED
    advice = "Set it up first: create a wallet on it, or restore yours from its backup."
    hwi_code = -18
    hint = advice


class WrongApp(BridgeError):
    """`app` is the open app's name, if the device reports it, or a setting: "set to Bitcoin: choose …"."""

    state = DeviceState.WRONG_APP
    advice = "Open the Bitcoin app of the right network on it."
    hwi_code = -12
    hint = (
        "Open the Bitcoin app of the right network on the device, "
        "or set the device to that network, and repeat."
    )

    def __init__(self, app: str | None = None) -> None:
        if not app:
            sentence = "The Bitcoin app is not open."
        elif app.startswith(_SETTINGS):
            sentence = f"The device is {app}."
        else:
            sentence = f"The device has another app open: {app}."
        super().__init__(sentence, detail=app)
        self.app = app or None


class NeedsPassphrase(BridgeError):
    sentence = "The device needs a passphrase."
    state = DeviceState.NEEDS_PASSPHRASE
    advice = "Enter its passphrase on the device."
    hwi_code = -12
    hint = "Enter the passphrase on the device, or switch passphrase protection off."


class TimedOut(BridgeError):
    sentence = "The device did not finish in time."
    hwi_code = -3
    hint = "Look at its screen: answer what it asks, or connect it again. Then repeat."


class Busy(BridgeError):
    sentence = "The device is busy with something else."
    state = DeviceState.BUSY
    advice = (
        "Finish what was asked here, or close the other program that uses it. "
        "Answer no to a question that was given up."
    )
    hwi_code = -15
    hint = "Finish what its screen shows, close other wallet programs, and repeat."


class NoPermission(BridgeError):
    sentence = "The operating system does not let this program open the device."
    state = DeviceState.NO_PERMISSION
    advice = "On Linux install this project's udev rules; elsewhere close other wallet programs."
    hwi_code = -3
    hint = "On Linux install the udev rules of this project; elsewhere close other wallet programs."


class Unsupported(BridgeError):
    sentence = "The device does not support this."
    state = DeviceState.UNSUPPORTED
    advice = "Update its firmware, or use another device."
    perhaps_unheard = True
    hwi_code = -9
    hint = (
        "Ask for what the message allows, if it names a limit; "
        "else update the firmware, or use another device."
    )


class NotEnrolled(BridgeError):
    sentence = "The device does not know this vault."
    state = DeviceState.READY
    hwi_code = -12
    hint = (
        "Enrol the vault on the device (with signerd: `signerd pin NAME` once more), compare the details on "
        "its screen, and repeat."
    )


class WrongDevice(BridgeError):
    sentence = "The device holds other keys than expected."
    state = DeviceState.READY
    hwi_code = -7
    hint = "Connect the device that belongs to this key, with the right passphrase if it has one."


class AddressMismatch(BridgeError):
    sentence = "The device shows another address than this vault has there."
    state = DeviceState.READY
    hint = "Send nothing to either address. Compare the vault's verification code with the other signers."


class BadDeviceSignature(BridgeError):
    """`input_index` is the input of the bad signature; None for a signed message."""

    state = DeviceState.READY
    hint = "Do not use this device until its firmware is known to be genuine and sound."

    def __init__(self, input_index: int | None = None) -> None:
        where = "the message" if input_index is None else f"input {input_index}"
        super().__init__(f"The device returned a signature for {where} that does not verify.")
        self.input_index = input_index


class DeviceFault(BridgeError):
    hint = "Connect the device again and repeat; if it fails again, note the detail and report it."

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(
            f"The device failed: {detail}" if detail else "The device failed without saying why.",
            detail=detail,
        )


class WorkerCrashed(BridgeError):
    sentence = "The helper process that talks to the device died."
    hint = "Nothing was lost. Repeat; a new one is started."


# The outcomes that a worker may report. The bridge itself decides the others.
_FROM_WORKER: dict[str, type[BridgeError]] = {
    leaf.code: leaf
    for leaf in (
        RefusedByPerson,
        Disconnected,
        Locked,
        Uninitialised,
        NeedsPassphrase,
        TimedOut,
        Busy,
        NoPermission,
        Unsupported,
        NotEnrolled,
        WrongDevice,
    )
}


def from_worker(code: str, detail: str | None) -> BridgeError:
    """The outcome for a code that a worker sent; an unknown code is a `DeviceFault`."""
    if code == WrongApp.code:
        return WrongApp(detail)
    if code in _FROM_WORKER:
        return _FROM_WORKER[code](detail=detail)
    return DeviceFault(detail)
