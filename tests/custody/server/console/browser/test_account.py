"""Signing in, a new password by the mail's link, and the account's page, in a browser."""

from playwright.sync_api import Page, expect

from tests.support.accounts import Phone, mailed_token
from tests.support.platform import PASSWORD


def heading(page: Page, words: str) -> None:
    expect(page.get_by_role("heading", level=1, name=words)).to_be_visible()


def test_a_person_signs_in_with_a_mailed_code(window):
    desk = window.desk
    assert desk.admin.post("/auth/two-factor", {"method": "email", "password": PASSWORD}).status_code == 200
    page = window.page(f"{window.here}/", person=None)
    heading(page, "Sign in")
    window.judge(page, "sign-in")
    page.get_by_label("E-mail address").fill("admin@example.org")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("The e-mail address or the password is wrong.")
    window.judge(page, "sign-in-refused")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    heading(page, "Your code")
    window.judge(page, "sign-in-code")
    page.get_by_label("Code").fill(desk.world.mail.newest_code())
    page.get_by_role("button", name="Sign in").click()
    heading(page, "Main")
    window.judge(page, "overview")


def test_the_link_of_a_reset_mail_fills_the_token_in(window):
    desk = window.desk
    page = window.page("/console/forgotten-password", person=None)
    window.judge(page, "forgotten-password")
    page.get_by_label("E-mail address").fill("admin@example.org")
    page.get_by_role("button", name="Mail a token").click()
    expect(page.get_by_role("status")).to_be_visible()
    token = mailed_token(desk.world)
    page.goto(f"/console/reset-password#token={token}")
    page.reload()
    expect(page.get_by_label("The token of the mail")).to_have_value(token)
    assert token not in page.url
    window.judge(page, "reset-password")
    page.get_by_label("New password", exact=True).fill("another password")
    page.get_by_label("New password, once more").fill("another password")
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_role("status")).to_contain_text("Your password is changed")


def test_the_account_is_changed_and_an_authenticator_set_up(window):
    page = window.page("/console/account")
    window.judge(page, "account")
    page.get_by_label("First name").fill("Ada")
    page.get_by_role("button", name="Change the name").click()
    expect(page.get_by_role("status")).to_contain_text("Your name is changed.")
    expect(page.get_by_label("First name")).to_have_value("Ada")
    page.locator("#authenticator-password").fill(PASSWORD)
    page.get_by_role("button", name="Set up an authenticator").click()
    heading(page, "Your authenticator")
    window.judge(page, "authenticator")
    phone = Phone(window.desk.world, page.locator("p .mono").inner_text())
    page.get_by_label("The code that it shows now").fill(phone.code)
    page.get_by_role("button", name="Confirm").click()
    heading(page, "Your recovery codes")
    window.judge(page, "recovery-codes")
    page.get_by_role("link", name="I have kept them").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_contain_text("You are signed out.")


def test_a_newcomer_registers_and_is_in_no_workspace_yet(window):
    page = window.page("/console/register", person=None)
    window.judge(page, "register")
    page.get_by_label("E-mail address").fill("new@example.org")
    page.get_by_label("First name").fill("New")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password, once more").fill(PASSWORD)
    page.get_by_role("button", name="Register").click()
    heading(page, "Your code")
    page.get_by_label("Code").fill(window.desk.world.mail.newest_code())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("You are in no workspace yet.")).to_be_visible()
    window.judge(page, "no-workspace")
    page.goto("/console/nowhere")
    heading(page, "Not done")
    window.judge(page, "nowhere")
