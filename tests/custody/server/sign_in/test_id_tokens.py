"""Refused ID tokens (P74): forged, another client's, old, or for another request."""

from datetime import UTC, datetime

import pytest
from joserfc import jwk

from custody.server.sign_in.providers import (
    NotFresh,
    TokenNotGenuine,
    UnknownKey,
    base64url,
    read_keys,
    subject_of,
)
from custody.server.store.models import IdentityProviderRow
from tests.support.identity import by_hand, published, sign, signing_key

NOW = datetime(2026, 3, 1, tzinfo=UTC)
AT = int(NOW.timestamp())
PROVIDER = IdentityProviderRow(issuer="https://login.example.org", client_id="custody")
GOOD = {
    "iss": PROVIDER.issuer, "aud": "custody", "sub": "ada", "nonce": "the nonce", "iat": AT, "exp": AT + 300,
}  # fmt: skip
KEY = signing_key()


def judged(token: str, keys=None, since=None) -> str:
    return subject_of(PROVIDER, token, "the nonce", NOW, since, read_keys(keys or published(KEY)))


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"aud": ["custody"]},
        {"aud": ["custody", "x"], "azp": "custody"},
        {"exp": AT - 59},
        {"iat": AT + 60},
    ],
)
def test_one_that_is_genuine_names_its_subject(claims):
    assert judged(sign({**GOOD, **claims}, KEY)) == "ada"


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://login.example.org/"}, {"iss": ["https://login.example.org"]}, {"iss": None},
        {"aud": "other"}, {"aud": ["other"]}, {"aud": ["custody", "x"]}, {"aud": None}, {"aud": {}},
        {"azp": "other"}, {"aud": ["custody", "x"], "azp": "x"},
        {"nonce": "another"}, {"nonce": ["the nonce"]}, {"nonce": None},
        {"exp": AT - 60}, {"exp": None}, {"exp": "9999999999"}, {"exp": float("nan")}, {"exp": True},
        {"iat": AT + 61}, {"iat": None}, {"nbf": AT + 61},
        {"sub": ""}, {"sub": None}, {"sub": 7}, {"sub": "x" * 256}, {"sub": "ada\n"},
    ],
    ids=str,
)  # fmt: skip
def test_p74_what_is_not_for_us_or_not_now(claims):
    with pytest.raises(TokenNotGenuine):
        judged(sign({**GOOD, **claims}, KEY))


@pytest.mark.parametrize("at", [None, AT - 61, True, float(AT), str(AT)], ids=str)
def test_p76_of_an_earlier_sign_in_where_a_fresh_one_is_asked_for(at):
    with pytest.raises(NotFresh):
        judged(sign({**GOOD, "auth_time": at}, KEY), since=NOW)
    assert judged(sign({**GOOD, "auth_time": AT - 60}, KEY), since=NOW) == "ada"


def _spoilt(token: str) -> str:
    head, claims, signature = token.split(".")
    return f"{head}.{claims}.{'A' * 8}{signature[8:]}"


@pytest.mark.parametrize(
    "token",
    [
        by_hand(GOOD, "HS256", KEY.as_pem(private=False)),
        by_hand(GOOD, "none"),
        sign(GOOD, jwk.RSAKey.generate_key(2048), kid="1"),
        _spoilt(sign(GOOD, KEY)),
        sign(GOOD, jwk.ECKey.generate_key("P-256"), alg="ES256", kid="1"),
        sign([GOOD], KEY),
        sign(GOOD | {"x": "x" * 20_000}, KEY),
        "", ".", "..", "a.b.c.d.e", "\u00fc.\u00fc.\u00fc",
    ],
    ids=[
        "the public key as a secret", "none", "another key", "spoilt", "another kind of key", "no object",
        "too long", "empty", "one dot", "two dots", "encrypted", "no ASCII",
    ],
)  # fmt: skip
def test_p74_a_token_without_a_valid_signature(token):
    with pytest.raises(TokenNotGenuine):
        judged(token)


def test_p74_keys_that_sign_nothing_here():
    secret = {"kty": "oct", "kid": "s", "k": "c2VjcmV0" * 8}
    weak = {"kty": "RSA", "kid": "weak", "e": "AQAB", "n": base64url(b"\0" * 128 + b"\xc1" * 128)}
    for_secrecy = signing_key("enc").as_dict(private=False) | {"use": "enc"}
    keys = {"keys": [weak, secret, for_secrecy, None, {"kty": "RSA"}, {"kty": 7}]}
    assert read_keys(keys) == {}
    for token in (sign(GOOD, KEY, kid="weak"), sign(GOOD, signing_key("enc")), sign(GOOD, KEY)):
        with pytest.raises(UnknownKey):
            judged(token, keys)
    for document in (None, [], {}, {"keys": {}}):
        with pytest.raises(TokenNotGenuine):
            read_keys(document)


def test_p75_of_a_key_its_public_members_alone_are_read_and_they_are_bounded():
    """Given `d`, the library searches for the primes, for as long as the provider likes."""
    shown = {"keys": [KEY.as_dict(private=True)]}
    (read,) = read_keys(shown).values()
    assert not read.is_private
    assert judged(sign(GOOD, KEY), shown) == "ada"
    public = KEY.as_dict(private=False)
    curve = jwk.ECKey.generate_key("P-256").as_dict(private=False)
    for key, name, size in ((public, "n", 1_025), (public, "e", 9), (curve, "x", 67), (curve, "y", 67)):
        assert read_keys({"keys": [{**key, name: base64url(b"\xc1" * size)}]}) == {}
    assert read_keys({"keys": [{**public, "n": base64url(b"\0" * 70_000 + b"\xc1" * 256)}]}) == {}


def test_without_a_key_id_one_key_is_meant_and_of_two_none():
    """A key may be of an elliptic curve, too."""
    token = sign(GOOD, KEY, kid=None)
    assert judged(token) == "ada"
    with pytest.raises(UnknownKey):
        judged(token, published(KEY, signing_key("2")))
    key = jwk.ECKey.generate_key("P-256", {"kid": "e"})
    assert judged(sign(GOOD, key, alg="ES256"), published(key)) == "ada"
