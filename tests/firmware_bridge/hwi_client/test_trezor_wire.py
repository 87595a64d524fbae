"""The connection to a Trezor, message by message: cancel, clean-up, and secrets that no log may contain."""

import io
import logging

import pytest
from hwilib.devices.trezorlib import messages, protobuf
from hwilib.devices.trezorlib.exceptions import TrezorFailure

from firmware_bridge.errors import BridgeError, Busy, Unsupported
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
    """Records what is written; answers from a list of messages."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.written = []

    def get_path(self):
        return "test"

    def begin_session(self):
        pass

    def end_session(self):
        pass

    def write(self, number, _data):
        self.written.append(messages.MessageType(number).name)

    def read(self):
        answer = self.answers.pop(0)
        if isinstance(answer, tuple):
            return answer
        if callable(answer):
            answer = answer()
        data = io.BytesIO()
        protobuf.dump_message(data, answer)
        return answer.MESSAGE_WIRE_TYPE, data.getvalue()


def connection(*answers):
    transport = Transport(*answers)
    return transport, TrezorConnection(transport, TrezorUi(Person()))


BUTTON = messages.ButtonRequest(code=messages.ButtonRequestType.SignTx)
GIVEN_UP = messages.Failure(code=messages.FailureType.ActionCancelled)


def test_cancel_is_sent_while_a_button_is_pending():
    def person_waits():
        wire.request_cancel()
        return GIVEN_UP

    transport, wire = connection(BUTTON, person_waits)
    with pytest.raises(Exception, match=r"^$"):
        wire.call(messages.GetFeatures(), check_fw=False)
    assert transport.written == ["GetFeatures", "ButtonAck", "Cancel"]


def test_cancel_before_the_button_is_kept_for_it():
    transport, wire = connection(BUTTON, GIVEN_UP)
    wire.request_cancel()
    assert transport.written == []
    with pytest.raises(Exception, match=r"^$"):
        wire.call(messages.GetFeatures(), check_fw=False)
    assert transport.written == ["GetFeatures", "ButtonAck", "Cancel"]


def test_a_cut_off_conversation_is_cleared():
    rest = messages.Features(major_version=1, minor_version=14, patch_version=1)
    transport, wire = connection(BUTTON, GIVEN_UP, rest)
    wire.clear()
    assert transport.written == ["Cancel", "Initialize"]
    assert transport.answers == []


def failure(code, message):
    """HWI's encoder refuses codes that it does not know; devices do not."""
    return messages.Failure.MESSAGE_WIRE_TYPE, bytes([8, code, 18, len(message)]) + message.encode()


def test_a_failure_instead_of_features_keeps_its_code():
    """trezorlib would say no more than that this is unexpected."""
    _transport, wire = connection(failure(15, "somebody else"))
    with pytest.raises(TrezorFailure) as caught:
        wire.look()
    assert outcome(Family.TREZOR, describe(caught.value)) == (Busy, "somebody else")


def test_a_safe_7_speaks_another_protocol_and_that_is_said():
    _transport, wire = connection(failure(17, "Invalid protocol"))
    with pytest.raises(BridgeError) as caught:
        TrezorDevice(wire, NETWORK).call("probe", {})
    assert caught.value.code == Unsupported.code
    assert caught.value.detail == "HWI cannot speak the protocol of this Trezor (THP)."


def test_no_secret_is_logged(caplog):
    caplog.set_level(1)
    pin = messages.PinMatrixRequest()
    transport = Transport(pin, messages.PassphraseRequest(), messages.Success())
    person = Person({Question.PIN: ["1379"], Question.PASSPHRASE: ["correct horse"]})
    wire = TrezorConnection(transport, TrezorUi(person))
    wire.features = messages.Features(major_version=1, minor_version=14, patch_version=1)
    with wire.ui.person():
        wire.call(messages.GetFeatures(), check_fw=False)
    assert transport.written[1:] == ["PinMatrixAck", "PassphraseAck"]
    for secret in ("1379", "correct horse", b"1379".hex(), b"correct horse".hex()):
        assert secret not in caplog.text
    assert logging.getLogger("hwilib").getEffectiveLevel() == 1
