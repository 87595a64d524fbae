"""What a virtual Trezor tells about itself."""

from hashlib import sha256
from typing import Final

from device_simulators.trezor.messages import Features
from multisig import Fingerprint

ONE: Final = "1"
"""The model whose firmware 1.14.1 is followed. Any other name is a model with a touchscreen: PIN and
passphrase are entered there, and any message ends what it does. What else it shows is a Trezor One's.
"""
_ONES_VERSION: Final = (1, 14, 1)
_NEWER_VERSION: Final = (2, 8, 9)
_BITCOIN: Final = 1
_PASSPHRASE_ENTRY: Final = 17


def features_of(
    model: str, fingerprint: Fingerprint, label: str, *, initialized: bool, bootloader: bool
) -> Features:
    """The features that the device tells; how it is protected, and whether it is locked, is added by the
    caller.
    """
    major, minor, patch = _ONES_VERSION if model == ONE else _NEWER_VERSION
    return Features(
        vendor="trezor.io",
        major_version=major,
        minor_version=minor,
        patch_version=patch,
        bootloader_mode=bootloader,
        device_id=sha256(bytes(fingerprint)).hexdigest()[:24].upper(),
        pin_protection=False,
        label=label or None,
        initialized=initialized,
        unlocked=True,
        firmware_present=True,
        model=model,
        capabilities=(_BITCOIN,) if model == ONE else (_BITCOIN, _PASSPHRASE_ENTRY),
    )
