"""Sign-in through the SDK, against the real platform."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.client import ApiError, Client, SignedOut
from tests.support.accounts import CAROL, NEW_PASSWORD, Phone, mailed_token, register
from tests.support.platform import PASSWORD, World, open_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        register(opened)
        yield opened


def new_client(world: World) -> Client:
    return Client("http://127.0.0.1", transport=world.http._transport, now=lambda: world.clock().timestamp())


def signed_in(world: World, password: str = PASSWORD) -> Client:
    client = new_client(world)
    waiting = client.login(CAROL, password, device="desk", location="Riga")
    assert (waiting.requires_2fa, waiting.two_factor_method) == (True, "email")
    assert client.otp_validate(waiting.token_2fa, world.mail.newest_code()).token
    return client


def test_what_a_call_takes_is_shown_by_help(world: World) -> None:
    client = new_client(world)
    assert list(inspect.signature(client.login).parameters) == ["email", "password", "device", "location"]
    assert list(inspect.signature(client.logout).parameters) == []
    assert inspect.getdoc(Client.login) == inspect.getdoc(client.login)


def test_an_authenticator_from_enrolment_to_recovery(world: World) -> None:
    client = signed_in(world)
    offered = client.totp_enrol(PASSWORD)
    assert offered.otpauth_uri.startswith("otpauth://totp/")
    phone = Phone(world, offered.secret)
    confirmed = client.totp_confirm(phone.code)
    assert len(confirmed.recovery_codes) == 10
    assert not any(
        secret in repr((offered, confirmed)) for secret in [offered.secret, *confirmed.recovery_codes]
    )
    for code in (phone.next_code(), confirmed.recovery_codes[0]):
        waiting = new_client(world)
        asked = waiting.login(CAROL, PASSWORD)
        assert asked.two_factor_method == "totp"
        assert waiting.otp_validate(asked.token_2fa, code).user_info.email == CAROL
    assert client.two_factor(password=PASSWORD, method="email").method == "email"
    assert client.two_factor(password=PASSWORD, enabled=False).enabled is False


def test_a_password_lost_and_a_password_changed(world: World) -> None:
    other = signed_in(world)
    assert new_client(world).request_password_reset(CAROL).success
    assert new_client(world).reset_password(mailed_token(world), NEW_PASSWORD).success
    with pytest.raises(SignedOut):
        other.user_info()
    client, second = signed_in(world, NEW_PASSWORD), signed_in(world, NEW_PASSWORD)
    with pytest.raises(ApiError, match="password is wrong"):
        client.change_password("a guess", PASSWORD)
    assert client.change_password(NEW_PASSWORD, PASSWORD).success
    assert client.user_info().email == CAROL
    with pytest.raises(SignedOut):
        second.user_info()


def test_sessions_are_listed_and_ended(world: World) -> None:
    first, second, third = (signed_in(world) for _ in range(3))
    sessions = first.sessions()
    assert [each.current for each in sessions] == [False, False, True]
    assert {(each.device.value, each.location.value) for each in sessions} == {("desk", "Riga")}
    assert first.revoke_session(sessions[0].session_id).ended == 1
    with pytest.raises(SignedOut):
        third.user_info()
    assert second.user_info().email == CAROL
    assert first.revoke_other_sessions().ended == 1
    assert len(first.sessions()) == 1
