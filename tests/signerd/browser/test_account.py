"""Signing in to the platform on the page, with the one-time code, and out again."""

from playwright.sync_api import Page, expect

from signerd.core.states import State
from tests.support.fake_platform import EMAIL, OTP, PASSWORD


def test_signed_in_with_the_code_and_out_in_every_window(make_desk):
    desk = make_desk(sign_in=False)
    desk.outer.platform.two_factor = True
    context = desk.open_browser()
    page, other = context.new_page(), context.new_page()
    other.goto(f"{desk.origin}/settings")
    page.goto(f"{desk.origin}/settings")
    page.get_by_label("E-mail").fill(EMAIL)
    page.get_by_label("Password").fill("not this one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#account .problem [data-code=sign-in-failed]")).to_be_visible()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    code = page.get_by_label("One-time code")
    expect(code).to_be_focused()
    code.fill("000000")
    page.keyboard.press("Enter")
    expect(page.locator("#account .problem [data-code=sign-in-failed]")).to_be_visible()
    code.fill(OTP)
    page.keyboard.press("Enter")
    expect(page.locator("#account")).to_contain_text(f"Signed in as {EMAIL}")
    expect(other.locator("#account")).to_contain_text(f"Signed in as {EMAIL}")
    assert PASSWORD not in page.content()
    change_the_rules(desk, page)
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("#account")).to_contain_text("You are not signed in")
    expect(other.locator("#account")).to_contain_text("You are not signed in")


def change_the_rules(desk, page: Page) -> None:
    """A mistake is told with its line; what is loosened is asked again in words; each counts at once."""
    desk.until_state("p-1", State.WAITING_PERSON)
    page.get_by_role("link", name="Change limits and rules").click()
    rules, look = page.get_by_label("rules.toml"), page.get_by_role("button", name="See what that changes")
    rules.fill("[refuse]\nabove_per_transaction = 1")
    look.click()
    expect(page.locator(".problem")).to_contain_text("line 2: refuse.above_per_transaction: write an amount")
    rules.fill('[refuse]\nabove_per_transaction = "0.0001 BTC"')
    look.click()
    expect(page.get_by_role("heading", name="Nothing is let pass")).to_be_visible()
    page.get_by_role("button", name="Save rules.toml").click()
    expect(page.get_by_role("heading", name="Saved")).to_be_focused()
    desk.until_state("p-1", State.REFUSED)
    page.get_by_role("link", name="To the settings").click()
    expect(page.get_by_text("refuse: more than 0.00010000 BTC")).to_be_visible()
    page.get_by_role("link", name="Change limits and rules").click()
    rules.fill("")
    # It comes to where "Save" was pressed a moment ago, and takes no press for a second (L17).
    look.scroll_into_view_if_needed()
    look.click()
    expect(page.get_by_text("It holds no more as it did: refuse: more than 0.00010000 BTC")).to_be_visible()
    page.get_by_role("button", name="Save rules.toml").click()
    desk.until_state("p-1", State.REFUSED)
    page.get_by_label("I have read this, and want it so").check()
    page.get_by_role("button", name="Save rules.toml").click()
    desk.until_state("p-1", State.WAITING_PERSON)
    page.get_by_role("link", name="To the settings").click()
