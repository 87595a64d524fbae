"""Tokens, ids and codes; the secrets, rights and networks of programs."""

import secrets
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from custody.schemas.auth import OneTimeCode, OpaqueToken
from custody.schemas.common import TextId
from custody.schemas.service_accounts import read_network
from custody.server.rules.credentials import (
    Caller,
    ServiceCaller,
    account_of,
    is_inside,
    is_wider,
    matches,
    new_id,
    new_otp,
    new_secret,
    new_token,
    otp_hash,
    token_hash,
)
from custody.server.rules.credentials import plain_address as plain


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


SECRET = new_secret(7, lambda count: bytes(range(count)))


def test_a_secret_is_recognised_and_names_its_account() -> None:
    assert SECRET == "custody_sa_7_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
    assert account_of(SECRET) == 7
    for other in (
        "",
        SECRET[:-1],
        SECRET + "A",
        SECRET.replace("_7_", "_07_"),
        SECRET.replace("_7_", "_-7_"),
    ):
        assert account_of(other) is None


def test_either_hash_is_found_and_no_other() -> None:
    own, other = token_hash(SECRET), token_hash("another")
    assert matches(SECRET, (own, other)) == matches(SECRET, (other, own)) == own
    assert matches(SECRET, (other, None)) is None


@pytest.mark.parametrize(
    ("address", "networks", "inside"),
    [
        ("10.1.2.3", ["10.0.0.0/8"], True),
        ("11.1.2.3", ["10.0.0.0/8"], False),
        ("::ffff:10.1.2.3", ["10.0.0.0/8"], True),
        ("10.1.2.3", [str(read_network("::ffff:10.0.0.0/104"))], True),
        ("2001:db8::1", ["2001:db8::/48"], True),
        ("2001:db8:1::1", ["2001:db8::/48"], False),
        ("fe80::1%eth0", ["fe80::/10"], True),
        # An IPv4 caller is none of all IPv6.
        ("::ffff:10.1.2.3", ["::/0"], False),
        ("10.1.2.3", ["10.1.2.4", "10.1.2.3"], True),
        ("local", ["0.0.0.0/0", "::/0"], False),
    ],
)
def test_p68_where_a_secret_is_used_from(address: str, networks: list[str], inside: bool) -> None:
    assert is_inside(plain(address), networks) is inside


@pytest.mark.parametrize(
    "text", ["", "10.1.0.0/8", "10.0.0.0/33", "010.0.0.0/8", "fe80::%eth0/64", "acme.example"]
)
def test_what_is_no_network_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"write (the|a) network"):
        read_network(text)


@pytest.mark.parametrize(
    ("after", "wider"),
    [
        ([], False),
        (["10.1.0.0/16"], False),
        (["10.0.0.0/8", "2001:db8:0:1::/64"], False),
        (["10.0.0.0/7"], True),
        (["10.1.0.0/16", "192.0.2.1/32"], True),
        (["2001:db8::/47"], True),
    ],
)
def test_p67_more_places_are_noticed(after: list[str], wider: bool) -> None:
    assert is_wider(["10.0.0.0/8", "2001:db8::/48"], after) is wider


def test_p69_many_programs_of_one_maker_are_counted_together_and_apart_from_the_maker() -> None:
    maker = Caller(7, 1, "alice@example.org", "trace")
    programs = [replace(maker, service=ServiceCaller(number, 1, b"")) for number in (1, 2)]
    assert {each.counted_as for each in programs} == {-7} != {maker.counted_as}
