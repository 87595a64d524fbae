"""A payment in a browser: typed, reviewed, proposed, and followed to its confirmation while others sign."""

from playwright.sync_api import Route, expect

from custody.server.store.models import ProposalRow
from tests.custody.server.console.browser.conftest import heading
from tests.support.custody import CAFE, SHOP, ok
from tests.support.replacing import made


def test_a_payment_from_its_form_to_its_confirmation(window):
    desk = window.desk
    # How htmx notes that a name is no longer asked for: the next letter's question took its place.
    window.forgiven = tuple(
        f"console: htmx:{event}, [object HTMLDataListElement]" for event in ("sendAbort", "afterRequest")
    )
    desk.deposit(1_000_000, 700_000)
    desk.enter("Cafe", CAFE)
    page = window.page(f"{window.here}/proposals/new")
    page.get_by_label("To", exact=True).fill(SHOP)
    page.get_by_label("Amount", exact=True).fill("0.001")
    page.get_by_role("button", name="Another recipient").click()
    page.get_by_label("To", exact=True).nth(1).fill("caf")
    expect(page.locator("#book option")).to_have_attribute("value", "Cafe")
    page.get_by_label("To", exact=True).nth(1).fill("Cafe")
    page.get_by_label("Amount", exact=True).nth(1).fill("9")
    page.get_by_label("Description").fill("Invoice 7")
    page.get_by_label("Description").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Send less")
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
    # Back leads to a form, and sends nothing again.
    page.go_back()
    heading(page, "New payment")
    page.go_forward()
    heading(page, "Invoice 7")
    desk.approve("alice", psbt_id)
    expect(page.get_by_text("1 of 2", exact=True)).to_be_visible()
    desk.approve("bob", psbt_id)
    desk.settle()
    desk.mine(6)
    expect(page.get_by_role("heading", name="Confirmed")).to_be_visible()
    window.judge(page, "payment-confirmed")


def test_the_selected_vault_pays_without_a_further_press(window):
    desk = window.desk
    savings = ok(desk.create_vault("Savings"))
    desk.deposit(1_000_000)
    desk.deposit(700_000, to=savings["address"])
    page = window.page(f"{window.here}/proposals/new?vault={desk.vault['id']}")
    page.get_by_label("To", exact=True).fill(SHOP)
    page.get_by_label("Amount", exact=True).fill("0.001")
    window.follow(page.get_by_role("button", name="Choose the coins"))
    page.get_by_role("checkbox", name="received at").check()
    page.get_by_label("Pay from").select_option("Savings")
    expect(page.get_by_role("heading", name="Savings")).to_be_visible()
    expect(page.get_by_role("checkbox", name="received at")).not_to_be_checked()
    expect(page.get_by_label("To", exact=True)).to_have_value(SHOP)
    window.judge(page, "payment-vault")
    page.get_by_label("Pay from").select_option("Treasury")
    page.get_by_role("button", name="Look at it").click()
    heading(page, "Review the payment")
    expect(page.get_by_role("rowheader", name="Back to Treasury")).to_be_visible()
    page.get_by_role("button", name="Propose it").click()
    heading(page, "Payment of")
    assert desk.proposal(page.url.rpartition("/")[2])["vault_id"] == desk.vault["id"]


def test_small_coins_become_one_by_the_keyboard_and_two_presses_make_one_proposal(window):
    desk = window.desk
    desk.deposit(*range(3_000, 10_000, 500))
    page = window.page(f"{window.here}/vaults/{desk.vault['id']}/coins")
    page.get_by_role("link", name="Make one coin of the small ones").press("Enter")
    heading(page, "Small coins of Treasury to one")
    page.get_by_label("Fee rate").fill("1")
    page.get_by_label("Fee rate").press("Enter")
    heading(page, "Make one coin of 14")
    window.judge(page, "consolidation-review")
    window.follow(page.get_by_role("button", name="Back"))
    expect(page.get_by_label("Fee rate")).to_have_value("1")
    expect(page.get_by_role("heading", name="What it saves now")).to_be_visible()
    window.judge(page, "consolidation")
    page.get_by_role("button", name="Look at it").click()
    page.get_by_role("button", name="Propose it").dblclick()
    heading(page, "Makes one coin of the 14 smallest")
    page.go_back()
    heading(page, "Small coins of Treasury to one")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert len(desk.rows(ProposalRow)) == 1


def test_the_list_follows_and_a_signer_is_told_where_to_decide(window):
    desk = window.desk
    desk.deposit(1_000_000, 700_000)
    page = window.page(f"{window.here}/proposals", person="alice")
    expect(page.get_by_text("No proposal is here.")).to_be_visible()
    # What happens while the part is loaded is not missed: the page asks for it once more.
    held: list[Route] = []
    page.route("**/parts/proposals*", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/changed*"), page.expect_request("**/parts/proposals*"):
        psbt_id = made(desk.propose(50_000, description="Rent"))
    # The event of a request comes before its handler's turn.
    while not held:
        page.evaluate("document.readyState")
    as_it_was = held[0].fetch()
    # The next wait begins once the page has heard of the second one.
    with page.expect_request("**/changed*"):
        made(desk.propose(60_000, description="Light"))
    held[0].fulfill(response=as_it_was)
    page.get_by_role("link", name="Light").wait_for()
    window.judge(page, "proposals")
    page.get_by_role("link", name="Rent").click()
    expect(page.get_by_text(f"signerd approve {psbt_id[:8]}")).to_be_visible()
    page.goto(f"{window.here}/proposals/new")
    expect(page.get_by_role("alert")).to_contain_text("Your role lacks the permission: Propose payments")
