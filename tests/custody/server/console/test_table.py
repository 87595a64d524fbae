"""The steps of a form: review, second factor, refusal that keeps the input, a single effect."""

import re

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse

from custody.schemas.users import MAIL_SETTINGS
from custody.server.console.reviews import Review
from custody.server.console.table import Row, route
from custody.server.errors import Invalid
from tests.support.accounts import another
from tests.support.asgi import asgi_client
from tests.support.console import Visitor
from tests.support.custody import ok
from tests.support.platform import PASSWORD

FORM = "/console/account/name"


class Deed:
    """A row whose form acts once, and what it did, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def act(self, page):
        if page.form.one("first_name") == "nobody":
            raise Invalid.at("/first_name", "This is no name.")
        self.done.append(page.form.one("first_name"))
        return PlainTextResponse("<html></html>")

    def review(self, page):
        return Review("Is this right?", (("First name", page.form.one("first_name")),), "Yes")


@pytest.fixture
def deed(desk):
    """The application with the form's row in the place of its own."""
    deed = Deed()
    row = Row("POST", "/account/name", deed.act, again=_account, review=deed.review, steps_up=True)
    mounted = desk.world.platform.asgi.router.routes[-1]
    assert isinstance(mounted.app, Starlette)
    mounted.app.router.routes.insert(0, route(row))
    return deed


def _account(page):
    nothing = {"sessions": [], "keys": [], "passkeys": None, "providers": [], "second_factor": "none"}
    return page.render("account/account.html", asks_code=False, mails=page.read(MAIL_SETTINGS), **nothing)


def test_what_was_typed_is_shown_back_and_acts_after_the_password_which_counts_for_ten_minutes(
    desk, deed, browse
):
    person = browse("admin").open("/console/account")
    person.send(FORM, first_name="<Ada>")
    assert ("Is this right?" in person.words, "<Ada>" in person.words, deed.done) == (True, True, [])
    person.send(FORM, button="back")
    assert "Is this right?" not in person.words
    assert ("first_name", "<Ada>") in person.form(FORM).fields
    person.send(FORM).send(FORM, step_password="wrong", status=422)
    assert ("The password is wrong." in person.words, deed.done) == (True, [])
    person.send(FORM, step_password=PASSWORD)
    assert deed.done == ["<Ada>"]
    person.open("/console/account").send(FORM, first_name="Bea")
    assert "step_password" not in person.html
    person.send(FORM)
    desk.world.clock.advance(minutes=11)
    person.open("/console/account").send(FORM, first_name="Cleo")
    assert "step_password" in person.html
    person.send(FORM)
    assert deed.done == ["<Ada>", "Bea"]


def test_a_mailed_code_proves_and_does_not_sign_in(desk, deed, browse):
    ok(desk.admin.post("/auth/two-factor", {"method": "email", "password": PASSWORD}))
    with asgi_client(desk.world.platform.asgi) as http:
        person = Visitor(http).sign_in("admin@example.org")
        person.send("/console/sign-in/code", otp=desk.world.mail.newest_code())
        # The sign-in's own code is a proof for as long as any.
        desk.world.clock.advance(minutes=11)
        person.open("/console/account").send(FORM, first_name="Ada")
        code, sent = desk.world.mail.newest_code(), len(desk.world.mail.sent)
        # Of two pages that ask, each says which mail it means.
        (time,) = re.findall(r"mailed to you, of (\S+) UTC", person.words)
        mail = desk.world.mail.sent[-1].text
        assert f"a change on the console is {code}\n\nIt was asked for at {time} UTC" in mail
        (token,) = [value for name, value in person.form(FORM).fields if name == "step_token"]
        answer = person.http.post("/auth/otp-validate", json={"token_2fa": token, "otp": code})
        assert answer.status_code == 401
        person.send(FORM, step_code=another(code), status=422)
        assert len(desk.world.mail.sent) == sent
        told = person.page.by_id("step_code-problem").words.strip()
        assert told == "The code is wrong, was used, or has expired."
        person.send(FORM, step_code=code)
        assert deed.done == ["Ada"]
        # One page asks for the code and for the password, which no page holds.
        desk.world.clock.advance(minutes=11)
        change = "/console/account/second-factor"
        person.open("/console/account").send(change, method="none")
        code = desk.world.mail.newest_code()
        person.send(change, password=PASSWORD, step_code=another(code), status=422)
        assert PASSWORD not in person.html
        person.send(change, password=PASSWORD, step_code=code)
        assert "Your second factor is changed." in person.words


def test_a_refused_form_keeps_what_was_typed_and_says_why_beside_it(deed, browse):
    person = browse("admin").open("/console/account")
    person.send(FORM, first_name="nobody").send(FORM, step_password=PASSWORD, status=422)
    assert ("first_name", "nobody") in person.form(FORM).fields
    assert person.page.by_id("first_name-problem").words.strip() == "This is no name."
    assert deed.done == []
