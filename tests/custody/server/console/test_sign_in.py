"""Signing in to the console: with a code, wrong, again, out; the pages that mails lead to."""

import pytest

from custody.server.mail.jobs import Template
from custody.server.rules.credentials import OTP_TRIES
from tests.support.accounts import Phone, another, mailed_token
from tests.support.asgi import asgi_client
from tests.support.console import SAME_SITE, Visitor
from tests.support.custody import ok
from tests.support.platform import PASSWORD

pytestmark = pytest.mark.usefixtures("desk")


@pytest.fixture
def stranger(desk):
    with asgi_client(desk.world.platform.asgi) as http:
        yield Visitor(http)


def test_a_page_leads_to_the_sign_in_and_back(desk, stranger):
    # A link of another site brings no cookie (SameSite): nobody is signed in by it, and nobody out.
    answer = stranger.http.get(f"/console/w/{desk.workspace_id}/")
    assert (answer.status_code, answer.headers.get("set-cookie")) == (303, None)
    stranger.open(f"/console/w/{desk.workspace_id}/")
    assert stranger.url == "/console/sign-in"
    stranger.send("/console/sign-in", email="admin@example.org", password=PASSWORD)
    assert stranger.url == f"/console/w/{desk.workspace_id}/"
    assert "Treasury" in stranger.words


def test_a_sign_in_that_is_over_says_so_and_leads_to_a_new_one(desk, stranger):
    ok(desk.admin.post("/auth/two-factor", {"method": "email", "password": PASSWORD}))
    page = f"/console/w/{desk.workspace_id}/"
    stranger.open(page).send("/console/sign-in", email="admin@example.org", password=PASSWORD)
    right, last = desk.world.mail.newest_code(), dict(stranger.form("/console/sign-in/code").fields)
    for _ in range(OTP_TRIES):
        stranger.send("/console/sign-in/code", otp=another(right), status=401)
    assert "This sign-in is over: too many wrong codes were given." in stranger.words
    assert "/console/sign-in/code" not in stranger.html
    assert stranger.link("Sign in again") == f"/console/sign-in?account=yes&next={page}"
    # By the browser's way back, where the field still is.
    late = stranger.http.post("/console/sign-in/code", data=last | {"otp": right}, headers=SAME_SITE)
    assert (late.status_code, "This sign-in is over" in late.text) == (401, True)


def test_a_session_is_renewed_by_two_tabs_at_once_until_it_is_idle_or_signed_out(desk, browse):
    person = browse("admin")
    desk.world.clock.advance(minutes=16)
    before = dict(person.http.cookies)
    assert person.open("/console/").url == "/console/"
    # The other tab asked with what the browser held a moment ago.
    person.http.cookies.clear()
    person.http.cookies.update(before)
    assert person.open("/console/account").url == "/console/account"
    desk.world.clock.advance(hours=13)
    assert person.open("/console/").url == "/console/sign-in"
    person.http.cookies.clear()
    person.sign_in("admin@example.org").open("/console/account")
    cookies = dict(person.http.cookies)
    person.send("/console/sign-out")
    assert person.url == "/console/sign-in"
    person.http.cookies.clear()
    person.http.cookies.update(cookies)
    assert person.open("/console/").url == "/console/sign-in"


def test_the_account_page_says_which_second_factor_is_in_force(desk, browse):
    person = browse("admin").open("/console/account")
    person.says(
        "Your second factor: none, the password alone.",
        "signs you out everywhere else, also in programs such as signerd",
    )
    ok(desk.admin.post("/auth/two-factor", {"method": "email", "password": PASSWORD}))
    with asgi_client(desk.world.platform.asgi) as http:
        person = Visitor(http).sign_in("admin@example.org")
        person.send("/console/sign-in/code", otp=desk.world.mail.newest_code()).open("/console/account")
        mailed = len(desk.world.mail.sent)
        # The sign-in's code is a proof: the password is asked for once, and no other code.
        person.send("/console/account/authenticator", password=PASSWORD)
        assert len(desk.world.mail.sent) == mailed
        phone = Phone(desk.world, person.page.all("span", **{"class": "mono"})[0].words)
        confirm = "/console/account/authenticator/confirm"
        person.send(confirm, code=another(phone.code), status=422)
        # A mistyped code is typed again, with the secret that the phone has by now.
        typed = person.html
        person.send(confirm, code=phone.code)
        assert "Your recovery codes" in person.words
        shown, person.html = person.html, typed
        person.send(confirm, code=phone.code, status=409)
        assert "Your authenticator is on. Its recovery codes were shown once" in person.words, "loaded again"
        person.html = shown
        person.open(person.link("I have kept them"))
        assert person.url == f"/console/w/{desk.workspace_id}/"
        person.open("/console/account")
        assert "Your second factor: an authenticator." in person.words
        assert "signs you out" not in person.words
        assert "Set up an authenticator" not in person.words


def test_a_reset_token_comes_behind_the_hash_and_changes_the_password(desk, stranger):
    forgotten, anew = "/console/forgotten-password", "/console/reset-password"
    stranger.open(forgotten).send(forgotten, email="admin@example.org")
    token = mailed_token(desk.world)
    assert stranger.http.get("/reset-password").headers["location"] == anew
    stranger.open(anew).send(anew, token=token, new_password="quite another", again="otherwise", status=422)
    assert "The two passwords differ." in stranger.words
    stranger.send(anew, token=token, new_password="quite another", again="quite another")
    assert stranger.sign_in("admin@example.org", "quite another").url == "/console/"


def test_p78_a_form_of_another_site_is_refused_and_our_own_is_taken(browse):
    person = browse("admin").open("/console/account")
    sent = dict(person.form("/console/sign-out").fields)
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
        {},
    ):
        for path, fields in (("sign-out", sent), ("sign-in", {"email": "a@b"})):
            answer = person.http.post(f"/console/{path}", data=fields, headers=headers)
            assert answer.status_code == 403, (path, headers)
    for headers in ({"Origin": "http://127.0.0.1"}, SAME_SITE | {"Origin": "null"}):
        person.sign_in("admin@example.org").open("/console/account")
        sent = dict(person.form("/console/sign-out").fields)
        assert person.http.post("/console/sign-out", data=sent, headers=headers).status_code == 303


def test_a_missing_path_and_every_link_of_a_mail_lead_to_a_page(browse, stranger):
    stranger.open("/console/nowhere", 404)
    person = browse("admin")
    assert "There is no such page." in person.open("/console/nowhere", 404).words
    assert "You are in no such workspace." in person.open("/console/w/999/", 404).words
    links = {each.value.link.partition("#")[0] for each in Template if each.value.link is not None}
    assert links == {"/reset-password", "/invitations/{invite_id}"}
    assert "Choose a new password" in person.open("/reset-password").words
    assert "No such invitation waits for you." in person.open("/invitations/none", 404).words


def test_a_register_form_signs_in_and_tells_no_stranger_whose_an_address_is(desk, stranger):
    path = "/console/register"
    stranger.open(path).send(path, email="new@example.org", password=PASSWORD, again=PASSWORD)
    stranger.send("/console/sign-in/code", otp=desk.world.mail.newest_code())
    assert stranger.url == "/console/"
    other = "another battery staple"
    stranger.open(path).send(path, email="admin@example.org", password=other, again=other)
    assert stranger.url == "/console/sign-in"
    assert "A mail to this address says what to do." in stranger.words
