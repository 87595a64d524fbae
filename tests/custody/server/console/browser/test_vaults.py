"""Vaults, tokens and keys in a browser: made, bounded, looked at, with what axe finds at both widths."""

from playwright.sync_api import Page, expect

from tests.support.custody import ok
from tests.support.token_desk import TokenDesk


def heading(page: Page, words: str) -> None:
    expect(page.get_by_role("heading", level=1, name=words)).to_be_visible()


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


def test_a_token_from_its_form_to_a_transfer(window):
    desk, tokens = window.desk, TokenDesk(window.desk)
    tokens.fund(200_000, 200_000)
    page = window.page(f"{window.here}/tokens/new")
    window.judge(page, "token-new")
    for label, text in (
        ("Name", "Gold of the House"),
        ("Ticker", "GOLD"),
        ("How many exist at first", "1,000"),
        ("Never more than", "5000"),
    ):
        page.get_by_label(label).fill(text)
    page.get_by_role("button", name="Look at it").click()
    heading(page, "Make GOLD")
    window.judge(page, "token-new-review")
    page.get_by_role("button", name="Propose the token").click()
    heading(page, "Gold of the House")
    (waiting,) = ok(desk.admin.get("/api/v1/psbt", workspace_id=desk.workspace_id, status="PENDING"))
    tokens.finish(waiting["psbt_id"])
    (record,) = ok(desk.admin.get("/api/v1/workspace-contracts", workspace_id=desk.workspace_id))
    # The page follows by itself.
    expect(page.get_by_text("It is not started yet")).to_be_visible()
    tokens.done(record["contract_uid"], "init")
    page.get_by_role("link", name="Transfer").click()
    window.judge(page, "token-transfer")
    page.goto(f"{window.here}/tokens/{record['contract_uid']}")
    window.judge(page, "token")
    page.goto(f"{window.here}/tokens?vault={desk.vault['id']}")
    window.judge(page, "tokens")
