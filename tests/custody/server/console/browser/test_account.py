"""Signing in, a new password by the mail's link, and the account's page, in a browser."""

from playwright.sync_api import expect

from tests.support.accounts import mailed_token


def test_the_link_of_a_reset_mail_fills_the_token_in(window):
    desk = window.desk
    page = window.page("/console/forgotten-password", person=None)
    window.judge(page, "forgotten-password")
    page.get_by_label("E-mail address").fill("admin@example.org")
    page.get_by_role("button", name="Mail a token").click()
    expect(page.get_by_role("status")).to_be_visible()
    token = mailed_token(desk.world)
    # From another page, as from a mail: on this one a link with a fragment loads nothing.
    page.goto("about:blank")
    page.goto(f"/console/reset-password#token={token}")
    expect(page.get_by_label("The token of the mail")).to_have_value(token)
    assert token not in page.url
    window.judge(page, "reset-password")
    page.get_by_label("New password", exact=True).fill("another password")
    page.get_by_label("New password, once more").fill("another password")
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_role("status")).to_contain_text("Your password is changed")


def test_a_passkey_that_is_not_given_is_asked_for_again_and_a_code_only_where_one_is_taken(window):
    page = window.page("/console/account")
    for kind, words in (("get", "Try again, or give a code."), ("create", "Try again.")):
        page.evaluate(
            "kind => document.querySelector('main').insertAdjacentHTML('beforeend', "
            "`<form><button type=button data-passkey=${kind} data-options='{}'>${kind}</button>"
            "<span></span></form>`)",
            kind,
        )
        button = page.get_by_role("button", name=kind, exact=True)
        button.click()
        expect(button.locator("+ span")).to_have_text(f"The browser gave no passkey. {words}")
