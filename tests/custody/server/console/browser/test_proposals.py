"""A payment in a browser: typed, looked at, proposed, and followed to its confirmation while others sign."""

from playwright.sync_api import Page, expect

from tests.support.custody import CAFE, SHOP, ok
from tests.support.replacing import finished, made


def heading(page: Page, words: str) -> None:
    expect(page.get_by_role("heading", level=1, name=words)).to_be_visible()


def test_a_payment_from_the_overview_to_its_confirmation(window):
    desk = window.desk
    desk.deposit(1_000_000, 700_000)
    book = {"workspace_id": desk.workspace_id, "name": "Cafe", "address": CAFE}
    ok(desk.admin.post("/api/v1/add-whitelist-address", book))
    page = window.page(f"{window.here}/")
    page.get_by_role("link", name="New payment").click()
    heading(page, "New payment")
    window.judge(page, "payment-new")
    page.get_by_label("To", exact=True).fill(SHOP)
    page.get_by_label("Amount", exact=True).fill("0.001")
    page.get_by_role("button", name="Another recipient").click()
    page.get_by_label("To", exact=True).nth(1).fill("Cafe")
    page.get_by_label("Amount", exact=True).nth(1).fill("9")
    page.get_by_label("Description").fill("Invoice 7")
    page.get_by_role("button", name="Look at it").click()
    expect(page.get_by_role("alert")).to_contain_text("At most")
    window.judge(page, "payment-refused")
    page.get_by_label("Amount", exact=True).nth(1).fill("0.004")
    page.get_by_role("button", name="Look at it").click()
    heading(page, "Review the payment")
    expect(page.get_by_text("in the address book")).to_be_visible()
    window.judge(page, "payment-review")
    page.get_by_role("button", name="Propose it").click()
    heading(page, "Invoice 7")
    window.judge(page, "payment-pending")
    psbt_id = page.url.rpartition("/")[2]
    desk.approve("alice", psbt_id)
    expect(page.get_by_text("1 of 2, waits for")).to_be_visible()
    desk.approve("bob", psbt_id)
    desk.settle()
    expect(page.get_by_role("heading", name="On its way")).to_be_visible()
    desk.mine(6)
    expect(page.get_by_role("heading", name="Confirmed")).to_be_visible()
    window.judge(page, "payment-confirmed")


def test_the_list_follows_and_a_signer_is_told_where_to_decide(window):
    desk = window.desk
    desk.deposit(1_000_000, 700_000)
    page = window.page(f"{window.here}/proposals", person="alice")
    expect(page.get_by_text("No proposal is here.")).to_be_visible()
    psbt_id = made(desk.propose(50_000, description="Rent"))
    page.get_by_role("link", name="Rent").wait_for()
    window.judge(page, "proposals")
    page.get_by_role("link", name="Rent").click()
    expect(page.get_by_text(f"signerd approve {psbt_id[:8]}")).to_be_visible()
    page.goto(f"{window.here}/proposals/new")
    expect(page.get_by_role("alert")).to_contain_text("Only those who manage the workspace")


def test_a_bump_a_cancel_and_a_way_back(window):
    desk = window.desk
    desk.deposit(1_000_000, 700_000)
    sent = made(desk.propose(50_000, description="Rent", fee_rate="2"))
    finished(desk, sent)
    page = window.page(f"{window.here}/proposals/{sent}")
    page.get_by_role("link", name="Pay a higher fee").click()
    window.judge(page, "payment-bump")
    page.get_by_label("New rate, in sat/vB").fill("9")
    page.get_by_role("button", name="Look at it").click()
    window.judge(page, "payment-bump-review")
    page.get_by_role("button", name="Propose the new version").click()
    desk.world.clock.advance(seconds=1)
    expect(page.get_by_role("link", name="an earlier version")).to_be_visible()
    page.get_by_role("link", name="Cancel").click()
    page.get_by_label("Why").fill("Paid twice")
    window.judge(page, "payment-cancel")
    page.get_by_role("button", name="Go on").click()
    window.judge(page, "payment-cancel-review")
    page.get_by_role("button", name="Cancel it").click()
    expect(page.get_by_role("status")).to_contain_text("It is cancelled.")
    window.judge(page, "payment-cancelled")
