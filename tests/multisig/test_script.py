import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import (
    MAX_COSIGNERS,
    MAX_OP_RETURN_BYTES,
    InvalidTransaction,
    ScriptKind,
    classify,
    dust_threshold,
    encodings,
    multisig_script,
    op_return_script,
    p2pkh,
    p2sh,
    p2tr,
    p2wpkh,
    p2wsh,
    parse_multisig_script,
    parse_op_return,
)
from multisig.hashes import hash160
from multisig.script import parse_witness_output, witness_output
from tests.support.vectors import official

KEYS = [bytes((2 + i % 2,)) + bytes([i] * 32) for i in range(1, 20)]


@pytest.mark.parametrize("vector", official("bip67.json"))
def test_bip67_sorted_keys(vector):
    keys = sorted(bytes.fromhex(key) for key in vector["public_keys"])
    assert [key.hex() for key in keys] == vector["sorted_public_keys"]
    script = multisig_script(vector["threshold"], keys)
    assert script.hex() == vector["redeem_script_hex"]
    assert encodings.encode_base58check(b"\x05" + hash160(script)) == vector["p2sh_address_mainnet"]


@given(st.integers(1, MAX_COSIGNERS).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))))
def test_multisig_round_trip(quorum):
    m, n = quorum
    keys = tuple(KEYS[:n])
    assert parse_multisig_script(multisig_script(m, keys)) == (m, keys)


@pytest.mark.parametrize(
    ("m", "keys"),
    [(0, KEYS[:2]), (3, KEYS[:2]), (1, []), (1, KEYS[:16]), (1, [KEYS[0], KEYS[0]]),
     (1, [b"\x04" + bytes(64)]), (1, [b"\x05" + bytes(32)]), (1, [KEYS[0][:-1]]), (-1, KEYS[:2])],
)  # fmt: skip
def test_impossible_quorums(m, keys):
    with pytest.raises(InvalidTransaction):
        multisig_script(m, keys)


@given(st.data())
def test_any_changed_multisig_script_is_another_or_none(data):
    script = bytearray(multisig_script(2, KEYS[:3]))
    at = data.draw(st.integers(0, len(script) - 1))
    script[at] ^= data.draw(st.integers(1, 255))
    try:
        parsed = parse_multisig_script(bytes(script))
    except InvalidTransaction:
        return
    assert multisig_script(*parsed) == script


@pytest.mark.parametrize(
    "script", [b"", b"\x51\x51\xae", bytes(37), multisig_script(1, KEYS[:1]) + b"\x51", b"\xae"]
)
def test_what_is_no_multisig_script(script):
    with pytest.raises(InvalidTransaction):
        parse_multisig_script(script)


SCRIPTS = {
    ScriptKind.P2PKH: p2pkh(bytes(20)),
    ScriptKind.P2SH: p2sh(bytes(20)),
    ScriptKind.P2WPKH: p2wpkh(KEYS[0]),
    ScriptKind.P2WSH: p2wsh(b"\x51"),
    ScriptKind.P2TR: p2tr(bytes(32)),
    ScriptKind.OP_RETURN: op_return_script(b"x"),
}


@pytest.mark.parametrize(("kind", "script"), SCRIPTS.items())
def test_classify(kind, script):
    assert classify(script) is kind
    assert classify(script + b"\x00") is (kind if kind is ScriptKind.OP_RETURN else ScriptKind.UNKNOWN)


@pytest.mark.parametrize(
    "script",
    [b"", b"\x51", b"\x61\x02ab", witness_output(0, bytes(24)), witness_output(1, bytes(20)),
     witness_output(2, bytes(32)), witness_output(16, b"ab"), multisig_script(1, KEYS[:2]),
     b"\x21" + KEYS[0] + b"\xac"],
)  # fmt: skip
def test_s10_all_else_is_unknown(script):
    assert classify(script) is ScriptKind.UNKNOWN


@given(st.integers(0, 16), st.binary(min_size=2, max_size=40))
def test_witness_output_round_trip(version, program):
    assert parse_witness_output(witness_output(version, program)) == (version, program)


@pytest.mark.parametrize(("version", "length"), [(-1, 20), (17, 20), (0, 1), (0, 41)])
def test_there_is_no_such_witness_output(version, length):
    with pytest.raises(InvalidTransaction):
        witness_output(version, bytes(length))


@pytest.mark.parametrize("make", [p2pkh, p2sh, p2tr, p2wpkh])
def test_hashes_and_keys_of_the_wrong_length(make):
    with pytest.raises(InvalidTransaction):
        make(bytes(31))


# 75 is the last length that stands by itself, 76 the first behind OP_PUSHDATA1; devices get these wrong.
@pytest.mark.parametrize(
    ("length", "head"), [(1, "6a01"), (75, "6a4b"), (76, "6a4c4c"), (78, "6a4c4e"), (80, "6a4c50")]
)
def test_op_return_form(length, head):
    data = b"\x07" * length
    script = op_return_script(data)
    assert script == bytes.fromhex(head) + data
    assert parse_op_return(script) == data


@given(st.binary(min_size=1, max_size=MAX_OP_RETURN_BYTES))
def test_op_return_round_trip(data):
    assert parse_op_return(op_return_script(data)) == data


@pytest.mark.parametrize("data", [b"", bytes(81), bytes(1000)])
def test_p30_op_return_length(data):
    with pytest.raises(InvalidTransaction):
        op_return_script(data)


@pytest.mark.parametrize(
    "script",
    [
        "", "6a", "6a00", "6a51", "6a0161ff", "6a016162", "6a026161" + "0161", "6a0261", "6a4c0161",
        "6a4d010061", "6a4e0100000061", "6a4c4b" + "61" * 75, "6a4c51" + "61" * 81, "6a50" + "61" * 80,
        "016a", "6a6a0161",
    ],
)  # fmt: skip
def test_s10_trailing_or_noncanonical_op_return_is_not_parsed(script):
    assert parse_op_return(bytes.fromhex(script)) is None


@pytest.mark.parametrize(
    ("kind", "least"),
    [(ScriptKind.P2WSH, 330), (ScriptKind.P2TR, 330), (ScriptKind.P2WPKH, 294), (ScriptKind.P2PKH, 546),
     (ScriptKind.P2SH, 540), (ScriptKind.OP_RETURN, 0)],
)  # fmt: skip
def test_dust(kind, least):
    assert dust_threshold(SCRIPTS[kind]) == least
