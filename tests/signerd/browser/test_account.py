"""Signing in to the platform on the page, with the one-time code, and out again."""

from playwright.sync_api import expect

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
    expect(page.locator("#account .problem")).to_contain_text("sign-in-failed")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    code = page.get_by_label("One-time code")
    expect(code).to_be_focused()
    code.fill("000000")
    page.keyboard.press("Enter")
    expect(page.locator("#account .problem")).to_contain_text("sign-in-failed")
    code.fill(OTP)
    page.keyboard.press("Enter")
    expect(page.locator("#account")).to_contain_text(f"Signed in as {EMAIL}")
    expect(other.locator("#account")).to_contain_text(f"Signed in as {EMAIL}")
    assert PASSWORD not in page.content()
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("#account")).to_contain_text("Nobody is signed in")
    expect(other.locator("#account")).to_contain_text("Nobody is signed in")
