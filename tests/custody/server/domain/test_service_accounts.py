"""The pure rules of programs' accounts: their secrets, and where they are used from."""

from dataclasses import replace

import pytest

from custody.schemas.service_accounts import read_network
from custody.server.domain.credentials import Caller, ServiceCaller, token_hash
from custody.server.domain.service_accounts import account_of, is_inside, is_wider, matches, new_secret
from custody.server.domain.service_accounts import plain_address as plain

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
    programs = [replace(maker, service=ServiceCaller(number, 1, b"", "192.0.2.1")) for number in (1, 2)]
    assert {each.counted_as for each in programs} == {-7} != {maker.counted_as}
