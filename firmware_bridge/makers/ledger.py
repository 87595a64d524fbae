"""Ledger: Nano S, Nano X, Nano S Plus, Stax and Flex, by their Bitcoin app."""

from functools import partial
from typing import Final

from firmware_bridge import errors
from firmware_bridge.limits import DeviceLimits, SigningPace
from firmware_bridge.makers.maker import (
    DROPPED_BY_HWI,
    IN_BOOTLOADER,
    NOT_KNOWN_TO_HWI,
    DataScreen,
    Maker,
    Names,
    ProofSigning,
    Style,
    UsbModel,
)
from firmware_bridge.model import Family
from multisig import ScriptKind, classify
from multisig.script import parse_witness_output

# MAX_OUTPUT_SCRIPTPUBKEY_LEN of the Bitcoin app, and the pushes that it shows of one OP_RETURN.
_MAX_SCRIPT: Final = 83
_MAX_PUSHES: Final = 5
_OP_0, _OP_PUSHDATA1, _OP_1NEGATE, _OP_1, _OP_16 = 0x00, 0x4C, 0x4F, 0x51, 0x60
# They have opcodes of their own.
_NUMBERS: Final = {bytes((number,)) for number in (*range(1, 17), 0x81)}


def takes(script: bytes) -> bool:
    """Scripts that the Bitcoin app shows (`format_script` of src/common/script.c, 2.4.6): addresses, those of
    witness versions to come too, and data. From its ninth payment on it says no in the middle of the pages.
    """
    kind = classify(script)
    if kind is ScriptKind.OP_RETURN:
        return len(script) <= _MAX_SCRIPT and _is_shown_data(script)
    return kind is not ScriptKind.UNKNOWN or (parse_witness_output(script) or (0, b""))[0] > 0


def _is_shown_data(script: bytes) -> bool:
    """`format_opscript_script`: a few pushes, each in its shortest form."""
    at, pushes = 1, 0
    while at < len(script) and pushes < _MAX_PUSHES:
        opcode, at, pushes, size = script[at], at + 1, pushes + 1, 0
        if opcode == _OP_PUSHDATA1:
            size, at = (script[at : at + 1] or b"\0")[0], at + 1
        elif opcode < _OP_PUSHDATA1:
            size = opcode
        elif opcode != _OP_1NEGATE and not _OP_1 <= opcode <= _OP_16:
            return False
        data, at = script[at : at + size], at + size
        is_short = size >= _OP_PUSHDATA1 if opcode == _OP_PUSHDATA1 else data not in _NUMBERS
        if len(data) != size or not is_short:
            return False
    return at == len(script)


_usb = partial(UsbModel, Family.LEDGER, 0x2C97)
_old = partial(UsbModel, Family.LEDGER, 0x2581, model="Ledger HW.1", transport=None, reason=DROPPED_BY_HWI)

MAKER: Final = Maker(
    "Ledger",
    udev_rules="20-ledger.rules",
    usb=(
        _usb(0x1000, "Ledger Nano S", product_mask=0xFF00),
        _usb(0x4000, "Ledger Nano X", product_mask=0xFF00),
        _usb(0x5000, "Ledger Nano S Plus", product_mask=0xFF00),
        _usb(0x6000, "Ledger Stax", product_mask=0xFF00),
        _usb(0x7000, "Ledger Flex", product_mask=0xFF00),
        _usb(0x8000, "Ledger Nano Gen5", None, product_mask=0xFF00, reason=NOT_KNOWN_TO_HWI),
        _usb(0x0001, "Ledger Nano S"),
        _usb(0x0004, "Ledger Nano X"),
        # Later models have such a number in their bootloader only.
        _usb(0x0005, "Ledger Nano S Plus", None, reason=IN_BOOTLOADER),
        _usb(0x0006, "Ledger Stax", None, reason=IN_BOOTLOADER),
        _usb(0x0007, "Ledger Flex", None, reason=IN_BOOTLOADER),
        _usb(0x0008, "Ledger Nano Gen5", None, reason=IN_BOOTLOADER),
        _usb(0x0000, "Ledger Blue", None, product_mask=0xFF00, reason=DROPPED_BY_HWI),
        _usb(0, "Ledger", None, product_mask=0, reason=NOT_KNOWN_TO_HWI),
        *(_old(product) for product in (0x1B7C, 0x2B7C, 0x3B7C, 0x4B7C)),
    ),
    # MAX_WALLET_NAME_LENGTH of the Bitcoin app.
    names=Names(64),
    enrols=True,
    # In an emulator (2.4.6): 3.2 s an input of a 15-of-15, 0.25 s of a 2-of-3. It sorts by deriving every key
    # that is left for each place (process_multi_sortedmulti_node in src/handler/lib/policy.c): the largest
    # quorum's time for a key bounds every other's.
    pace=SigningPace(key=0.22),
    # MAX_N_INPUTS_CAN_SIGN and MAX_N_OUTPUTS_CAN_SIGN of the Bitcoin app, and preprocess_outputs in
    # src/handler/sign_psbt.c ("Too many change outputs").
    limits={"": DeviceLimits(inputs=512, outputs=512, change=10, takes=takes)},
    statuses={
        0x5515: errors.Locked,
        0x6511: errors.Locked,
        # DEVICE_NOT_ONBOARDED, in both its numbers (StatusCodes of the maker's @ledgerhq/errors).
        0x6611: errors.Uninitialised,
        0x6804: errors.Locked,
        0x6901: errors.Busy,
        0x6982: errors.Locked,
        0x6985: errors.RefusedByPerson,
        0x6A82: errors.Unsupported,
        0x6D00: errors.WrongApp,
        0x6D07: errors.Uninitialised,
        0x6E00: errors.WrongApp,
        0x6E01: errors.WrongApp,
        0x6FAA: errors.Locked,
        0xB008: errors.NotEnrolled,
        # No status at all: the connection was closed.
        0x0000: errors.Disconnected,
    },
    phrases=(
        ("not in either the bitcoin", errors.WrongApp),
        ("device is asleep", errors.Locked),
        ("open failed", errors.NoPermission),
    ),
    # Approving an abandoned question signs nothing, but closes the app, whose host has gone.
    hints={
        **dict.fromkeys(
            (errors.TimedOut, errors.Cancelled, errors.WorkerCrashed),
            "If it still shows the question, answer no there; "
            "a yes would close the Bitcoin app. Then repeat.",
        ),
        errors.Busy: "If it shows a question, answer no there. Close other wallet programs. Then repeat.",
    },
    style=Style(
        "TEST",
        trimmed=True,
        apart=False,
        to_itself=("Nothing",),
        last=("Network fee",),
        proof=("Nothing", "To OP_RETURN", "No fee"),
        message=("the path of your key", "this text"),
        before_data="0x",
    ),
    data_screens=(
        # Read: src/common/script.c, format_opscript_script (2.1.0, 2.2.0, 2.3.0, 2.4.0, 2.4.5, 2.4.6).
        DataScreen("Ledger", "2.1.0", "2.4.6", whole=80),
    ),
    proofs=(
        # It shows a payment of 0 to OP_RETURN with a fee of 0, and not the message. All coins of a proof of
        # funds would be shown as a fee: users must not get used to approving that.
        # Read: src/common/script.c, format_opscript_script: a naked OP_RETURN is signed for BIP-322;
        # src/handler/sign_psbt.c, display_transaction (2.1.3, 2.2.0, 2.3.0, 2.4.0, 2.4.6).
        ProofSigning("Ledger", "2.1.3", "2.4.6"),
    ),
)
