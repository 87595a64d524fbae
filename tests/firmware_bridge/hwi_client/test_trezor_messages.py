"""Trezor's messages: the same bytes as HWI's encoder, and the corrections of HWI's messages."""

import io
from enum import IntEnum

import pytest
from hwilib.devices.trezorlib import messages, protobuf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firmware_bridge.hwi_client.trezor.messages import (
    CODEC,
    SortedMultisig,
    encode,
    mend,
    mend_multisig,
    mend_op_return,
)
from multisig import op_return_script

ROOTS = (
    messages.TxAck,
    messages.SignTx,
    messages.GetAddress,
    messages.GetPublicKey,
    messages.SignMessage,
    messages.Initialize,
    messages.PassphraseAck,
    messages.PinMatrixAck,
    messages.Ping,
    messages.Features,
)


def by_hwi(message) -> bytes:
    out = io.BytesIO()
    protobuf.dump_message(out, message)
    return out.getvalue()


def values(field):
    match field.type:
        case "uint32":
            return st.integers(0, 2**32 - 1)
        case "uint64":
            return st.integers(0, 2**64 - 1)
        case "bool":
            return st.booleans()
        case "bytes":
            return st.binary(max_size=200)
        case "string":
            return st.text(max_size=40)
    kind = protobuf.get_field_type_object(field)
    return st.sampled_from(list(kind)) if issubclass(kind, IntEnum) else messages_of(kind)


def messages_of(kind):
    """Any message of this kind; fields of numbers with a sign belong to other coins and stay empty."""
    fields = {}
    for field in kind.FIELDS.values():
        if field.type.startswith("sint"):
            continue
        some = values(field)
        if field.repeated:
            fields[field.name] = st.lists(some, max_size=2)
        else:
            fields[field.name] = some if field.required else st.none() | some
    return st.fixed_dictionaries(fields).map(lambda given: kind(**given))


@pytest.mark.parametrize("kind", ROOTS)
def test_any_message_is_written_as_hwi_writes_it(kind):
    # Generating a whole transaction may take longer than the default limit.
    @settings(suppress_health_check=[HealthCheck.too_slow])
    @given(messages_of(kind))
    def check(message):
        assert CODEC.encode(message) == (kind.MESSAGE_WIRE_TYPE, by_hwi(message))

    check()


def test_a_corrected_multisig_too():
    node = messages.HDNodeType(
        depth=1, fingerprint=2, child_num=3, chain_code=b"c" * 32, public_key=b"k" * 33
    )
    multisig = SortedMultisig(m=2, pubkeys=[messages.HDNodePathType(node=node, address_n=[0, 300])] * 15)
    message = messages.GetAddress(address_n=[1 << 31], multisig=multisig)
    assert encode(message) == by_hwi(message)
    assert encode(multisig).endswith(b"\x30\x01")


@pytest.mark.parametrize(
    "message",
    [
        messages.SignTx(inputs_count=2**32, outputs_count=1),
        messages.SignTx(inputs_count=-1, outputs_count=1),
        messages.GetAddress(multisig=messages.HDNodeType),
        messages.GetAddress(script_type=99),
        messages.TxInput(
            prev_hash=protobuf.REQUIRED_FIELD_PLACEHOLDER, prev_index=0, amount=0
        ),
        messages.Initialize(session_id="text"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(message):
    with pytest.raises((ValueError, AssertionError)):
        by_hwi(message)
    with pytest.raises(ValueError, match=r"fit|is not|bytes are"):
        encode(message)


def test_a_message_without_a_number_is_not_sent():
    with pytest.raises(ValueError, match="without a wire type"):
        CODEC.encode(messages.HDNodePathType(node=None))


def test_a_field_type_that_bitcoin_messages_do_not_use():
    class Signed(protobuf.MessageType):
        FIELDS = {1: protobuf.Field("value", "sint32")}  # noqa: RUF012

    with pytest.raises(ValueError, match="signed numbers"):
        encode(Signed(value=1))


def test_keys_in_lexicographic_order_are_declared_as_field_6():
    plain = messages.TxOutputType(amount=1, multisig=messages.MultisigRedeemScriptType(m=2))
    mended = mend_multisig(plain)
    wire = io.BytesIO()
    protobuf.dump_message(wire, mended.multisig)
    assert wire.getvalue().endswith(b"\x30\x01")
    # HWI sends the same object again when the device asks again.
    assert not hasattr(plain.multisig, "pubkeys_order")


def test_a_single_signature_item_stays_as_it_is():
    plain = messages.TxOutputType(amount=1)
    assert mend_multisig(plain) is plain


@pytest.mark.parametrize("size", range(1, 81))
def test_op_return_data_is_the_pushed_data(size):
    data = bytes(range(100, 100 + size))
    as_hwi_cuts_it = op_return_script(data)[2:]
    output = messages.TxOutputType(amount=0, op_return_data=as_hwi_cuts_it)
    assert mend_op_return(output).op_return_data == data
    assert output.op_return_data == as_hwi_cuts_it


def test_op_return_of_several_pushes_is_refused():
    output = messages.TxOutputType(amount=0, op_return_data=b"\x01" * 78)
    with pytest.raises(ValueError, match="more than one push"):
        mend_op_return(output)


def test_every_other_message_goes_as_it_is():
    message = messages.GetFeatures()
    assert mend(message) is message


@given(version=st.integers(0, 0xFFFF_FFFF))
def test_a_previous_transaction_may_have_any_version(version):
    """HWI reads it as a signed number."""
    signed = int.from_bytes(version.to_bytes(4, "little"), "little", signed=True)
    message = mend(messages.TxAck(tx=messages.TransactionType(version=signed)))
    assert encode(message) == encode(messages.TxAck(tx=messages.TransactionType(version=version)))
