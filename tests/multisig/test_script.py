import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import (
    MAX_COSIGNERS,
    MAX_OP_RETURN_BYTES,
    InvalidAddress,
    InvalidTransaction,
    Network,
    ScriptKind,
    WrongNetwork,
    classify,
    decode_address,
    dust_threshold,
    encode_address,
    encodings,
    ends_of,
    multisig_script,
    op_return_script,
    p2pkh,
    p2sh,
    p2tr,
    p2wpkh,
    p2wsh,
    parse_multisig_script,
    parse_op_return,
    resembled,
)
from multisig.encodings import encode_segwit
from multisig.hashes import hash160
from multisig.script import P2A_SCRIPT, p2a_address, parse_witness_output, unaddressed, witness_output
from tests.support.policies import NETWORKS
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
    ScriptKind.P2A: P2A_SCRIPT,
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


@pytest.mark.parametrize(
    ("make", "args"),
    [
        *((witness_output, (version, bytes(n))) for version, n in ((-1, 20), (17, 20), (0, 1), (0, 41))),
        *((make, (bytes(31),)) for make in (p2pkh, p2sh, p2tr, p2wpkh)),
        *((op_return_script, (data,)) for data in (b"", bytes(81), bytes(1000))),
    ],
)
def test_p30_there_is_no_such_output(make, args):
    with pytest.raises(InvalidTransaction):
        make(*args)


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
     (ScriptKind.P2SH, 540), (ScriptKind.P2A, 240), (ScriptKind.OP_RETURN, 0)],
)  # fmt: skip
def test_dust(kind, least):
    assert dust_threshold(SCRIPTS[kind]) == least


HASH20 = st.binary(min_size=20, max_size=20)
HASH32 = st.binary(min_size=32, max_size=32)
ANY_SCRIPTS = st.one_of(
    HASH20.map(p2pkh),
    HASH20.map(p2sh),
    HASH20.map(lambda program: witness_output(0, program)),
    HASH32.map(lambda program: witness_output(0, program)),
    HASH32.map(p2tr),
)
NETWORK_OF_HRP = {"bc": Network.MAINNET, "tb": Network.TESTNET4}
IN_USE = {ScriptKind.P2WPKH, ScriptKind.P2WSH, ScriptKind.P2TR}


@given(ANY_SCRIPTS, NETWORKS)
def test_round_trip(script, network):
    address = encode_address(script, network)
    assert decode_address(address, network) == script


def test_p2a_has_an_address_to_be_read_and_not_to_be_paid():
    """The addresses as Bitcoin Core 28 has them."""
    for network, address in (
        (Network.MAINNET, "bc1pfeessrawgf"),
        (Network.TESTNET4, "tb1pfees9rn5nz"),
        (Network.REGTEST, "bcrt1pfeesnyr2tx"),
    ):
        assert p2a_address(network) == address
        with pytest.raises(InvalidAddress, match="anyone may take"):
            decode_address(address, network)
    assert encode_address(P2A_SCRIPT, Network.MAINNET) is None
    assert "anyone may take (P2A)" in unaddressed(P2A_SCRIPT)
    assert "P2A" not in unaddressed(P2A_SCRIPT + b"\0")


@given(ANY_SCRIPTS)
def test_p28_an_address_of_the_other_kind_of_network_is_named_as_such(script):
    with pytest.raises(WrongNetwork):
        decode_address(encode_address(script, Network.MAINNET), Network.TESTNET4)
    with pytest.raises(WrongNetwork):
        decode_address(encode_address(script, Network.REGTEST), Network.MAINNET)


@given(HASH32.map(p2tr))
def test_p28_regtest_has_segwit_addresses_of_its_own(script):
    with pytest.raises(WrongNetwork):
        decode_address(encode_address(script, Network.REGTEST), Network.SIGNET)
    with pytest.raises(WrongNetwork):
        decode_address(encode_address(script, Network.SIGNET), Network.REGTEST)


@pytest.mark.parametrize("vector", official("bip173_350.json", lambda v: v["kind"] == "valid_segwit_address"))
def test_official_segwit_addresses(vector):
    address = vector["address"]
    network = NETWORK_OF_HRP[address.lower().rpartition("1")[0]]
    script = bytes.fromhex(vector["script_pubkey_hex"])
    if vector.get("invalid_since_bip350") or classify(script) not in IN_USE:
        with pytest.raises(InvalidAddress):
            decode_address(address, network)
        return
    assert decode_address(address, network) == script
    assert encode_address(script, network) == address.lower()


