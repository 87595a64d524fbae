"""The outcomes of each family's texts and codes. The cases were observed with HWI 3.2.0 and the
firmware. Those whose exceptions can be made are in hwi_client/test_base.py.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge import errors
from firmware_bridge.faults import MAX_DETAIL, ReportedFault, clean_detail, outcome
from firmware_bridge.makers import MAKERS
from firmware_bridge.model import Family
from firmware_bridge.presence.usb import USB_MODELS, usb_model

T, C, L = Family.TREZOR, Family.COLDCARD, Family.LEDGER


def said(names: str, text: str, **codes: int) -> ReportedFault:
    return ReportedFault(tuple(names.split()), text, **codes)


CASES = [
    (T, said("TrezorFailure", "Forbidden key path", status=3), errors.Unsupported),
    (T, said("TrezorFailure", "Message too long", status=3), errors.Unsupported),
    (T, said("TrezorFailure", "Something else", status=3), errors.DeviceFault),
    (T, said("ProtocolError TrezorException", "Missing chunk magic"), errors.DeviceFault),
    (T, said("TransportException", "Unexpected chunk size: 12"), errors.DeviceFault),
    (T, said("ConnectionRefusedError ConnectionError OSError", "refused"), errors.Disconnected),
    (C, said("CCUserRefused RuntimeError", "You refused permission"), errors.RefusedByPerson),
    (C, said("CCBusyError RuntimeError", "handling another request"), errors.Busy),
    (
        C,
        said("CCProtoError", "Coldcard Error: None of the keys involved in this transaction"),
        errors.WrongDevice,
    ),
    (C, said("CCFramingError CCProtoError", "Framing Error: bad"), errors.Busy),
    (C, said("CCFramingError CCProtoError", "Unknown response signature: 'xx'"), errors.DeviceFault),
    (C, said("AssertionError", "AssertionError: timeout reading USB EP"), errors.TimedOut),
    (C, said("AssertionError", "AssertionError: device doesn't have any secrets yet"), errors.Uninitialised),
    (
        C,
        said("CCProtoError", "Coldcard Error: Network fee bigger than 10% of total amount (it is 25%)."),
        errors.Unsupported,
    ),
    (C, said("CCProtoError", "Coldcard Error: leading space(s) in msg"), errors.Unsupported),
    (C, said("CCProtoError", "Coldcard Error: too many spaces together in msg(max. 3)"), errors.Unsupported),
    (C, said("CCProtoError", "Coldcard Error: Spending Policy violation."), errors.Unsupported),
    (C, said("CCProtoError", "Coldcard Error: msg too short (min. 2)"), errors.Unsupported),
    (C, said("CCProtoError", "Coldcard Error: msg too long (max. 240)"), errors.Unsupported),
    (C, said("CCProtoError", "Coldcard Error: must be ascii printable"), errors.Unsupported),
    (C, said("AssertionError", "AssertionError: msg length: 3031"), errors.Unsupported),
    (C, said("OSError Exception", "OSError: open failed"), errors.NoPermission),
    (C, said("OSError Exception", "OSError: read error"), errors.Disconnected),
    (L, said("IncorrectDataError", "x", status=0x6A80), errors.DeviceFault),
    (
        L,
        said(
            "DeviceConnectionError", "Ledger is not in either the Bitcoin or Bitcoin Testnet app", hwi_code=-3
        ),
        errors.WrongApp,
    ),
]


@pytest.mark.parametrize(
    ("family", "fault", "expected"), CASES, ids=lambda value: getattr(value, "text", None)
)
def test_an_observed_failure_has_its_outcome(family, fault, expected):
    assert outcome(family, fault)[0] is expected


@given(
    st.sampled_from(list(Family)),
    st.text(max_size=1000),
    st.integers() | st.none(),
    st.integers() | st.none(),
)
def test_anything_has_an_outcome_and_clean_words(family, text, status, hwi_code):
    meant, detail = outcome(family, ReportedFault(("Exception",), text, status, hwi_code))
    assert type(errors.from_worker(meant.code, detail)) is meant
    assert len(detail) <= MAX_DETAIL
    assert detail.isprintable()


def test_a_devices_words_are_one_printable_line():
    assert clean_detail("a\r\nb\x1b[2J\u202ec") == "a b [2J c"


def test_an_unsupported_device_says_why():
    assert all(model.reason for model in USB_MODELS if model.transport is None)


@pytest.mark.parametrize(
    ("vendor", "product", "name", "model", "words"),
    [
        (0x1209, 0x53C1, None, "Trezor", None),
        (0x1209, 0x53C1, "TREZOR", "Trezor", None),
        (0x1209, 0x53C1, "Trezor Safe 3", "Trezor Safe 3", None),
        (0x1209, 0x53C1, "Trezor Safe 7", "Trezor Safe 7", "THP"),
        (0x534C, 0x0009, None, "Trezor", "HWI"),
        (0x2C97, 0x0005, None, "Ledger Nano S Plus", "bootloader"),
        (0x2C97, 0x0015, None, "Ledger Blue", "longer"),
        (0x2C97, 0x8011, None, "Ledger Nano Gen5", "HWI"),
        (0x2C97, 0x9011, None, "Ledger", "HWI"),
        (0x2581, 0x3B7C, None, "Ledger HW.1", "longer"),
        (0xD13E, 0xCC11, None, "Coldcard", "HWI"),
        (0x03EB, 0x2403, "bb02-bootloader", "BitBox02", "bootloader"),
        (0x03EB, 0x2403, "BitBox02 Nova Multi bl", "BitBox02", "bootloader"),
        (0x03EB, 0x2403, "BitBox03", "BitBox02", "HWI"),
    ],
)
def test_a_model_is_named_and_one_that_hwi_does_not_know_is_not_dropped(vendor, product, name, model, words):
    found = usb_model(vendor, product, name)
    assert found.model == model
    assert found.reason is None if words is None else words in found.reason


@pytest.mark.parametrize("family", Family)
def test_every_family_is_complete(family):
    """The table in docs/build/adding/device-family.md."""
    from firmware_bridge import hwi_client

    assert MAKERS[family].name
    assert family in hwi_client.OPENERS
    assert all(model.family is family for model in MAKERS[family].usb)


def test_a_worker_cannot_claim_what_is_decided_here():
    for code in ("bad-device-signature", "worker-crashed", "cancelled", "no such code"):
        assert type(errors.from_worker(code, "words")) is errors.DeviceFault


def test_details_are_kept():
    assert errors.from_worker("wrong-app", "Ethereum").app == "Ethereum"
    assert errors.from_worker("locked", "asleep").detail == "asleep"
    assert errors.BadDeviceSignature(3).input_index == 3
    assert "input 3" in str(errors.BadDeviceSignature(3))
    assert "message" in str(errors.BadDeviceSignature())


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (errors.Locked(), "The device is locked."),
        (errors.Locked(detail="the PIN was wrong"), "The device is locked. (the PIN was wrong)"),
        (errors.RefusedByPerson(detail="sign_tx canceled"), "The request was refused on the device."),
        (errors.Disconnected(detail="ConnectionRefusedError: [Errno 111]"), "The device is not connected."),
        (errors.WrongApp("Ethereum"), "The device has another app open: Ethereum."),
        (
            errors.WrongApp("set to Bitcoin: choose Testnet4"),
            "The device is set to Bitcoin: choose Testnet4.",
        ),
        (errors.WrongApp(), "The Bitcoin app is not open."),
    ],
)
def test_the_devices_own_words_are_told_once(outcome, words):
    assert outcome.words == words
