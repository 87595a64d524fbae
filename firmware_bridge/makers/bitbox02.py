"""BitBox02 and BitBox02 Nova."""

from functools import partial
from typing import Final

from firmware_bridge import errors
from firmware_bridge.makers.maker import IN_BOOTLOADER, NOT_KNOWN_TO_HWI, Maker, Names, UsbModel
from firmware_bridge.model import Family

_usb = partial(UsbModel, Family.BITBOX02, 0x03EB, 0x2403)

MAKER: Final = Maker(
    "BitBox02",
    udev_rules="20-bitbox.rules",
    usb=(
        _usb("BitBox02", names=("BitBox02", "BitBox02BTC")),
        _usb("BitBox02 Nova", names=("BitBox02 Nova Multi", "BitBox02 Nova BTC-only")),
        # HWI looks for the names above only; the bootloader has the same numbers and another name.
        _usb(
            "BitBox02",
            None,
            names=(
                "bb02-bootloader",
                "bb02btc-bootloader",
                "BitBox02 Nova Multi bl",
                "BitBox02 Nova BTC-only bl",
            ),
            reason=IN_BOOTLOADER,
        ),
        _usb("BitBox02", None, reason=NOT_KNOWN_TO_HWI),
    ),
    # The limit of HWI's copy of the maker's library. The card of a BitBox is for its backups.
    names=Names(30),
    shares_session=True,
    enrols=True,
    # A pairing, which the device remembers too.
    keeps_session=True,
    # The firmware's error codes (hww/api/error.rs). HWI says of 101 and 103 that a path may be wrong.
    statuses={
        101: errors.Unsupported,
        103: errors.DeviceFault,
        104: errors.RefusedByPerson,
        106: errors.Unsupported,
        107: errors.Unsupported,
    },
    phrases=(
        ("pairing rejected", errors.RefusedByPerson),
        ("unlock process aborted", errors.RefusedByPerson),
        ("channel busy", errors.Busy),
        ("not one of the cosigners", errors.WrongDevice),
        ("no key found for input", errors.WrongDevice),
        ("output type not recognized", errors.Unsupported),
        ("keypath bip44 purpose", errors.Unsupported),
        ("open failed", errors.NoPermission),
    ),
    # HWI's library commits, reveals and verifies for each ECDSA input and message, and stops at a failure
    # (bitbox02_lib, `btc_sign` from 9.4.0, `btc_sign_msg` from 9.5.0). The driver refuses older firmware.
    proves_nonces="9.5.0",
)
