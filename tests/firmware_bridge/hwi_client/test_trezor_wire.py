"""The connection to a Trezor, message by message: cancel, clean-up, and secrets that no log may contain."""

import logging
import struct

import pytest
from trezorlib import messages
from trezorlib.exceptions import TrezorFailure
from trezorlib.mapping import DEFAULT_MAPPING

from firmware_bridge.errors import BridgeError, Busy, RefusedByPerson, Unsupported
from firmware_bridge.faults import outcome
from firmware_bridge.hwi_client.base import describe
from firmware_bridge.hwi_client.trezor.device import TrezorDevice
from firmware_bridge.hwi_client.trezor.screen import TrezorUi
from firmware_bridge.hwi_client.trezor.wire import TrezorConnection
from firmware_bridge.model import Family
from firmware_bridge.protocol import Question
from tests.conformance.rigs import NETWORK
from tests.support.driver import Person


class Transport:
    """Records what is written; answers from a list of messages, each whole, as the library's bridge does."""

    CHUNK_SIZE = None

    def __init__(self, *answers):
        self.answers = list(answers)
        self.written = []

    def write_chunk(self, chunk):
        (number,) = struct.unpack(">H", chunk[:2])
        self.written.append(messages.MessageType(number).name)

    def read_chunk(self, *, timeout=None):
        answer = self.answers.pop(0)
        if callable(answer):
            answer = answer()
        number, data = answer if isinstance(answer, tuple) else DEFAULT_MAPPING.encode(answer)
        return struct.pack(">HL", number, len(data)) + data


def connection(*answers):
    transport = Transport(*answers)
    return transport, TrezorConnection(transport, TrezorUi(Person()))


BUTTON = messages.ButtonRequest(code=messages.ButtonRequestType.SignTx)
GIVEN_UP = messages.Failure(code=messages.FailureType.ActionCancelled)


def test_cancel_is_sent_once_while_a_button_is_pending():
    def person_waits():
        wire.request_cancel()
        wire.request_cancel()
        return GIVEN_UP

    transport, wire = connection(BUTTON, person_waits)
    with pytest.raises(TrezorFailure) as caught:
        wire.call(messages.GetFeatures())
    assert outcome(Family.TREZOR, describe(caught.value))[0] is RefusedByPerson
    assert transport.written == ["GetFeatures", "ButtonAck", "Cancel"]


def test_cancel_before_the_button_is_kept_for_it():
    transport, wire = connection(BUTTON, GIVEN_UP)
    wire.request_cancel()
    assert transport.written == []
    with pytest.raises(TrezorFailure) as caught:
        wire.call(messages.GetFeatures())
    assert outcome(Family.TREZOR, describe(caught.value))[0] is RefusedByPerson
    assert transport.written == ["GetFeatures", "ButtonAck", "Cancel"]


def test_a_cut_off_conversation_is_cleared():
    transport, wire = connection(BUTTON, GIVEN_UP, features())
    wire.clear()
    assert transport.written == ["Cancel", "Initialize"]
    assert transport.answers == []


def failure(code, message):
    """The library's encoder refuses codes that it does not know; devices do not."""
    return messages.Failure.MESSAGE_WIRE_TYPE, bytes([8, code, 18, len(message)]) + message.encode()


def test_a_failure_instead_of_features_keeps_its_code():
    _transport, wire = connection(failure(15, "somebody else"))
    with pytest.raises(TrezorFailure) as caught:
        wire.look()
    assert outcome(Family.TREZOR, describe(caught.value)) == (Busy, "somebody else")


def features(**changes):
    version = {"major_version": 1, "minor_version": 14, "patch_version": 1}
    return messages.Features(**{"vendor": "trezor.io", "initialized": True, **version, **changes})


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (failure(17, "Invalid protocol"), "This program does not speak the protocol of this Trezor (THP)."),
        (features(vendor="another.io"), "This program does not know this Trezor model."),
        (features(minor_version=7), "Its firmware is out of date."),
        (features(model="T", major_version=2, minor_version=2), "Its firmware is out of date."),
    ],
)
def test_a_trezor_that_cannot_be_driven_says_why(answer, detail):
    _transport, wire = connection(answer)
    with pytest.raises(BridgeError) as caught:
        TrezorDevice(wire, NETWORK).call("fingerprint", {})
    assert (caught.value.code, caught.value.detail) == (Unsupported.code, detail)


def test_no_secret_is_logged(caplog):
    caplog.set_level(1)
    pin = messages.PinMatrixRequest()
    transport = Transport(pin, messages.PassphraseRequest(), messages.Success())
    person = Person({Question.PIN: ["1379"], Question.PASSPHRASE: ["correct horse"]})
    wire = TrezorConnection(transport, TrezorUi(person))
    wire.features = features()
    with wire.ui.person():
        wire.call(messages.GetFeatures())
    assert transport.written[1:] == ["PinMatrixAck", "PassphraseAck"]
    for secret in ("1379", "correct horse", b"1379".hex(), b"correct horse".hex()):
        assert secret not in caplog.text
    assert logging.getLogger("trezorlib").getEffectiveLevel() == 1
