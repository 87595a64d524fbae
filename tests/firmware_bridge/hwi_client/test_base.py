"""Exceptions of HWI and the makers' libraries as plain values."""

import pytest
from hwilib.devices.ckcc.protocol import CCProtoError
from hwilib.devices.ledger_bitcoin.client_base import ApduException
from hwilib.devices.ledger_bitcoin.exception import DeviceException
from hwilib.devices.trezorlib.exceptions import Cancelled, TrezorFailure
from hwilib.devices.trezorlib.messages import Failure, FailureType
from hwilib.errors import ActionCanceledError, BadArgumentError
from usb1 import USBErrorAccess, USBErrorBusy, USBErrorNoDevice

from firmware_bridge import errors
from firmware_bridge.errors import BridgeError
from firmware_bridge.hwi_client.base import OpenDevice, describe, failure
from firmware_bridge.model import Family


def wrapped(outer, inner):
    """As HWI's decorators leave it: raised while the first one was handled."""
    outer.__context__ = inner
    return outer


CASES = [
    (Family.TREZOR, TrezorFailure(Failure(code=FailureType.ActionCancelled)), errors.RefusedByPerson),
    # HWI's own str() of this one raises KeyError.
    (Family.TREZOR, TrezorFailure(Failure(code=4711)), errors.DeviceFault),
    (Family.TREZOR, wrapped(ActionCanceledError("sign_tx canceled"), Cancelled()), errors.RefusedByPerson),
    (Family.TREZOR, TrezorFailure(Failure(code=11, message="Device not initialized")), errors.Uninitialised),
    (Family.TREZOR, TrezorFailure(Failure(code=14, message="Invalid session")), errors.NeedsPassphrase),
    (Family.TREZOR, TrezorFailure(Failure(code=15, message="Busy")), errors.Busy),
    (Family.TREZOR, TrezorFailure(Failure(code=17, message="Invalid protocol")), errors.Unsupported),
    (Family.TREZOR, TrezorFailure(Failure(code=19, message="Workflow in progress")), errors.Busy),
    (Family.TREZOR, OSError("Cannot open device", "missing udev rules"), errors.NoPermission),
    (Family.TREZOR, OSError("open failed"), errors.NoPermission),
    (Family.TREZOR, USBErrorAccess(), errors.NoPermission),
    (Family.TREZOR, USBErrorBusy(), errors.Busy),
    (Family.TREZOR, USBErrorNoDevice(), errors.Disconnected),
    (Family.TREZOR, KeyError(65535), errors.DeviceFault),
    (Family.COLDCARD, CCProtoError("Coldcard Error: Unknown multisig wallet", b""), errors.NotEnrolled),
    (Family.COLDCARD, CCProtoError("Coldcard Error: Not allowed in HSM mode", b""), errors.Busy),
    (Family.COLDCARD, CCProtoError("Coldcard Error: Spending policy in effect", b""), errors.Unsupported),
    (Family.LEDGER, DeviceException(error_code=0x6985), errors.RefusedByPerson),
    (Family.LEDGER, DeviceException(error_code=0x5515), errors.Locked),
    (Family.LEDGER, ApduException(0x6D07, b""), errors.Uninitialised),
    (Family.LEDGER, ApduException(0x6611, b""), errors.Uninitialised),
    (Family.LEDGER, DeviceException(error_code=0), errors.Disconnected),
    (Family.LEDGER, wrapped(BadArgumentError("Bad argument"), ApduException(0x6D00, b"")), errors.WrongApp),
    (Family.LEDGER, ApduException(0xB008, b""), errors.NotEnrolled),
    (Family.LEDGER, ConnectionRefusedError(111, "refused"), errors.Disconnected),
]


@pytest.mark.parametrize(("family", "error", "expected"), CASES, ids=repr)
def test_an_exception_becomes_its_outcome(family, error, expected):
    assert failure(family, error).code == expected.code


def test_the_devices_own_words_are_kept():
    refusal = TrezorFailure(Failure(code=FailureType.DataError, message="Forbidden key path"))
    assert describe(refusal).text == "Forbidden key path"
    assert describe(KeyError("x")).text == "KeyError: 'x'"
    assert describe(AssertionError()).text == "AssertionError"


class Broken(OpenDevice):
    family = Family.TREZOR

    def fingerprint(self):
        raise errors.Locked

    def xpubs(self, _asked):
        raise struct_error()


def struct_error():
    import struct

    return struct.error("unpack requires a buffer of 9 bytes")


@pytest.mark.parametrize(
    ("op", "code"),
    [
        ("fingerprint", "locked"),
        ("xpubs", "device-fault"),
        ("enrol", "unsupported"),
        ("close", "unsupported"),
    ],
)
def test_an_open_device_raises_outcomes_only(op, code):
    with pytest.raises(BridgeError) as caught:
        Broken().call(op, {"paths": []})
    assert caught.value.code == code
