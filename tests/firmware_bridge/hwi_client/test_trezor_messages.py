"""The corrections of HWI's messages for a Trezor."""

import io

import pytest
from hwilib.devices.trezorlib import messages, protobuf
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.hwi_client.trezor.messages import mend, mend_multisig, mend_op_return
from multisig import op_return_script


def encoded(message) -> bytes:
    out = io.BytesIO()
    protobuf.dump_message(out, message)
    return out.getvalue()


def test_keys_in_lexicographic_order_are_declared_as_field_6():
    plain = messages.TxOutputType(amount=1, multisig=messages.MultisigRedeemScriptType(m=2))
    mended = mend_multisig(plain)
    assert encoded(mended.multisig).endswith(b"\x30\x01")
    # HWI sends the same object again when the device asks again.
    assert not hasattr(plain.multisig, "pubkeys_order")


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


@given(version=st.integers(0, 0xFFFF_FFFF))
def test_a_previous_transaction_may_have_any_version(version):
    """HWI reads it as a signed number."""
    signed = int.from_bytes(version.to_bytes(4, "little"), "little", signed=True)
    message = mend(messages.TxAck(tx=messages.TransactionType(version=signed)))
    assert encoded(message) == encoded(messages.TxAck(tx=messages.TransactionType(version=version)))
