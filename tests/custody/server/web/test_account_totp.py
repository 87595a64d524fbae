"""Authenticators: enrolling, signing in with one, and what stands in for a lost one."""

import re
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.accounts import (
    CAROL,
    PASSWORD,
    Phone,
    Session,
    another,
    enrol,
    register,
    sign_in,
    told,
    validate,
)
from tests.support.platform import World


@pytest.fixture
def session(world: World, carol: str) -> Session:
    return sign_in(world)


@pytest.fixture
def phone(world: World, session: Session) -> Phone:
    enrolled = enrol(session)
    world.clock.advance(seconds=30)
    world.deliver_mail()
    world.mail.sent.clear()
    return enrolled


def waiting(world: World, email: str = CAROL) -> str:
    answer = world.login(email).json()
    assert answer["requires_2FA"] is True
    return answer["token_2fa"]


def choose(session: Session, password: str = PASSWORD, **wanted: object):
    return session.user.post("/auth/two-factor", {"password": password, **wanted})


class TestEnrolment:
    def test_counts_once_a_code_is_confirmed(self, world: World, session: Session) -> None:
        """P38: a code that went by mail is not good for an account that asks for another."""
        assert session.user.post("/auth/totp/confirm", {"code": "123456"}).status_code == 409
        assert choose(session, method="totp").status_code == 409, "it must be there"
        offered = session.user.post("/auth/totp/enrol", {"password": PASSWORD}).json()
        assert parse_qs(urlsplit(offered["otpauth_uri"]).query)["secret"] == [offered["secret"]]
        token, mailed = waiting(world), world.mail.newest_code()
        phone = Phone(world, offered["secret"])
        confirmed = session.user.post("/auth/totp/confirm", {"code": phone.code})
        codes = confirmed.json()["recovery_codes"]
        assert len(set(codes)) == 10
        assert all(re.fullmatch("[a-z2-7]{4}(-[a-z2-7]{4}){3}", code) for code in codes)
        assert world.login(CAROL).json()["two_factor_method"] == "totp"
        assert validate(world, token, mailed).status_code == 401
        world.deliver_mail()
        assert "an authenticator's codes" in world.mail.sent[-1].text

    def test_a_wrong_code_confirms_nothing(self, world: World, session: Session) -> None:
        phone = Phone(world, session.user.post("/auth/totp/enrol", {"password": PASSWORD}).json()["secret"])
        refused = session.user.post("/auth/totp/confirm", {"code": another(phone.code)})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/code")
        assert world.login(CAROL).json()["two_factor_method"] == "email"
        for _ in range(9):
            session.user.post("/auth/totp/confirm", {"code": another(phone.code)})
        assert session.user.post("/auth/totp/confirm", {"code": phone.code}).status_code == 429

    def test_another_authenticator_takes_the_place_of_the_first(
        self, world: World, session: Session, phone: Phone
    ) -> None:
        second = enrol(session)
        assert validate(world, waiting(world), phone.next_code()).status_code == 401
        assert validate(world, waiting(world), phone.recovery_codes[0]).status_code == 401
        assert validate(world, waiting(world), second.next_code()).status_code == 200


class TestSignIn:
    def test_takes_the_authenticators_code_and_mails_none(self, world: World, phone: Phone) -> None:
        answer = world.login(CAROL).json()
        assert (answer["token"], answer["two_factor_method"]) == ("", "totp")
        world.deliver_mail()
        assert world.mail.sent == []
        done = validate(world, answer["token_2fa"], f" {phone.code[:3]} {phone.code[3:]} ")
        assert done.status_code == 200
        assert done.json()["two_factor_method"] is None

    def test_no_step_is_taken_twice(self, world: World, session: Session, phone: Phone) -> None:
        """P38: reuse, over the shoulder, in another sign-in; nor is an older step after a newer one, or the
        code that confirmed.
        """
        older = phone.code
        newer = phone.next_code()
        assert validate(world, waiting(world), newer).status_code == 200
        assert validate(world, waiting(world), newer).status_code == 401
        assert validate(world, waiting(world), older).status_code == 401
        assert validate(world, waiting(world), phone.next_code()).status_code == 200
        second = enrol(session)
        assert validate(world, waiting(world), second.code).status_code == 401

    def test_a_code_taken_by_two_at_once_signs_one_in(self, world: World, phone: Phone) -> None:
        """P38."""
        tokens, code = [waiting(world) for _ in range(4)], phone.code
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda token: validate(world, token, code), tokens))
        assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]

    def test_the_owner_is_told_once_of_wrong_codes_over_many_sign_ins(
        self, world: World, phone: Phone
    ) -> None:
        """P38: four tries in each, so that no sign-in is locked, and a right code between them."""
        for number in range(12):
            if number % 4 == 0:
                token = waiting(world)
            if number == 4:
                assert validate(world, waiting(world), phone.code).status_code == 200
            assert validate(world, token, another(phone.code)).status_code == 401
            world.deliver_mail()
            assert len(world.mail.sent) == (number >= 4), number

    def test_is_bound_to_its_own_account(self, world: World, phone: Phone) -> None:
        """P38: a swapped token_2fa; another account's code, authenticator or recovery code opens nothing."""
        other = enrol(sign_in(world, register(world, "olga@example.org")))
        world.clock.advance(seconds=30)
        token = waiting(world)
        for code in (other.code, other.recovery_codes[0]):
            assert validate(world, token, code).status_code == 401
        assert validate(world, waiting(world, "olga@example.org"), phone.code).status_code == 401
        assert validate(world, token, phone.code).status_code == 200

    def test_refusals_read_alike(self, world: World, phone: Phone) -> None:
        used = phone.recovery_codes[0]
        assert validate(world, waiting(world), used).status_code == 200
        token = waiting(world)
        refusals = [told(validate(world, "x" * 43, phone.code))]
        wrong = (another(phone.code), used, "aaaa-bbbb-cccc-dddd")
        refusals += [told(validate(world, token, code)) for code in wrong]
        assert all(each == refusals[0] for each in refusals)


class TestRecovery:
    def test_a_code_stands_in_once(self, world: World, phone: Phone) -> None:
        first, second = phone.recovery_codes[:2]
        assert validate(world, waiting(world), first).status_code == 200
        assert validate(world, waiting(world), first).status_code == 401
        assert validate(world, waiting(world), second.upper().replace("-", " ")).status_code == 200
        world.deliver_mail()
        assert [mail.subject for mail in world.mail.sent] == ["A recovery code was used"] * 2
        assert "8 are left" in world.mail.sent[-1].text

    def test_is_all_that_is_left_where_the_file_of_secrets_is_lost(self, world: World, phone: Phone) -> None:
        world.platform.services.tools.secrets._path.unlink()
        assert validate(world, waiting(world), phone.code).status_code == 401
        assert validate(world, waiting(world), phone.recovery_codes[0]).status_code == 200


class TestChoice:
    def test_an_authenticator_is_kept_while_another_method_is_asked_for(
        self, world: World, session: Session, phone: Phone
    ) -> None:
        assert choose(session, method="email").json() == {"success": True, "enabled": True, "method": "email"}
        assert world.login(CAROL).json()["two_factor_method"] == "email"
        assert choose(session, method="none").json() == {"success": True, "enabled": False, "method": "none"}
        assert world.login(CAROL).json()["requires_2FA"] is False
        assert choose(session, method="totp").json() == {"success": True, "enabled": True, "method": "totp"}
        assert validate(world, waiting(world), phone.code).status_code == 200
        world.deliver_mail()
        assert {mail.subject for mail in world.mail.sent} >= {"Your second factor was changed"}
