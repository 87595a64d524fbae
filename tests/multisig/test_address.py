import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import (
    InvalidAddress,
    Network,
    ScriptKind,
    WrongNetwork,
    classify,
    decode_address,
    encode_address,
    encodings,
    op_return_script,
    p2pkh,
    p2sh,
    p2tr,
)
from multisig.encodings import encode_segwit
from multisig.script import witness_output
from tests.support.policies import NETWORKS
from tests.support.vectors import official

HASH20 = st.binary(min_size=20, max_size=20)
HASH32 = st.binary(min_size=32, max_size=32)
SCRIPTS = st.one_of(
    HASH20.map(p2pkh),
    HASH20.map(p2sh),
    HASH20.map(lambda program: witness_output(0, program)),
    HASH32.map(lambda program: witness_output(0, program)),
    HASH32.map(p2tr),
)
NETWORK_OF_HRP = {"bc": Network.MAINNET, "tb": Network.TESTNET4}
IN_USE = {ScriptKind.P2WPKH, ScriptKind.P2WSH, ScriptKind.P2TR}


@given(SCRIPTS, NETWORKS)
def test_round_trip(script, network):
    address = encode_address(script, network)
    assert decode_address(address, network) == script


@given(SCRIPTS)
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


@given(SCRIPTS, NETWORKS)
def test_p28_mixed_case(script, network):
    address = encode_address(script, network)
    if not address.startswith(network.hrp + "1"):
        return
    assert decode_address(address.upper(), network) == script
    with pytest.raises(InvalidAddress):
        decode_address(
            address[:-1] + address[-1].upper() if address[-1].isalpha() else address.capitalize(), network
        )


@given(SCRIPTS, st.data())
def test_one_wrong_character_is_noticed(script, data):
    address = encode_address(script, Network.MAINNET)
    at = data.draw(st.integers(0, len(address) - 1))
    other = data.draw(st.sampled_from("qpzry9x8gf2tvdw0s3jn54khce6mua7l1bio"))
    if other != address[at]:
        with pytest.raises((InvalidAddress, WrongNetwork)):
            decode_address(address[:at] + other + address[at + 1 :], Network.MAINNET)


@pytest.mark.parametrize(
    "text",
    ["", " ", "x", "bc1", "bc1q", "bitcoin:1111111111111111111114oLvT2", "1" * 91, "ＢＣ１q",
     " 1111111111111111111114oLvT2", "1111111111111111111114oLvT2\n", "xpub6CU", "1" * 30],
)  # fmt: skip
def test_what_is_no_address(text):
    with pytest.raises(InvalidAddress):
        decode_address(text, Network.MAINNET)


@pytest.mark.parametrize("payload", [b"", b"\x00", bytes(20), bytes(22), b"\x05" + bytes(32)])
def test_base58_of_the_wrong_length(payload):
    with pytest.raises(InvalidAddress):
        decode_address(encodings.encode_base58check(payload), Network.MAINNET)


def test_an_unknown_base58_prefix():
    # Litecoin's P2PKH prefix.
    with pytest.raises(InvalidAddress, match="prefix"):
        decode_address("LM2WMpR1Rp6j3Sa59cMXMs1SPzj9eXpGc1", Network.MAINNET)


@pytest.mark.parametrize(("version", "length"), [(2, 32), (16, 2), (1, 2), (1, 20)])
def test_s10_addresses_without_rules_are_refused_with_the_reason(version, length):
    address = encode_segwit("bc", version, bytes(length))
    with pytest.raises(InvalidAddress, match="no rules") as refusal:
        decode_address(address, Network.MAINNET)
    assert "anyone" in refusal.value.hint
    assert encode_address(witness_output(version, bytes(length)), Network.MAINNET) is None


def test_scripts_without_address():
    for script in (b"", op_return_script(b"x"), b"\x51"):
        assert encode_address(script, Network.MAINNET) is None
