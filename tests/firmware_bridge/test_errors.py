"""The tree of outcomes."""

import pytest

from firmware_bridge import errors


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
