"""What a payload says to a person, and the output that carries it."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import InvalidToken, Network, encode_address, op_return_script
from multisig.tokens import (
    Function,
    encode_payload,
    listed_addresses,
    token_of,
    token_of_script,
    token_script,
    token_words,
)
from multisig.tokens.words import LONGEST_ICON
from tests.multisig.tokens.samples import BYTECODES, CONTRACT, OWNER, PAYLOADS, bytecode, call

TOKEN = bytecode()
LONG_HASH = sha256(b"https://" + b"a" * 504).hexdigest()
ADDRESS = encode_address(OWNER, Network.REGTEST)
UNKNOWN = "tokens that this machine does not know"


def words(function, token=TOKEN, **arguments):
    return token_words(call(function, **arguments), Network.REGTEST, token)


# How each function is told from the others.
TELLING = {
    Function.INIT: "Start {}: its first supply",
    Function.TRANSFER: "Send {}",
    Function.MINT: "Create {} for",
    Function.BURN: "Destroy {} held by",
    Function.PAUSE: "Stop all transfers of {}.",
    Function.UNPAUSE: "Allow transfers of {} again.",
    Function.TRANSFER_OWNERSHIP: "Hand control of {} over to",
    Function.ENABLE_WHITELIST: "From now on, only listed addresses may receive {}.",
    Function.DISABLE_WHITELIST: "From now on, any address may receive {}.",
    Function.ADD_TO_WHITELIST: "Let ",
    Function.REMOVE_FROM_WHITELIST: "No longer let ",
}


@pytest.mark.parametrize("function", Function, ids=lambda function: function.wire_name)
@pytest.mark.parametrize(
    ("token", "money", "coins"),
    [(TOKEN, "12.50 GOLD tokens", "GOLD tokens"), (None, f"1250 raw units of {UNKNOWN}", UNKNOWN)],
    ids=["known", "unknown"],
)
def test_each_function_in_words(function, token, money, coins):
    arguments = {"amount": 1250 if function.takes_amount else None}
    arguments["address"] = OWNER if function.takes_address else None
    said = words(function, token, **arguments).sentence
    assert said.startswith(TELLING[function].format(money if function.takes_amount else coins))
    assert coins in said
    assert (ADDRESS in said) is function.takes_address
    assert ("Only the new owner could ever give it back" in said) is (function is Function.TRANSFER_OWNERSHIP)


def test_a_first_supply_and_one_unit_in_words():
    assert "supply, 1000.00 GOLD tokens, goes to the owner" in words(Function.INIT).sentence
    assert words(Function.BURN, None, amount=1, address=OWNER).sentence.startswith("Destroy 1 raw unit of ")


def test_a_deployment_in_words():
    said = token_words(TOKEN.deployment, Network.REGTEST, TOKEN)
    assert said.sentence == (
        "Create GOLD tokens: 1000.00 at first, never more than 5000.00. Any address may receive them."
    )
    told = dict(said.details)
    assert told["bytecode hash"] == TOKEN.deployment.bytecode_hash.hex()
    assert (told["name"], told["first owner"]) == ("Gold of the House", ADDRESS)
    assert (told["raw total supply"], told["raw maximum supply"]) == ("100000", "500000")
    listed = bytecode(whitelist_enabled=True, decimals=0)
    assert token_words(listed.deployment, Network.REGTEST).sentence == (
        "Create GOLD tokens: 100000 at first, never more than 500000. Only listed addresses may receive them."
    )


def test_a_deployments_list_is_told_by_its_length_and_hash_and_each_address_whole():
    scripts = tuple(sorted([OWNER, bytes.fromhex("0014") + bytes(20), bytes.fromhex("5120") + bytes(32)]))
    token = bytecode(whitelist=scripts)
    details = dict(token_words(token.deployment, Network.REGTEST, token).details)
    assert details["addresses listed at first"] == "3"
    assert details["SHA-256 of that list"] == token.whitelist_hash.hex()
    assert tuple(listed_addresses(token, Network.REGTEST)) == tuple(
        encode_address(script, Network.REGTEST) for script in scripts
    )


@given(BYTECODES)
def test_the_lists_hash_is_of_the_bytes_as_they_stand_in_the_blob(token):
    _, _, rest = token.blob.partition(b'"whitelist":')
    listed, _, _ = rest.rpartition(b',"whitelist_enabled":')
    assert token.whitelist_hash == sha256(listed).digest()


@pytest.mark.parametrize(
    ("icon", "told"),
    [
        ("", "none"),
        ("https://" + "a" * (LONGEST_ICON - 8), "https://" + "a" * (LONGEST_ICON - 8)),
        (
            "https://" + "a" * 504,
            f"{('https://' + 'a' * 504)[:LONGEST_ICON]}… (cut: 512 characters in all, SHA-256 {LONG_HASH})",
        ),
    ],
    ids=["none", "whole", "cut"],
)
def test_an_icon_is_text_and_says_what_was_cut_of_it(icon, told):
    token = bytecode(icon=icon)
    assert dict(token_words(token.deployment, Network.REGTEST, token).details)["icon"] == told


def test_the_details_of_a_call():
    told = dict(words(Function.TRANSFER, amount=1250, address=OWNER).details)
    assert (told["contract"], told["raw amount"], told["address"]) == (CONTRACT, "1250", ADDRESS)
    assert words(Function.PAUSE, token=None).details == (("function", "pause"), ("contract", CONTRACT))


def test_addresses_are_those_of_the_network():
    said = token_words(call(Function.TRANSFER, amount=1, address=OWNER), Network.MAINNET, TOKEN)
    assert encode_address(OWNER, Network.MAINNET) in said.sentence
    assert "bcrt1" not in said.sentence


def test_a_deployment_is_never_put_in_the_words_of_another_bytecode_s13():
    with pytest.raises(InvalidToken, match="bytecode_hash, ticker"):
        token_words(TOKEN.deployment, Network.REGTEST, bytecode(ticker="SILVER"))


def test_a_ticker_that_poses_as_bitcoin_is_called_a_token_s13():
    said = words(Function.TRANSFER, token=bytecode(ticker="BTC"), amount=1250, address=OWNER)
    assert said.sentence == f"Send 12.50 BTC tokens to {ADDRESS}."


@given(PAYLOADS, st.sampled_from(Network), BYTECODES | st.none())
def test_the_sentence_is_plain_and_the_hex_is_all_of_the_data_s13(payload, network, token):
    if token is not None and hasattr(payload, "bytecode_hash"):
        payload = token.deployment
    said = token_words(payload, network, token)
    assert said.sentence.isascii()
    assert said.sentence.isprintable()
    assert said.hex == encode_payload(payload).hex()
    assert all(value.isprintable() for _, value in said.details)


@given(PAYLOADS)
def test_the_output_that_carries_a_payload(payload):
    script = token_script(payload)
    assert token_of_script(script) == payload
    assert len(script) <= 83
    assert token_of_script(script + b"\x00") is None
    assert token_of(encode_payload(payload)) == payload


def test_other_data_is_no_token_and_a_broken_one_is_not_just_other_data_s10():
    assert token_of(b"hello") is None
    assert token_of_script(op_return_script(b"hello")) is None
    assert token_of_script(OWNER) is None
    with pytest.raises(InvalidToken, match="version is 2"):
        token_of(b"CPT hello")
    with pytest.raises(InvalidToken, match="version is 2"):
        token_of_script(op_return_script(b"CPT hello"))
