"""Sign-in and one's own record through the SDK, against the real platform."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.client import ApiError, Client, SignedOut
from custody.schemas.auth import (
    ChangePasswordRequest,
    LoginRequest,
    LoginResponse,
    OtpValidateRequest,
    PasswordResetRequest,
    ResetPasswordRequest,
    RevokeSessionsRequest,
    TotpConfirmRequest,
    TotpEnrolRequest,
    TwoFactorRequest,
)
from custody.schemas.users import UpdateUserInfoRequest
from tests.support.accounts import CAROL, NEW_PASSWORD, Phone, mailed_token, register
from tests.support.platform import PASSWORD, World, open_world
from tests.support.sdk import connect, sdk

ALICE, BOB = "alice@example.org", "bob@example.org"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        opened.organisation("Acme", ALICE)
        opened.member(1, BOB)
        yield opened


@pytest.fixture
def alice(world: World) -> Client:
    return sdk(world, ALICE)


def test_an_empty_text_takes_away_and_what_is_left_out_stays(alice: Client) -> None:
    """None is not sent at all."""
    alice.update_user_info(UpdateUserInfoRequest(first_name="Alice", surname="Ng"))
    told = alice.update_user_info(UpdateUserInfoRequest(surname=""))
    assert (told.first_name.value, told.surname.value) == ("Alice", None)


@pytest.fixture
def mailed(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        register(opened)
        yield opened


def validate(client: Client, waiting: LoginResponse, code: str) -> LoginResponse:
    return client.otp_validate(OtpValidateRequest(token_2fa=waiting.token_2fa, otp=code))


def signed_in_by_mail(mailed: World, password: str = PASSWORD) -> Client:
    client = connect(mailed)
    waiting = client.login(LoginRequest(email=CAROL, password=password, device="desk", location="Riga"))
    assert (waiting.requires_2fa, waiting.two_factor_method) == (True, "email")
    assert validate(client, waiting, mailed.mail.newest_code()).token
    return client


def test_what_a_call_takes_is_shown_by_help(mailed: World) -> None:
    client = connect(mailed)
    assert list(inspect.signature(client.login).parameters) == ["body"]
    assert list(inspect.signature(client.logout).parameters) == []
    assert inspect.getdoc(Client.login) == inspect.getdoc(client.login)


def test_an_authenticator_from_enrolment_to_recovery(mailed: World) -> None:
    client = signed_in_by_mail(mailed)
    offered = client.totp_enrol(TotpEnrolRequest(password=PASSWORD))
    assert offered.otpauth_uri.startswith("otpauth://totp/")
    phone = Phone(mailed, offered.secret)
    confirmed = client.totp_confirm(TotpConfirmRequest(code=phone.code))
    assert len(confirmed.recovery_codes) == 10
    assert not any(
        secret in repr((offered, confirmed)) for secret in [offered.secret, *confirmed.recovery_codes]
    )
    for code in (phone.next_code(), confirmed.recovery_codes[0]):
        waiting = connect(mailed)
        asked = waiting.login(LoginRequest(email=CAROL, password=PASSWORD))
        assert asked.two_factor_method == "totp"
        assert validate(waiting, asked, code).user_info.email == CAROL
    assert client.two_factor(TwoFactorRequest(password=PASSWORD, method="email")).method == "email"
    assert client.two_factor(TwoFactorRequest(password=PASSWORD, enabled=False)).enabled is False


def test_a_password_lost_and_a_password_changed(mailed: World) -> None:
    other = signed_in_by_mail(mailed)
    assert connect(mailed).request_password_reset(PasswordResetRequest(email=CAROL)).success
    asked = ResetPasswordRequest(token=mailed_token(mailed), new_password=NEW_PASSWORD)
    assert connect(mailed).reset_password(asked).success
    with pytest.raises(SignedOut):
        other.user_info()
    client, second = signed_in_by_mail(mailed, NEW_PASSWORD), signed_in_by_mail(mailed, NEW_PASSWORD)
    with pytest.raises(ApiError, match="password is wrong"):
        client.change_password(ChangePasswordRequest(password="a guess", new_password=PASSWORD))
    asked = ChangePasswordRequest(password=NEW_PASSWORD, new_password=PASSWORD)
    assert client.change_password(asked).success
    assert client.user_info().email == CAROL
    with pytest.raises(SignedOut):
        second.user_info()


def test_sessions_are_listed_and_ended(mailed: World) -> None:
    first, second, third = (signed_in_by_mail(mailed) for _ in range(3))
    sessions = first.sessions()
    assert [each.current for each in sessions] == [False, False, True]
    assert {(each.device.value, each.location.value) for each in sessions} == {("desk", "Riga")}
    assert first.revoke_sessions(RevokeSessionsRequest(session_id=sessions[0].session_id)).ended == 1
    with pytest.raises(SignedOut):
        third.user_info()
    assert second.user_info().email == CAROL
    assert first.revoke_sessions(RevokeSessionsRequest(all_others=True)).ended == 1
    assert len(first.sessions()) == 1
