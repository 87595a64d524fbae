"""Every way in which work with a device can fail.

    BridgeError
    ├── RefusedByPerson      the person refused on the device
    ├── Cancelled            this program cancelled the operation
    ├── Disconnected         the device is gone
    ├── Locked               it needs its PIN
    ├── Uninitialised        it has no keys yet
    ├── WrongApp             another app is open on it, or it is set to another network
    ├── NeedsPassphrase      it needs a passphrase that was not given
    ├── TimedOut             no answer within the deadline
    ├── Busy                 it works for another program, or shows an unanswered question
    ├── NoPermission         the operating system does not let us open it
    ├── Unsupported          the device, or HWI, cannot do this
    ├── NotEnrolled          it does not know this vault yet
    ├── WrongDevice          it holds other keys than the ones that were asked for
    ├── AddressMismatch      it shows another address than the vault has there
    ├── BadDeviceSignature   it returned a signature that does not verify
    ├── DeviceFault          any other failure; `detail` has the device's words
    └── WorkerCrashed        the process that drove it died

A bad PSBT, key or text is an error of `multisig`.
"""

from typing import ClassVar, Final

# A detail of `WrongApp` that begins so describes a setting of the device, not an app.
_SETTINGS: Final = ("set to ", "bound to ")


class BridgeError(Exception):
    """One outcome. `code` is stable, the text says what is wrong, `hint` what to do (some families have their
    own, `Maker.hints`), `detail` is the device's own words; `words` is the text with the detail, unless
    `says_all`: a library's words add nothing to it for a person.
    `question_open`: the device still shows the question of a cancelled operation.
    """

    code: ClassVar[str] = "bridge-error"
    sentence: ClassVar[str] = "The device could not do this."
    hint: str = "Read the message; it names what is wrong."
    question_open: bool = False
    says_all: ClassVar[bool] = False

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
    code = "refused-by-person"
    sentence = "The request was refused on the device."
    hint = "Nothing was signed. Start again if the refusal was a mistake."
    says_all = True


class Cancelled(BridgeError):
    code = "cancelled"
    sentence = "The operation was cancelled before the device had finished."
    hint = "If the device still shows a question, answer no there."


class Disconnected(BridgeError):
    code = "disconnected"
    sentence = "The device is not connected."
    hint = "Check the cable, connect the device again and repeat."
    says_all = True


class Locked(BridgeError):
    code = "locked"
    sentence = "The device is locked."
    hint = "Unlock it with its PIN and repeat."


class Uninitialised(BridgeError):
    code = "uninitialised"
    sentence = "The device has no keys yet."
    hint = "Set it up first: create a wallet on it, or restore yours from its backup."


class WrongApp(BridgeError):
    """`app` is the open app's name, if the device reports it, or a setting: "set to Bitcoin: choose …"."""

    code = "wrong-app"
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
    code = "needs-passphrase"
    sentence = "The device needs a passphrase."
    hint = "Enter the passphrase on the device, or switch passphrase protection off."


class TimedOut(BridgeError):
    code = "timed-out"
    sentence = "The device did not finish in time."
    hint = "Look at its screen: answer what it asks, or connect it again. Then repeat."


class Busy(BridgeError):
    code = "busy"
    sentence = "The device is busy with something else."
    hint = "Finish what its screen shows, close other wallet programs, and repeat."


class NoPermission(BridgeError):
    code = "no-permission"
    sentence = "The operating system does not let this program open the device."
    hint = "On Linux install the udev rules of this project; elsewhere close other wallet programs."


class Unsupported(BridgeError):
    code = "unsupported"
    sentence = "The device does not support this."
    hint = (
        "Ask for what the message allows, if it names a limit; "
        "else update the firmware, or use another device."
    )


class NotEnrolled(BridgeError):
    code = "not-enrolled"
    sentence = "The device does not know this vault."
    hint = (
        "Enrol the vault on the device (with signerd: `signerd pin NAME` once more), compare the details on "
        "its screen, and repeat."
    )


class WrongDevice(BridgeError):
    code = "wrong-device"
    sentence = "The device holds other keys than expected."
    hint = "Connect the device that belongs to this key, with the right passphrase if it has one."


class AddressMismatch(BridgeError):
    code = "address-mismatch"
    sentence = "The device shows another address than this vault has there."
    hint = "Send nothing to either address. Compare the vault's verification code with the other signers."


class BadDeviceSignature(BridgeError):
    """`input_index` is the input of the bad signature; None for a signed message."""

    code = "bad-device-signature"
    hint = "Do not use this device until its firmware is known to be genuine and sound."

    def __init__(self, input_index: int | None = None) -> None:
        where = "the message" if input_index is None else f"input {input_index}"
        super().__init__(f"The device returned a signature for {where} that does not verify.")
        self.input_index = input_index


class DeviceFault(BridgeError):
    code = "device-fault"
    hint = "Connect the device again and repeat; if it fails again, note the detail and report it."

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(
            f"The device failed: {detail}" if detail else "The device failed without saying why.",
            detail=detail,
        )


class WorkerCrashed(BridgeError):
    code = "worker-crashed"
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
