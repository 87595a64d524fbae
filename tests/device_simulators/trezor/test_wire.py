"""Trezor's framing and protobuf: what is written is read again, as the maker's library reads it, and damage
is refused.
"""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trezorlib import mapping, protobuf
from trezorlib import messages as theirs

from device_simulators.trezor import messages as ours
from device_simulators.trezor.wire import CHUNK, MalformedMessage, Reassembler, decode, encode, to_chunks

UINT32 = st.integers(0, 2**32 - 1)
UINT64 = st.integers(0, 2**64 - 1)
NODES = st.builds(
    ours.HDNode,
    depth=UINT32,
    fingerprint=UINT32,
    child_num=UINT32,
    chain_code=st.binary(max_size=32),
    public_key=st.binary(max_size=33),
)
NODE_PATHS = st.builds(ours.HDNodePath, node=NODES, address_n=st.lists(UINT32, max_size=3).map(tuple))
QUORUMS = st.builds(
    ours.MultisigRedeemScript,
    pubkeys=st.lists(NODE_PATHS, max_size=3).map(tuple),
    m=UINT32,
    pubkeys_order=st.none() | st.integers(0, 1),
)
INPUTS = st.builds(
    ours.TxInput,
    address_n=st.lists(UINT32, max_size=6).map(tuple),
    prev_hash=st.binary(max_size=32),
    prev_index=UINT32,
    script_sig=st.none() | st.binary(max_size=200),
    sequence=st.none() | UINT32,
    script_type=st.none() | st.integers(0, 5),
    multisig=st.none() | QUORUMS,
    amount=st.none() | UINT64,
)
ANSWERS = st.builds(
    ours.TxAck, tx=st.builds(ours.TxPart, version=UINT32, inputs=st.lists(INPUTS, max_size=2).map(tuple))
)
TEXTS = st.builds(ours.Success, message=st.text(max_size=300))


@given(ANSWERS | TEXTS)
def test_a_message_survives_encoding_and_framing(message):
    number = ours.NUMBERS[type(message)]
    reassembler = Reassembler()
    chunks = to_chunks(number, encode(message))
    assert all(len(chunk) == CHUNK for chunk in chunks)
    complete = [reassembler.feed(chunk) for chunk in chunks]
    assert complete[:-1] == [None] * (len(chunks) - 1)
    assert complete[-1] is not None
    assert complete[-1][0] == number
    assert decode(type(message), complete[-1][1]) == message


@given(ANSWERS)
def test_the_makers_library_reads_what_we_write_and_we_read_what_it_writes(message):
    read = protobuf.load_message(io.BytesIO(encode(message)), theirs.TxAck)
    assert [list(item.address_n) for item in read.tx.inputs] == [
        list(item.address_n) for item in message.tx.inputs
    ]
    assert [item.amount for item in read.tx.inputs] == [item.amount for item in message.tx.inputs]
    out = io.BytesIO()
    protobuf.dump_message(out, read)
    again = decode(ours.TxAck, out.getvalue())
    # It has defaults of its own for absent fields.
    assert [item.prev_hash for item in again.tx.inputs] == [item.prev_hash for item in message.tx.inputs]
    assert [item.multisig is None for item in again.tx.inputs] == [
        item.multisig is None for item in message.tx.inputs
    ]


def test_every_message_has_the_number_and_the_fields_that_the_makers_library_knows():
    vendor_names = {
        "HDNode": "HDNodeType",
        "HDNodePath": "HDNodePathType",
        "MultisigRedeemScript": "MultisigRedeemScriptType",
        "TxInput": "TxInputType",
        "TxOutput": "TxOutputType",
        "TxOutputBin": "TxOutputBinType",
        "TxPart": "TransactionType",
        "TxRequestDetails": "TxRequestDetailsType",
        "TxRequestSerialized": "TxRequestSerializedType",
    }
    for kind, number in ours.NUMBERS.items():
        assert mapping.DEFAULT_MAPPING.type_to_class[number].__name__ == kind.__name__
    # The debugging link is HWI's older one: HWI presses an emulator's buttons by it.
    numbered = {kind.__name__ for kind in ours.NUMBERS if not kind.__name__.startswith("DebugLink")}
    for name in [*vendor_names, *numbered]:
        vendor = getattr(theirs, vendor_names.get(name, name)).FIELDS
        for field in getattr(ours, name).__dataclass_fields__.values():
            assert vendor[field.metadata["wire"].tag].name == field.name


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "lacks"),
        ("08", "does not end"),
        ("0a05" + "00", "longer than"),
        ("0d00000000", "wire type"),
        ("0a0161", "number is expected"),
        ("08ffffffffff7f", "32 bits"),
        ("08" + "ff" * 10, "does not end"),
    ],
)
def test_malformed_messages(data, reason):
    with pytest.raises(MalformedMessage, match=reason):
        decode(ours.SignTx, bytes.fromhex(data))


def test_unknown_fields_are_skipped_and_packed_numbers_are_read():
    assert decode(ours.Initialize, bytes.fromhex("7001" + "7a0161")) == ours.Initialize()
    assert decode(ours.GetPublicKey, bytes.fromhex("0a03" + "01ac02")).address_n == (1, 300)
