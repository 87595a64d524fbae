"""Passkeys: made, used for a sign-in and a proof, and refused where anything of the answer is another's."""

from dataclasses import replace

import pytest

from custody.server.calls import In, context_in
from custody.server.errors import StateConflict
from custody.server.rules.credentials import OPERATOR
from custody.server.sign_in.challenges import add_passkey
from custody.server.sign_in.passkeys import Assertion
from custody.server.sign_in.second_factor import reset_second_factor
from tests.support.authenticator import PRESENT, Authenticator
from tests.support.console import SAME_SITE, Visitor
from tests.support.platform import PASSWORD, open_world

HOME = "/console/account"
URL = "http://localhost:8080"


@pytest.fixture
def world(tmp_path):
    with open_world(tmp_path, public_url=URL) as world:
        world.organisation("Acme", "admin@example.org")
        world.organisation("Other", "other@example.org")
        yield world


@pytest.fixture
def key():
    return Authenticator(origin=URL, rp_id="localhost")


def hidden(visitor: Visitor, action: str, name: str) -> str:
    (value,) = [value for each, value in visitor.form(action).fields if each == name]
    return value


def options(visitor: Visitor) -> str:
    (button,) = [tag for tag in visitor.page.all("button") if "data-passkey" in tag.attributes]
    return button.attributes["data-options"]


def with_passkey(world, key: Authenticator, email: str = "admin@example.org") -> Visitor:
    person = Visitor(world.http).sign_in(email).open(HOME)
    person.send(f"{HOME}/passkeys", name="My key").send(f"{HOME}/passkeys", step_password=PASSWORD)
    return person.send(f"{HOME}/passkeys/made", made=key.create(options(person)))


def signing_in(world, email: str = "admin@example.org") -> Visitor:
    world.http.cookies.clear()
    return Visitor(world.http).sign_in(email)


def test_a_passkey_signs_in_in_the_place_of_a_code(world, key):
    person = with_passkey(world, key)
    person = signing_in(world)
    assert "A code was mailed to you" in person.words
    person.send("/console/sign-in/code", assertion=key.get(options(person)))
    assert person.url == "/console/"
    assert world.audit_actions().count("PASSKEY_ADDED") == 1


def test_it_proves_who_changes_something(world, key):
    person = with_passkey(world, key)
    world.clock.advance(minutes=11)
    person.open(HOME).send(f"{HOME}/passkeys/remove")
    person.send(f"{HOME}/passkeys/remove", step_assertion=key.get(options(person)))
    assert "The passkey is removed." in person.words
    assert "data-passkey" not in signing_in(world).html


def test_the_operators_reset_takes_them_away(world, key):
    with_passkey(world, key)
    with context_in(world.platform.services, OPERATOR, In.WRITE) as ctx:
        reset_second_factor(ctx, "admin@example.org")
    assert "data-passkey" not in signing_in(world).html


WRONG = {
    "another page": {"origin": "http://localhost:8081"},
    "another platform's": {"rp_id": "example.org"},
    "another credential": {"credential_id": b"a credential of another"},
    "nobody was verified": {"flags": PRESENT},
    # A copy of the key has not counted on.
    "a copy": {"counter": 0},
    "a copy whose counter fell to nothing": {"counter": -1},
}


def test_an_answer_that_is_another_an_old_one_or_anothers_is_refused(world, key):
    other = Authenticator(URL, "localhost", credential_id=b"the other's")
    with_passkey(world, other, "other@example.org")
    world.http.cookies.clear()
    with_passkey(world, key)
    person = signing_in(world)
    used = key.get(options(person))
    person.send("/console/sign-in/code", assertion=used)
    wrong = {what: replace(key, **changes) for what, changes in WRONG.items()}
    wrong |= {"another key": Authenticator(URL, "localhost"), "another account's": other}
    for what, device in wrong.items():
        person = signing_in(world)
        answer = device.get(options(person))
        person.send("/console/sign-in/code", assertion=answer, status=401)
        assert "custody-session" not in person.http.cookies, what
    for text in (used, "{", "[]", "{}", '{"response": 1}', "x" * 20_000):
        signing_in(world).send("/console/sign-in/code", assertion=text, status=401)
    person = signing_in(world)
    assert person.send("/console/sign-in/code", assertion=key.get(options(person))).url == "/console/"


def test_a_passkey_is_taken_once(world, key):
    person = with_passkey(world, key)
    assert "Signing in asks for it, or for a code." in person.words
    person.send(f"{HOME}/passkeys", name="Again")
    person.send(f"{HOME}/passkeys/made", made=key.create(options(person)), status=422)
    assert "This passkey is known already." in person.words


def test_a_session_alone_adds_none(world, key):
    """The challenge of a proof that is asked for is not one for a new passkey."""
    person = with_passkey(world, key)
    world.clock.advance(minutes=11)
    person.open(HOME).send(f"{HOME}/passkeys", name="Evil")
    token = hidden(person, f"{HOME}/passkeys", "step_token")
    planted = Authenticator(URL, "localhost", credential_id=b"of a thief").create(options(person))
    sent = dict(person.open(HOME).form(f"{HOME}/passkeys").fields) | {"name": "Evil", "made": planted}
    answer = person.http.post(f"{HOME}/passkeys/made", data=sent | {"token": token}, headers=SAME_SITE)
    assert "Confirm that it is you" in answer.text
    (cookie,) = [value for name, value in person.http.cookies.items() if name.endswith("custody-session")]
    caller = world.caller(cookie.split(".")[0])
    with (
        pytest.raises(StateConflict, match="Show first that it is you"),
        context_in(world.platform.services, caller, In.WRITE) as ctx,
    ):
        add_passkey(ctx, token, "Evil", Assertion(planted))


def test_a_deep_answer_is_a_try_that_counts(world, key):
    with_passkey(world, key)
    person = signing_in(world)
    right, sent = key.get(options(person)), dict(person.form("/console/sign-in/code").fields)
    for _ in range(5):
        person.send("/console/sign-in/code", assertion="[" * 16_000, status=401)
    assert "This sign-in is over: too many wrong codes were given." in person.words
    late = person.http.post("/console/sign-in/code", data=sent | {"assertion": right}, headers=SAME_SITE)
    assert late.status_code == 401


@pytest.mark.parametrize("url", [None, "https://192.0.2.1"])
def test_a_platform_without_a_name_offers_none(tmp_path, url):
    with open_world(tmp_path, public_url=url) as world:
        world.organisation("Acme", "admin@example.org")
        person = Visitor(world.http).sign_in("admin@example.org").open(HOME)
        assert "passkeys" not in person.html
