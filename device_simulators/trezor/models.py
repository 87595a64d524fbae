"""The models that a virtual Trezor can be, and what each tells about itself."""

from dataclasses import dataclass
from enum import Enum, auto
from hashlib import sha256
from typing import Final

from device_simulators.trezor.messages import Features
from multisig import Fingerprint


class DataScreen(Enum):
    """How the data of an OP_RETURN is shown."""

    ONE = auto()
    """Four rows: text of 80 characters, or 32 bytes in hexadecimal, of which the last becomes ".." where more
    follows.
    """
    CUT = auto()
    """Five rows of 18 digits; from 45 bytes on the last three digits are "..."."""
    WHOLE = auto()


class Taproot(Enum):
    """To which taproot outputs it pays."""

    UNKNOWN = auto()
    """To none: its firmware is older."""
    CHECKED = auto()
    """To keys that are points of the curve."""
    ANY = auto()


@dataclass(frozen=True)
class Model:
    """`name` is the model's on the wire. `on_device`: it has a touchscreen, on which PIN and passphrase can
    be entered.

    `swallows`: while it asks, a message that it does not wait for is ignored; else that message ends the
    question. `data`: how it shows the data of an OP_RETURN. `max_inputs`, `max_message`: of a transaction,
    and bytes of a message; None: no limit.
    """

    name: str
    version: tuple[int, int, int]
    on_device: bool
    swallows: bool = False
    data: DataScreen = DataScreen.WHOLE
    max_inputs: int | None = None
    max_message: int | None = None
    taproot: Taproot = Taproot.ANY


ONE: Final = Model(
    "1",
    (1, 14, 1),
    on_device=False,
    swallows=True,
    data=DataScreen.ONE,
    max_inputs=512,
    max_message=1024,
    taproot=Taproot.CHECKED,
)
MODELS: Final = (
    ONE,
    Model("T", (2, 3, 6), on_device=True, data=DataScreen.CUT, taproot=Taproot.UNKNOWN),
    Model("Safe 3", (2, 8, 9), on_device=True),
    Model("Safe 5", (2, 8, 9), on_device=True),
)
"""The firmware whose behaviour is followed; of the Safe models only what they share with the T was read. The
first is what a virtual Trezor is unless another is asked for.
"""

_BITCOIN: Final = 1
_PASSPHRASE_ENTRY: Final = 17


def model_of(name: str) -> Model:
    """An unknown model behaves like the newest."""
    return next((model for model in MODELS if model.name == name), Model(name, (2, 8, 9), on_device=True))


def features_of(
    model: Model, fingerprint: Fingerprint, label: str, *, initialized: bool, bootloader: bool
) -> Features:
    """The features that the device tells; how it is protected, and whether it is locked, is added by the
    caller.
    """
    major, minor, patch = model.version
    return Features(
        vendor="trezor.io",
        major_version=major,
        minor_version=minor,
        patch_version=patch,
        bootloader_mode=bootloader,
        device_id=sha256(bytes(fingerprint)).hexdigest()[:24].upper(),
        pin_protection=False,
        label=label,
        initialized=initialized,
        unlocked=True,
        firmware_present=True,
        model=model.name,
        capabilities=(_BITCOIN, _PASSPHRASE_ENTRY) if model.on_device else (_BITCOIN,),
    )
