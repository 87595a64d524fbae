"""Trezor: One, Model T, and the Safe models but the 7."""

from dataclasses import replace
from functools import partial
from typing import Final

from firmware_bridge import errors
from firmware_bridge.limits import DeviceLimits
from firmware_bridge.makers.maker import (
    IN_BOOTLOADER,
    NOT_KNOWN_TO_HWI,
    DataScreen,
    Maker,
    ProofSigning,
    Style,
    UsbModel,
)
from firmware_bridge.model import Family
from multisig import ScriptKind, classify, parse_op_return
from multisig.secp256k1 import is_x_only_public_key


def takes(script: bytes) -> bool:
    """Scripts that Trezor's messages can express, and that someone can spend.

    Of an OP_RETURN output a message has the data alone, and the device makes one minimal push of it: of
    another script the person would approve one that is not signed (S10). A taproot output whose key is not on
    the curve cannot be spent (BIP-341); a Trezor One fails at it ("Failed to compile output").
    """
    match classify(script):
        case ScriptKind.UNKNOWN | ScriptKind.P2A:
            return False
        case ScriptKind.OP_RETURN:
            return parse_op_return(script) is not None
        case ScriptKind.P2TR:
            return is_x_only_public_key(script[2:])
        case _:
            return True


# signing_validate_output of legacy/v1.14.1, and core/src/apps/bitcoin/sign_tx/helpers.py: "OP_RETURN output
# with non-zero amount", after the outputs before it were confirmed.
_LIMITS: Final = DeviceLimits(takes=takes, pays_data=False)
_NO_EMPTY_DATA: Final = (
    "it cannot make an output that is OP_RETURN and nothing more: it would sign another one"
)
_usb = partial(UsbModel, Family.TREZOR)
_firmware = partial(_usb, 0x1209, 0x53C1)

MAKER: Final = Maker(
    "Trezor",
    udev_rules="20-trezor.rules",
    usb=(
        _usb(0x1209, 0x53C0, "Trezor", None, reason=IN_BOOTLOADER),
        _firmware(
            "Trezor Safe 7",
            None,
            names=("Trezor Safe 7",),
            reason="This program does not speak the protocol of this model (THP).",
        ),
        _firmware("Trezor Safe 5", "webusb", names=("Trezor Safe 5",)),
        _firmware("Trezor Safe 3", "webusb", names=("Trezor Safe 3",)),
        _firmware("Trezor", "webusb"),
        _usb(0x534C, 0x0001, "Trezor One", "hid-or-webusb"),
        _usb(0x534C, 0, "Trezor", None, product_mask=0, reason=NOT_KNOWN_TO_HWI),
    ),
    # fsm_layoutAddress of legacy/v1.14.1, show_address of core/v2.3.6: [QR Code, Confirm], and pages.
    refuses_address=False,
    # Of a One, and where the model is not known (legacy/v1.14.1): MAX_INPUTS_COUNT in signing.c ("Too many
    # inputs."); PrevOutput.script_pubkey and PrevInput.script_sig in protob/messages-bitcoin.options ("bytes
    # overflow"), read after the person's approval.
    limits={
        "Trezor Model T": _LIMITS,
        "Trezor Safe": _LIMITS,
        "": replace(_LIMITS, inputs=512, previous_output=520, previous_input=1650),
    },
    # FailureType in the vendor's messages-common.proto. 17: it speaks THP only.
    statuses={
        4: errors.RefusedByPerson,
        5: errors.Locked,
        6: errors.Locked,
        7: errors.Locked,
        11: errors.Uninitialised,
        14: errors.NeedsPassphrase,
        15: errors.Busy,
        17: errors.Unsupported,
        19: errors.Busy,
    },
    phrases=(
        ("open failed", errors.NoPermission),
        # The library's text about missing udev rules.
        ("cannot open device", errors.NoPermission),
        ("unexpected chunk size", errors.DeviceFault),
        # The request is at fault, not the device.
        ("forbidden key path", errors.Unsupported),
        ("message too long", errors.Unsupported),
    ),
    style=Style(
        "TEST",
        trimmed=True,
        apart=True,
        last=("Total", "Fee in it"),
        message=("a warning about the path", "an address of your key", "this text"),
        amount_of_data=False,
        idle_locktime="Locktime is set but will have no effect.",
        grouped=True,
    ),
    data_screens=(
        # Seen on 1.14.1; read: legacy/firmware/layout2.c, split_message_hex (1.8.3, 1.9.4, 1.10.5, 1.12.1,
        # 1.13.1, 1.14.1).
        DataScreen("Trezor One", "1.8.3", "1.14.1", whole=32, first=31),
        # 87 hex digits and three dots: 43 whole bytes.
        # Seen on 2.3.6; read: core/src/apps/bitcoin/sign_tx/layout.py, confirm_output (2.3.0, 2.3.6).
        DataScreen("Trezor Model T", "2.3.0", "2.3.6", whole=44, first=43),
        # All of it, on several pages.
        # Read: core/src/apps/bitcoin/sign_tx/layout.py, confirm_blob without a cut (2.6.0, 2.8.1, 2.12.4).
        DataScreen("Trezor Model T", "2.6.0", "2.12.4", whole=80),
    ),
    proofs=(
        # Read: legacy/firmware/transaction.c, op_return_to_script_pubkey, which always pushes (1.14.1).
        ProofSigning("Trezor One", "1.8.3", "1.14.1", why_not=_NO_EMPTY_DATA),
        # Read: core/src/apps/bitcoin/scripts.py, output_script_paytoopreturn, which always pushes
        # (2026-08-21).
        ProofSigning("Trezor", "2.3.0", "2.12.4", why_not=_NO_EMPTY_DATA),
    ),
)
