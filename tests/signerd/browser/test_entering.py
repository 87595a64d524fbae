"""Entering the page and leaving it, as a person does; signing in to the platform there, with the one-time
code, and out again.
"""

import pytest
from playwright.sync_api import Page, expect

from signerd.cli import apps
from signerd.core.states import State
from signerd.loopback.access.sessions import IDLE_SECONDS
from tests.support.browser import new_code, until_true
from tests.support.command import signerd
from tests.support.fake_platform import EMAIL, OTP, PASSWORD

LOST = "signerd was stopped, or this page was idle too long"


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


def test_l10_signerd_open_brings_the_person_in_and_leaves_no_secret_in_an_address(desk, runtime, monkeypatch):
    context = desk.open_browser(seated=False)
    page = context.new_page()
    addresses = []
    page.on("framenavigated", lambda frame: addresses.append(frame.url))

    def open_window(url: str) -> bool:
        page.goto(url, wait_until="commit")
        return True

    monkeypatch.setattr(apps.webbrowser, "open", open_window)
    signerd("open", state=desk.daemon.state)
    expect(page).to_have_url(f"{desk.origin}/")
    expect(page.get_by_role("heading", name="Proposals")).to_be_visible()
    assert context.cookies() == []
    secret = page.evaluate("localStorage.getItem('signerd-session')")
    assert len(secret) == 64
    assert not [url for url in addresses if secret in url or "code" in url]
    assert secret not in page.content()
    # Going back does not lead to the answer that had the secret in it.
    page.go_back()
    assert secret not in page.content()
    assert list(runtime.iterdir()) == []


def test_a_person_who_types_the_code_is_in_and_a_wrong_one_is_told(desk):
    page = desk.page(seated=False)
    expect(page.get_by_role("heading", name="This page is not open here")).to_be_visible()
    page.get_by_label("Code").fill("00000-00000")
    page.get_by_role("button", name="Enter").click()
    expect(page.get_by_role("alert")).to_contain_text("This code is wrong")
    # It is typed again where it was typed.
    expect(page.get_by_label("Code")).to_be_focused()
    page.get_by_label("Code").fill(new_code(desk.daemon).lower())
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Proposals")).to_be_visible()


def test_leaving_ends_the_session_in_every_window(desk):
    context = desk.open_browser()
    page, other = context.new_page(), context.new_page()
    other.goto(f"{desk.origin}/devices")
    page.goto(f"{desk.origin}/settings")
    page.get_by_role("button", name="Leave this page").click()
    expect(page.get_by_role("heading", name="This page is not open here")).to_be_visible()
    # The script removes the secret when the daemon has answered; the heading may stand there a moment before.
    until_true(page, "localStorage.length === 0")
    # What happens next tells the other window, too; it learns nothing of it.
    desk.daemon.feed("page", "attention", "for the person alone")
    expect(other.get_by_text(LOST)).to_be_visible()
    expect(other.get_by_text("for the person alone")).to_have_count(0)
    other.goto(f"{desk.origin}/proposals/p-1")
    expect(other.get_by_role("heading", name="This page is not open here")).to_be_visible()


def test_l13_a_session_that_is_over_shows_and_does_nothing_more(desk):
    page = desk.page("/proposals/p-1")
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()
    desk.clock.now += IDLE_SECONDS
    desk.daemon.feed("p-1", "attention", "for the person alone")
    expect(page.get_by_text(LOST)).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#approve")).to_contain_text(f"--state {desk.daemon.state} open")
    expect(page.get_by_text("for the person alone")).to_have_count(0)
    assert desk.outer.bridge.asked == 0


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
    rules = page.get_by_label("rules.toml")
    look = page.get_by_role("button", name="Check the change")
    rules.fill("[refuse]\nabove_per_transaction = 1")
    look.click()
    expect(page.locator(".problem")).to_contain_text("line 2: refuse.above_per_transaction: write an amount")
    rules.fill('[refuse]\nabove_per_transaction = "0.0001 BTC"')
    look.click()
    expect(page.get_by_role("heading", name="As strict as before")).to_be_visible()
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
    expect(
        page.get_by_text("This rule goes or gets weaker: refuse: more than 0.00010000 BTC")
    ).to_be_visible()
    page.get_by_role("button", name="Save rules.toml").click()
    desk.until_state("p-1", State.REFUSED)
    page.get_by_label("I have read this, and want it so").check()
    page.get_by_role("button", name="Save rules.toml").click()
    desk.until_state("p-1", State.WAITING_PERSON)
    page.get_by_role("link", name="To the settings").click()


def test_what_needs_attention_is_put_off_for_the_tab(desk):
    page = desk.page()
    notes = page.locator("details.attention")
    notes.locator("summary").press("Enter")
    notes.get_by_role("button", name="Not now").press("Enter")
    expect(notes).to_be_hidden()
    page.reload()
    expect(page.get_by_role("heading", name="Proposals")).to_be_visible()
    expect(notes).to_be_hidden()
    expect(desk.page().locator("details.attention")).to_be_visible()
