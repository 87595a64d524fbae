"""Exceptions of HWI and the makers' libraries as plain values."""

import struct

import pytest
from cbor2 import CBORDecodeEOF
from hwilib.devices.bitbox02_lib.bitbox02.bitbox02 import DuplicateEntryException
from hwilib.devices.bitbox02_lib.bitbox02.secp256k1 import ECDSANonceException
from hwilib.devices.bitbox02_lib.communication import bitbox_api_protocol as protocol
from hwilib.devices.ckcc.protocol import CCProtoError
from hwilib.devices.jadepy.jade_error import JadeError
from hwilib.devices.ledger_bitcoin.client_base import ApduException
from hwilib.devices.ledger_bitcoin.exception import DeviceException
from hwilib.errors import BadArgumentError
from serial import SerialException
from trezorlib.exceptions import TrezorFailure
from trezorlib.messages import Failure, FailureType
from trezorlib.transport import DeviceIsBusy
from usb1 import USBErrorAccess, USBErrorNoDevice

from firmware_bridge import errors
from firmware_bridge.errors import BridgeError
from firmware_bridge.hwi_client.base import OpenDevice, describe, failure
from firmware_bridge.model import Family


def wrapped(outer, inner):
    """As HWI's decorators leave it: raised while the first one was handled."""
    outer.__context__ = inner
    return outer


T, C, L, J, B = Family.TREZOR, Family.COLDCARD, Family.LEDGER, Family.JADE, Family.BITBOX02
CASES = [
    (T, TrezorFailure(Failure(code=FailureType.ActionCancelled)), errors.RefusedByPerson),
    # Its own str() raises KeyError.
    (T, TrezorFailure(Failure(code=4711)), errors.DeviceFault),
    (T, TrezorFailure(Failure(code=11, message="Device not initialized")), errors.Uninitialised),
    (T, TrezorFailure(Failure(code=14, message="Invalid session")), errors.NeedsPassphrase),
    (T, TrezorFailure(Failure(code=15, message="Busy")), errors.Busy),
    (T, TrezorFailure(Failure(code=17, message="Invalid protocol")), errors.Unsupported),
    (T, TrezorFailure(Failure(code=19, message="Workflow in progress")), errors.Busy),
    (T, OSError("Cannot open device", "missing udev rules"), errors.NoPermission),
    (T, OSError("open failed"), errors.NoPermission),
    (T, USBErrorAccess(), errors.NoPermission),
    (T, DeviceIsBusy("bus 1"), errors.Busy),
    (T, USBErrorNoDevice(), errors.Disconnected),
    (T, KeyError(65535), errors.DeviceFault),
    (C, CCProtoError("Coldcard Error: Unknown multisig wallet", b""), errors.NotEnrolled),
    (C, CCProtoError("Coldcard Error: Not allowed in HSM mode", b""), errors.Busy),
    (C, CCProtoError("Coldcard Error: Spending policy in effect", b""), errors.Unsupported),
    (L, DeviceException(error_code=0x6985), errors.RefusedByPerson),
    (L, DeviceException(error_code=0x5515), errors.Locked),
    (L, ApduException(0x6D07, b""), errors.Uninitialised),
    (L, ApduException(0x6611, b""), errors.Uninitialised),
    (L, DeviceException(error_code=0), errors.Disconnected),
    (L, wrapped(BadArgumentError("Bad argument"), ApduException(0x6D00, b"")), errors.WrongApp),
    (L, ApduException(0xB008, b""), errors.NotEnrolled),
    (L, ConnectionRefusedError(111, "refused"), errors.Disconnected),
    (J, JadeError(JadeError.USER_CANCELLED, "declined", None), errors.RefusedByPerson),
    (J, JadeError(JadeError.HW_LOCKED, "locked", None), errors.Locked),
    (J, JadeError(JadeError.NETWORK_MISMATCH, "network", None), errors.WrongApp),
    (J, JadeError(JadeError.UNKNOWN_METHOD, "method", None), errors.Unsupported),
    (J, JadeError(JadeError.INVALID_REQUEST, "request", None), errors.DeviceFault),
    (J, JadeError(JadeError.BAD_PARAMETERS, "parameters", None), errors.DeviceFault),
    (J, JadeError(JadeError.INTERNAL_ERROR, "internal", None), errors.DeviceFault),
    (J, JadeError(JadeError.PROTOCOL_ERROR, "protocol", None), errors.DeviceFault),
    (J, JadeError(1, "Unable to open port", "/dev/ttyACM0"), errors.DeviceFault),
    (J, AssertionError(), errors.DeviceFault),
    (J, CBORDecodeEOF("premature end"), errors.DeviceFault),
    (
        J,
        SerialException("[Errno 13] could not open port /dev/ttyACM0: Permission denied"),
        errors.NoPermission,
    ),
    (J, SerialException("[Errno 16] could not open port /dev/ttyACM0: Device or resource busy"), errors.Busy),
    (J, SerialException("device reports readiness to read but returned no data"), errors.Disconnected),
    (J, ConnectionResetError("the connection was closed"), errors.Disconnected),
    (B, protocol.Bitbox02Exception(101, "invalid input"), errors.Unsupported),
    (B, protocol.Bitbox02Exception(102, "memory"), errors.DeviceFault),
    (B, protocol.Bitbox02Exception(103, "generic"), errors.DeviceFault),
    (B, protocol.UserAbortException(104, "aborted"), errors.RefusedByPerson),
    (B, protocol.Bitbox02Exception(105, "invalid state"), errors.DeviceFault),
    (B, protocol.Bitbox02Exception(106, "disabled"), errors.Unsupported),
    (B, protocol.Bitbox02Exception(107, "duplicate"), errors.Unsupported),
    (B, protocol.AttestationException("x"), errors.DeviceFault),
    (B, protocol.FirmwareVersionOutdatedException("9.0.0", "9.1.0"), errors.Unsupported),
    (B, protocol.LibraryVersionOutdatedException("10.0.0"), errors.Unsupported),
    (B, protocol.UnsupportedException("9.23.0"), errors.Unsupported),
    (B, DuplicateEntryException("x"), errors.Unsupported),
    (B, ECDSANonceException("x"), errors.DeviceFault),
    (B, Exception("Unlock process aborted"), errors.RefusedByPerson),
    (B, Exception("pairing rejected by the user"), errors.RefusedByPerson),
    (B, Exception("Received error: channel busy"), errors.Busy),
    (B, Exception("Noise communication failed."), errors.DeviceFault),
    (B, OSError("open failed"), errors.NoPermission),
    (B, OSError("read error"), errors.Disconnected),
]


@pytest.mark.parametrize(("family", "error", "expected"), CASES, ids=repr)
def test_an_exception_becomes_its_outcome(family, error, expected):
    told = failure(family, error)
    assert told.code == expected.code
    assert told.detail


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
        raise struct.error("unpack requires a buffer of 9 bytes")


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