@pytest.mark.parametrize(
    "vector", official("bip173_350.json", lambda v: v["kind"] == "invalid_segwit_address")
)
@pytest.mark.parametrize("network", list(Network))
def test_official_invalid_segwit_addresses(vector, network):
    with pytest.raises((InvalidAddress, WrongNetwork)):
        decode_address(vector["address"], network)


@given(ANY_SCRIPTS, NETWORKS)
def test_p28_mixed_case(script, network):
    address = encode_address(script, network)
    if not address.startswith(network.hrp + "1"):
        return
    assert decode_address(address.upper(), network) == script
    with pytest.raises(InvalidAddress):
        decode_address(
            address[:-1] + address[-1].upper() if address[-1].isalpha() else address.capitalize(), network
        )


@given(ANY_SCRIPTS, st.data())
def test_one_wrong_character_is_noticed(script, data):
    address = encode_address(script, Network.MAINNET)
    at = data.draw(st.integers(0, len(address) - 1))
    other = data.draw(st.sampled_from("qpzry9x8gf2tvdw0s3jn54khce6mua7l1bio"))
    if other != address[at]:
        with pytest.raises((InvalidAddress, WrongNetwork)):
            decode_address(address[:at] + other + address[at + 1 :], Network.MAINNET)


LITECOINS = "LM2WMpR1Rp6j3Sa59cMXMs1SPzj9eXpGc1"
NO_ADDRESSES = ("", " ", "x", "bc1", "bc1q", "bitcoin:1111111111111111111114oLvT2", "1" * 91, "ＢＣ１q",
                " 1111111111111111111114oLvT2", "1111111111111111111114oLvT2\n", "xpub6CU",
                "1" * 30)  # fmt: skip
OTHER_LENGTHS = (b"", b"\x00", bytes(20), bytes(22), b"\x05" + bytes(32))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((text, None) for text in NO_ADDRESSES),
        *((encodings.encode_base58check(payload), None) for payload in OTHER_LENGTHS),
        (LITECOINS, "prefix"),
    ],
)
def test_what_is_no_address(text, words):
    with pytest.raises(InvalidAddress, match=words):
        decode_address(text, Network.MAINNET)


@pytest.mark.parametrize(("version", "length"), [(2, 32), (16, 2), (1, 2), (1, 20)])
def test_s10_addresses_without_rules_are_refused_with_the_reason(version, length):
    address = encode_segwit("bc", version, bytes(length))
    with pytest.raises(InvalidAddress, match="no rules") as refusal:
        decode_address(address, Network.MAINNET)
    assert "anyone" in refusal.value.hint
    assert encode_address(witness_output(version, bytes(length)), Network.MAINNET) is None


PREFIXES = st.sampled_from(("1", "3", "m", "bc1q", "bc1p", "tb1q", "bcrt1q"))
LETTERS = st.text("023456789acdefghjklmnpqrstuvwxyz", min_size=4, max_size=4)


@given(PREFIXES, LETTERS, st.text("023456789acdefghjk", min_size=18, max_size=50), st.data())
def test_s37_what_has_the_ends_of_a_known_address_resembles_it_unless_it_is_known(prefix, ends, middle, data):
    known = f"{prefix}{ends}{middle}{ends[::-1]}"
    other = f"{prefix}{ends}{data.draw(st.text('lmnpqrs', min_size=18, max_size=50))}{ends[::-1]}"
    assert resembled([other, known], [known], []) == resembled([other, known], [], [known]) == {other: known}
    assert (
        resembled([other, known], [known, other], []) == resembled([other, known], [], [known, other]) == {}
    )
    assert resembled([other, known], [known], [known, other]) == {other: known}, "a name proves nothing"
    third = f"{prefix}{ends}{middle}u{ends[::-1]}"
    assert resembled([other], [known], [third]) == {other: ", ".join(sorted((known, third)))}
    at = data.draw(st.sampled_from([*range(len(prefix), len(prefix) + 4), *range(-4, 0)]))
    changed = f"{other[:at]}{'u' if other[at] != 'u' else 'w'}{other[at:][1:]}"
    assert resembled([changed], [known], []) == {}
    assert len(ends_of(known)) == 8
