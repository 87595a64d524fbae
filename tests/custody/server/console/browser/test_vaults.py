"""A vault in a browser: made, looked at and paid, with what axe finds at both widths."""

from playwright.sync_api import expect

from tests.custody.server.console.browser.conftest import heading


def test_a_treasurer_makes_a_vault_and_sees_what_comes(window):
    desk = window.desk
    page = window.page(f"{window.here}/vaults/new")
    page.get_by_label("Name").fill("Payroll")
    page.get_by_label("alice@example.org").check()
    page.get_by_label("bob@example.org").check()
    page.get_by_label("At most, fees included").fill("0.5")
    page.get_by_role("button", name="Look at it").click()
    heading(page, "Make a vault?")
    window.judge(page, "vault-new-review")
    page.get_by_role("button", name="Make the vault").click()
    heading(page, "Payroll")
    page.get_by_role("link", name="Receive").click()
    page.get_by_label("Amount (BTC)").fill("0.25")
    page.get_by_role("button", name="Put it into the link").click()
    expect(page.get_by_text("Asks for")).to_be_visible()
    window.judge(page, "vault-receive")
    (address,) = [one["receive_address"] for one in desk.wallets() if one["name"] == "Payroll"]
    page.get_by_role("link", name="Payroll").click()
    heading(page, "Payroll")
    # The page follows by itself.
    desk.deposit(150_000_000, to=address)
    expect(page.locator(".balance")).to_contain_text("150,000,000 sats")
    window.judge(page, "vault")
