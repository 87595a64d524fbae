"""The administration in a browser: addresses imported, a webhook made; each page judged."""

from tests.support.custody import CAFE, SHOP
from tests.support.platform import PASSWORD


def test_an_administrator_imports_addresses_and_makes_a_webhook(window):
    page = window.page(f"{window.here}/addresses/import")
    page.get_by_label("Or the lines of the CSV").fill(f"Shop,{SHOP}\nCafé,{CAFE}\nWrong,bcrt1q")
    window.follow(page.get_by_role("button", name="See what it changes"))
    window.judge(page, "addresses-import-review")
    page.get_by_label("Your password, once more").fill(PASSWORD)
    window.follow(page.get_by_role("button", name="Import"))
    window.judge(page, "addresses-imported")
    page.goto(f"{window.here}/webhooks/new")
    page.get_by_label("Address of the program").fill("https://hooks.example.org/custody")
    page.get_by_label("All events").check()
    page.get_by_role("button", name="Make the webhook").click()
    window.follow(page.get_by_role("button", name="Make the webhook"))
    window.judge(page, "webhook-secret")
