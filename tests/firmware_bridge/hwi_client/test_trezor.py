"""What is mended on the way from HWI to a Trezor."""

import io
from types import SimpleNamespace

import pytest
from hwilib.devices.trezorlib import messages, protobuf

from firmware_bridge.hwi_client.trezor import (
    PassphraseNeeded,
    PinNeeded,
    _Connection,
    _mend_multisig,
    _mend_op_return,
    _Screen,
)
from multisig import op_return_script


def test_keys_in_lexicographic_order_are_declared_as_field_6():
    plain = messages.TxOutputType(amount=1, multisig=messages.MultisigRedeemScriptType(m=2))
    mended = _mend_multisig(plain)
    wire = io.BytesIO()
    protobuf.dump_message(wire, mended.multisig)
    assert wire.getvalue().endswith(b"\x30\x01")
    # HWI sends the same object again when the device asks again.
    assert not hasattr(plain.multisig, "pubkeys_order")


def test_a_single_signature_item_stays_as_it_is():
    plain = messages.TxOutputType(amount=1)
    assert _mend_multisig(plain) is plain


@pytest.mark.parametrize("size", range(1, 81))
def test_op_return_data_is_the_pushed_data(size):
    data = bytes(range(100, 100 + size))
    as_hwi_cuts_it = op_return_script(data)[2:]
    output = messages.TxOutputType(amount=0, op_return_data=as_hwi_cuts_it)
    assert _mend_op_return(output).op_return_data == data
    assert output.op_return_data == as_hwi_cuts_it


def test_op_return_of_several_pushes_is_refused():
    output = messages.TxOutputType(amount=0, op_return_data=b"\x01" * 78)
    with pytest.raises(ValueError, match="more than one push"):
        _mend_op_return(output)


def test_the_screen_tells_and_decides_nothing():
    told = []
    screen = _Screen(lambda *note: told.append(note))
    screen.button_request(SimpleNamespace(code=messages.ButtonRequestType.ConfirmOutput))
    screen.button_request(SimpleNamespace(code=9999))
    assert [step for step, _text in told] == ["confirm-output", "confirm"]
    with pytest.raises(PinNeeded):
        screen.get_pin()
    with pytest.raises(PassphraseNeeded):
        screen.get_passphrase(available_on_device=False)


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

    def write(self, number, data):
        self.written.append(messages.MessageType(number).name)

    def read(self):
        answer = self.answers.pop(0)
        if callable(answer):
            answer = answer()
        data = io.BytesIO()
        protobuf.dump_message(data, answer)
        return answer.MESSAGE_WIRE_TYPE, data.getvalue()


def connection(*answers):
    transport = Transport(*answers)
    return transport, _Connection(transport, _Screen(lambda *_note: None))


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


def test_cancel_is_said_once_however_often_it_is_asked():
    def person_waits():
        wire.request_cancel()
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


def test_cancel_that_came_too_late_is_forgotten():
    transport, wire = connection(BUTTON, messages.Success())
    wire.request_cancel()
    wire.start_over()
    wire.call(messages.GetFeatures(), check_fw=False)
    assert transport.written == ["GetFeatures", "ButtonAck"]


def test_a_cut_off_conversation_is_cleared():
    rest = messages.Features(major_version=1, minor_version=14, patch_version=1)
    transport, wire = connection(BUTTON, GIVEN_UP, rest)
    wire.clear()
    assert transport.written == ["Cancel", "Initialize"]
    assert transport.answers == []


def test_a_device_that_never_comes_to_rest():
    _transport, wire = connection(*[GIVEN_UP] * 100)
    with pytest.raises(Exception, match="does not return to rest"):
        wire.clear()
