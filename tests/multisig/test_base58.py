import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig.base58 import MAX_CHARACTERS, Base58Error, decode_check, encode_check

# The all-zero hash on mainnet: the best known burn address.
ZEROS = "1111111111111111111114oLvT2"


def test_leading_zeros_are_kept():
    assert encode_check(bytes(21)) == ZEROS
    assert decode_check(ZEROS) == bytes(21)


@given(st.binary(max_size=78))
def test_round_trip(payload):
    assert decode_check(encode_check(payload)) == payload


@given(st.binary(min_size=1, max_size=40), st.data())
def test_one_wrong_character_is_noticed(payload, data):
    text = encode_check(payload)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"))
    if other != text[at]:
        with pytest.raises(Base58Error):
            decode_check(text[:at] + other + text[at + 1 :])


@pytest.mark.parametrize(
    "text",
    ["", "1", "11", "0", "O", "I", "l", ZEROS + " ", " " + ZEROS, ZEROS[:-1], ZEROS + "1", "１" + ZEROS[1:]],
)
def test_refuses(text):
    with pytest.raises(Base58Error):
        decode_check(text)


def test_s23_length_is_bounded_before_the_quadratic_part():
    with pytest.raises(Base58Error, match="too long"):
        decode_check("z" * (MAX_CHARACTERS + 1))
