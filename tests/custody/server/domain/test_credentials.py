"""Tokens, ids and codes."""

import secrets
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from custody.schemas.auth import OneTimeCode, OpaqueToken
from custody.schemas.common import TextId
from custody.server.domain.credentials import new_id, new_otp, new_token, otp_hash, token_hash


@given(st.binary(min_size=32, max_size=32))
def test_have_the_shapes_of_the_wire(data: bytes) -> None:
    def random(count: int) -> bytes:
        return data[:count]

    assert TypeAdapter(OpaqueToken).validate_python(new_token(random)) == new_token(random)
    assert TypeAdapter(TextId).validate_python(new_id(random)) == new_id(random)
    assert TypeAdapter(OneTimeCode).validate_python(new_otp(random)) == new_otp(random)


def test_codes_use_all_digits_in_all_places() -> None:
    codes = [new_otp(secrets.token_bytes) for _ in range(2_000)]
    for place in range(6):
        assert set(Counter(code[place] for code in codes)) == set("0123456789")


def test_a_codes_hash_depends_on_its_token() -> None:
    """P38."""
    assert otp_hash("123456", "one") != otp_hash("123456", "two")
    assert otp_hash("123456", "one") == otp_hash("123456", "one")


def test_a_hash_is_not_the_token() -> None:
    assert b"token" not in token_hash("token")
    assert len(token_hash("token")) == 32
