"""What a provider may do to us without keeping or misleading us (P75)."""

from contextlib import ExitStack

import pytest

from custody.server.domain.errors import IdentityRefused, ProviderUnavailable
from custody.server.service.sign_in.id_tokens import Expected
from custody.server.service.sign_in.providers import AT_ONCE, Client, Providers
from custody.server.service.webhooks.sending import Sender
from tests.support.identity import CLIENT_ID, CLIENT_SECRET, answer_of, published, scripted, sign, signing_key
from tests.support.platform import Clock
from tests.support.receiver import PUBLIC, Wire, status

CLIENT = Client(CLIENT_ID, CLIENT_SECRET, "https://custody.example.org/back")
DISCOVERY = "/.well-known/openid-configuration"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def rig(tmp_path, clock):
    with scripted(tmp_path, clock) as (provider, ca):
        wire = Wire()
        sender = Sender(wire.resolve, ca, connect=wire.connect, seconds=2)
        yield provider, Providers(clock, sender, frozenset()), wire


def refused(providers, issuer):
    with pytest.raises(ProviderUnavailable) as found:
        providers.published(issuer)
    return found.value.detail.removeprefix(issuer)


def test_what_it_publishes_is_asked_for_once_an_hour(rig, clock):
    provider, providers, wire = rig
    for _ in range(3):
        assert providers.published(provider.issuer).token_endpoint == f"{provider.issuer}/token"
    assert provider.asked == [DISCOVERY, "/keys"]
    assert {place[0] for place in wire.called} == {PUBLIC}
    clock.advance(hours=1)
    providers.published(provider.issuer)
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
def test_p75_it_leads_nowhere_inside(rig, name):
    provider, providers, wire = rig
    for inside in (
        "https://localhost/",
        "https://169.254.169.254/",
        "http://login.example.org/",
        "file:///etc",
    ):
        provider.discovery[name] = inside
        assert "names an address that is not called" in refused(providers, provider.issuer)
    provider.discovery[name] = provider.issuer
    wire.addresses = [["10.0.0.1"]]
    assert "its address is not a public one" in refused(providers, provider.issuer)


def test_p75_another_issuer_is_not_spoken_for(rig):
    provider, providers, _ = rig
    provider.discovery["issuer"] = "https://accounts.example.com"
    assert "says that it is another issuer" in refused(providers, provider.issuer)


def test_p75_an_unknown_key_makes_us_ask_once_a_minute(rig, clock):
    provider, providers, _ = rig
    expected = Expected(provider.issuer, CLIENT_ID, "n")
    newer = signing_key("2")
    providers.published(provider.issuer)
    clock.advance(minutes=2)
    for _ in range(3):
        with pytest.raises(IdentityRefused):
            providers.subject(provider.issuer, sign(provider.good("n"), newer), expected)
    assert provider.asked.count("/keys") == 2
    clock.advance(minutes=1)
    provider.keys = published(newer)
    assert providers.subject(provider.issuer, sign(provider.good("n"), newer), expected) == "ada"


def test_the_code_goes_with_its_verifier_and_the_secret(rig):
    provider, providers, _ = rig
    provider.codes["c"] = "n"
    assert providers.redeem(provider.issuer, CLIENT, "c", "v")
    sent = provider.receiver.arrived[-1]
    assert sent.headers["authorization"].startswith("Basic ")
    assert b"code_verifier=v" in sent.body
    assert CLIENT_SECRET.encode() not in sent.body
    with pytest.raises(IdentityRefused):
        providers.redeem(provider.issuer, CLIENT, "c", "v")
    provider.answers["/token"] = answer_of({"access_token": "x"})
    with pytest.raises(ProviderUnavailable):
        providers.redeem(provider.issuer, CLIENT, "c", "v")


def test_p75_a_slow_one_takes_no_more_than_its_threads(rig):
    provider, providers, _ = rig
    with ExitStack() as held:
        for _ in range(AT_ONCE):
            held.enter_context(providers._line(provider.issuer))
        assert "asked too often" in refused(providers, provider.issuer)
    assert provider.asked == []
