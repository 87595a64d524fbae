"""Blockstream Jade and Jade Plus."""

from functools import partial
from typing import Final

from firmware_bridge import errors
from firmware_bridge.makers.maker import Maker, Names, UsbModel
from firmware_bridge.model import Family

_usb = partial(UsbModel, Family.JADE, model="Jade", transport="serial")

MAKER: Final = Maker(
    "Jade",
    udev_rules="20-jade.rules",
    # HWI also takes 0403:6001, 1a86:7523 and 303a:1001 for a Jade; these are home-made boards and many other
    # things. The last: Jade Plus, and the Jade with Espressif's own USB.
    usb=(_usb(0x10C4, 0xEA60), _usb(0x1A86, 0x55D4), _usb(0x303A, 0x4001)),
    # HWI names it "localtest", which the firmware's network.c has with the prefix "bcrt".
    knows_regtest=True,
    # MULTISIG_NAME_MAX_LEN of the firmware.
    names=Names(15),
    enrols=True,
    # JadeError in the maker's jadepy; the other codes are faults of the conversation.
    statuses={
        -32000: errors.RefusedByPerson,
        -32002: errors.Locked,
        -32003: errors.WrongApp,
        -32601: errors.Unsupported,
    },
    phrases=(("permission denied", errors.NoPermission), ("resource busy", errors.Busy)),
    # It can prove its nonces since 0.1.24, input by input: HWI's `sign_tx` verifies nothing, and a whole
    # PSBT, which our driver sends, has no field for it.
    proves_nonces=None,
)
