"""What a provider may do to us without keeping or misleading us (P75); ID tokens that are refused (P74):
forged, another client's, old, or for another request.
"""

from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
from joserfc import jwk

from custody.server.errors import IdentityRefused, ProviderUnavailable
from custody.server.sign_in.id_tokens import NotFresh, TokenNotGenuine, UnknownKey, read_keys, subject_of
from custody.server.sign_in.providers import AT_ONCE, AT_ONCE_PUBLISHED, Providers, base64url
from custody.server.store.models import IdentityProviderRow
from custody.server.webhooks.sending import Sender
from tests.support.identity import (
    CLIENT_ID,
    CLIENT_SECRET,
    HOST,
    answer_of,
    by_hand,
    published,
    scripted,
    sign,
    signing_key,
)
from tests.support.receiver import PUBLIC, Wire, status

CLIENT = (CLIENT_SECRET, "https://custody.example.org/back")
ASKED = {"nonce": "n", "redirect_uri": CLIENT[1]}
DISCOVERY = "/.well-known/openid-configuration"


@pytest.fixture
def rig(tmp_path, clock):
    with scripted(tmp_path, clock) as (provider, ca):
        wire = Wire()
        sender = Sender(wire.resolve, ca, connect=wire.connect, seconds=2)
        yield provider, Providers(clock, sender, frozenset()), wire


def of(issuer, organisation_id=1):
    return IdentityProviderRow(issuer=issuer, client_id=CLIENT_ID, organisation_id=organisation_id)


def refused(providers, issuer):
    with pytest.raises(ProviderUnavailable) as found:
        providers.published(of(issuer))
    return found.value.detail.removeprefix(issuer)


def test_what_it_publishes_is_asked_for_once_an_hour(rig, clock):
    provider, providers, wire = rig
    for _ in range(3):
        assert providers.published(of(provider.issuer)).token_endpoint == f"{provider.issuer}/token"
    assert provider.asked == [DISCOVERY, "/keys"]
    assert {place[0] for place in wire.called} == {PUBLIC}
    clock.advance(hours=1)
    providers.published(of(provider.issuer))
    assert provider.asked == [DISCOVERY, "/keys"] * 2


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        (DISCOVERY, status(302, "Location: https://169.254.169.254/latest"), "does not answer as"),
        ("/keys", status(307, "Location: https://169.254.169.254/latest"), "does not answer as"),
        (DISCOVERY, answer_of(b" " * 200_000 + b"{}"), "does not answer as it should"),
        (DISCOVERY, answer_of(b"[" * 100_000), "does not answer as"),
        (DISCOVERY, answer_of([]), "does not answer as"),
        (DISCOVERY, answer_of({}), "publishes nothing"),
        ("/keys", answer_of({}), "publishes no keys"),
        (DISCOVERY, lambda _line, own: own.closing.wait(3), "does not answer in time"),
    ],
)  # fmt: skip
def test_p75_what_is_no_answer(rig, path, answer, words):
    provider, providers, _ = rig
    provider.answers[path] = answer
    assert words in refused(providers, provider.issuer)


@pytest.mark.parametrize("name", ["jwks_uri", "authorization_endpoint"])
def test_p75_it_leads_nowhere_inside(rig, clock, name):
    provider, providers, wire = rig
    for inside in (
        "https://localhost/",
        "https://169.254.169.254/",
        "http://login.example.org/",
        "file:///etc",
    ):
        provider.discovery[name] = inside
        assert "names an address that is not called" in refused(providers, provider.issuer)
        clock.advance(minutes=1)
    provider.discovery[name] = provider.issuer
    wire.addresses = [["10.0.0.1"]]
    assert "its address is not a public one" in refused(providers, provider.issuer)


def test_p75_another_issuer_is_not_spoken_for(rig):
    provider, providers, _ = rig
    provider.discovery["issuer"] = "https://accounts.example.com"
    assert "says that it is another issuer" in refused(providers, provider.issuer)


def test_p75_an_unknown_key_makes_us_ask_once_a_minute(rig, clock):
    provider, providers, _ = rig
    newer = signing_key("2")
    providers.published(of(provider.issuer))
    clock.advance(minutes=2)
    for _ in range(3):
        with pytest.raises(IdentityRefused):
            providers.subject(of(provider.issuer), sign(provider.good("n"), newer), "n")
    assert provider.asked.count("/keys") == 2
    clock.advance(minutes=1)
    provider.keys = published(newer)
    assert providers.subject(of(provider.issuer), sign(provider.good("n"), newer), "n") == "ada"


def test_p75_a_slow_one_takes_no_more_than_its_threads(rig):
    """Of an organisation, whatever issuers it names; and codes are redeemed while all others wait."""
    provider, providers, _ = rig
    provider.codes["c"] = ASKED
    providers.published(of(provider.issuer))
    with ExitStack() as held:

        def take_line(organisation_id: int) -> None:
            for key in (organisation_id, None):
                held.enter_context(providers._busy.one(key, AT_ONCE_PUBLISHED, AssertionError()))

        for _ in range(AT_ONCE):
            take_line(1)
        assert "asked too often" in refused(providers, "https://another.example.org")
        for number in range(AT_ONCE_PUBLISHED - AT_ONCE):
            take_line(2 + number)
        with pytest.raises(ProviderUnavailable, match="asked too often"):
            providers.published(of("https://another.example.org", 99))
        assert providers.redeem(of(provider.issuer, 99), *CLIENT, "c", "v")
    sent = provider.receiver.arrived[-1]
    assert (sent.headers["authorization"][:6], b"code_verifier=v" in sent.body) == ("Basic ", True)
    with pytest.raises(IdentityRefused):
        providers.redeem(of(provider.issuer), *CLIENT, "c", "v")
    assert provider.asked == [DISCOVERY, "/keys", "/token", "/token"]
    assert "cannot be reached" in refused(providers, "https://another.example.org"), "it is asked by now"


def test_p75_one_that_could_not_be_asked_is_left_alone_for_a_minute(rig, clock):
    provider, providers, _ = rig
    provider.answers["/keys"] = answer_of({})
    for _ in range(3):
        assert "publishes no keys" in refused(providers, provider.issuer)
    assert provider.asked == [DISCOVERY, "/keys"]
    clock.advance(minutes=1)
    del provider.answers["/keys"]
    providers.published(of(provider.issuer))


@pytest.mark.parametrize("name", ["jwks_uri", "token_endpoint"])
def test_p75_what_the_operator_allows_is_for_the_issuer_that_is_there(rig, clock, name):
    provider, outside, wire = rig
    providers = Providers(clock, outside._sender, frozenset({HOST, "inside.corp"}))
    wire.addresses = [["10.0.0.1"]]
    provider.codes["c"] = ASKED
    assert providers.redeem(of(provider.issuer), *CLIENT, "c", "v")
    clock.advance(hours=1)
    for url, words in ((f"https://{HOST}/x", "not a public one"), ("https://inside.corp/x", "is not called")):
        provider.discovery[name] = url
        with pytest.raises(ProviderUnavailable, match=words):
            providers.redeem(of(provider.issuer), *CLIENT, "c", "v")
        clock.advance(hours=1)


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
