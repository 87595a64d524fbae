"""The models that a virtual Trezor can be, and what each tells about itself."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from firmware_bridge.virtual.trezor.messages import Features
from multisig import Fingerprint


@dataclass(frozen=True)
class Model:
    """`name` is the model's on the wire. `on_device`: PIN and passphrase can be entered on its own screen."""

    name: str
    version: tuple[int, int, int]
    on_device: bool


MODELS: Final = (
    Model("1", (1, 14, 1), on_device=False),
    Model("T", (2, 8, 9), on_device=True),
    Model("Safe 3", (2, 8, 9), on_device=True),
    Model("Safe 5", (2, 8, 9), on_device=True),
)
"""The firmware whose behaviour is followed. The first is what a virtual Trezor is unless another is asked for."""

_BITCOIN: Final = 1
_PASSPHRASE_ENTRY: Final = 17


def model_of(name: str) -> Model:
    """A model that nobody knows behaves like the newest."""
    return next((model for model in MODELS if model.name == name), Model(name, (2, 8, 9), on_device=True))


def features_of(
    model: Model, fingerprint: Fingerprint, label: str, *, initialized: bool, bootloader: bool
) -> Features:
    """What the device says of itself; how it is protected, and whether it is locked, is told by whoever knows."""
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
