"""The administration in a browser: a member invited, addresses imported, a webhook made; each page judged."""

from playwright.sync_api import expect

from tests.support.custody import CAFE, SHOP
from tests.support.platform import PASSWORD


def prove(page, action):
    page.get_by_label("Your password, once more").fill(PASSWORD)
    page.get_by_role("button", name=action, exact=True).click()


def test_an_administrator_invites_makes_a_role_and_imports_addresses(window):
    page = window.page(f"{window.here}/members")
    page.get_by_label("E-mail address").fill("new@example.org")
    window.follow(page.get_by_role("button", name="Invite"))
    window.judge(page, "members-review")
    prove(page, "Invite")
    expect(page.get_by_role("status")).to_contain_text("The invitation is on its way.")
    # A person takes longer: a press at the place of the last one, within a second, does nothing (L17).
    page.evaluate("sessionStorage.removeItem('pressed')")
    page.goto(f"{window.here}/addresses/import")
    page.get_by_label("Or the lines of the CSV").fill(f"Shop,{SHOP}\nCafé,{CAFE}\nWrong,bcrt1q")
    window.follow(page.get_by_role("button", name="See what it changes"))
    window.judge(page, "addresses-import-review")
    window.follow(page.get_by_role("button", name="Import"))
    window.judge(page, "addresses-imported")
    page.goto(f"{window.here}/webhooks/new")
    page.get_by_label("Address of the program").fill("https://hooks.example.org/custody")
    page.get_by_label("All events").check()
    page.get_by_role("button", name="Make the webhook").click()
    window.follow(page.get_by_role("button", name="Make the webhook"))
    window.judge(page, "webhook-secret")
    page.get_by_role("link", name="I have kept it").click()
    window.follow(page.get_by_role("button", name="Send a test"))
    window.judge(page, "webhook")
