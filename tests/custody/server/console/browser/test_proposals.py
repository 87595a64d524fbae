"""A payment in a browser: typed, reviewed, proposed, and followed to its confirmation while others sign."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from playwright.sync_api import Page, Route, expect

from firmware_bridge import Family
from signerd.core.states import State
from tests.conformance.rigs import make_rig, short_folder
from tests.support.custody import CAFE, SHOP, Desk, ok
from tests.support.daemons import approve, until_state
from tests.support.platform import PASSWORD
from tests.support.real_signer import pin, register, signer
from tests.support.replacing import finished, made

URL = "https://localhost"


def heading(page: Page, words: str) -> None:
    expect(page.get_by_role("heading", level=1, name=words)).to_be_visible()


@pytest.fixture
def public_url():
    return URL


@contextmanager
def signers_of(desk: Desk) -> Iterator[Callable[[str], None]]:
    """Two signers' machines, each with a device behind real HWI; what makes the next one approve."""
    with short_folder() as name, start_blocking_portal() as portal, ExitStack() as stack:
        machines = []
        for who, family in (("alice", Family.TREZOR), ("bob", Family.LEDGER)):
            rig = make_rig(family, Path(name), seed=desk.devices[who])
            machine = signer(desk, who, rig, Path(name))
            machines.append(stack.enter_context(portal.wrap_async_context_manager(machine)))
            portal.call(register, machines[-1])
            portal.call(pin, machines[-1], desk.vault["id"])

        def approve_next(psbt_id: str) -> None:
            machine = machines.pop(0)
            portal.call(until_state, machine, psbt_id, State.WAITING_PERSON)
            portal.call(approve, machine, psbt_id)
            portal.call(until_state, machine, psbt_id, State.SUBMITTED, State.BROADCAST)

        yield approve_next


def invited(desk: Desk, email: str) -> str:
    """The path of the link in the mail that invites a treasurer."""
    here = {"workspace_id": desk.workspace_id}
    role = {"name": "Treasurer", "description": "", "permissions": ["MANAGE_WORKSPACE", "VIEW_BALANCES"]}
    limit = {"transaction_limit": "1", "cycle_period": "M", "cycle_day": 1}
    made = ok(desk.admin.post("/api/v1/create-role", {**here, **role, **limit}))
    place = {"workspace_context": desk.workspace_id, "org_id": 1, "role_id": made["RoleId"]}
    ok(desk.admin.post("/api/v1/invite-to-workspace", {**place, "invited_email": email}))
    desk.world.deliver_mail()
    (path,) = re.findall(rf"{URL}(\S+)", desk.world.mail.sent[-1].text)
    return path


def joins(window, email: str) -> Page:
    """From the mail to the workspace: an account, the code of a second mail, and the invitation."""
    page = window.page(invited(window.desk, email), person=None)
    heading(page, "Register")
    window.judge(page, "register-invited")
    expect(page.get_by_label("E-mail address")).to_have_value(email)
    for label, text in (("First name", "Tess"), ("Password", PASSWORD)):
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_label("Password, once more").fill(PASSWORD)
    page.get_by_role("button", name="Register").click()
    heading(page, "Your code")
    page.get_by_label("Code").fill(window.desk.world.mail.newest_code())
    page.get_by_role("button", name="Sign in").click()
    heading(page, "You are invited")
    window.judge(page, "invitation")
    page.get_by_role("button", name="Accept").click()
    heading(page, "Main")
    return page


def test_from_the_mail_of_an_invitation_to_a_confirmed_payment(window):
    desk = window.desk
    # How htmx notes that a name is no longer asked for: the next letter's question took its place.
    window.forgiven = tuple(
        f"console: htmx:{event}, [object HTMLDataListElement]" for event in ("sendAbort", "afterRequest")
    )
    desk.deposit(1_000_000, 700_000)
    book = {"workspace_id": desk.workspace_id, "name": "Cafe", "address": CAFE}
    ok(desk.admin.post("/api/v1/add-whitelist-address", book))
    page = joins(window, "tess@example.org")
    page.get_by_role("link", name="New payment").click()
    heading(page, "New payment")
    window.judge(page, "payment-new")
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
    with signers_of(desk) as approve_next:
        approve_next(psbt_id)
        expect(page.get_by_text("1 of 2, waits for")).to_be_visible()
        approve_next(psbt_id)
    desk.settle()
    expect(page.get_by_role("heading", name="On its way")).to_be_visible()
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
    page.get_by_role("button", name="Choose the coins").click()
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


def test_a_bump_a_cancel_and_a_way_back(window):
    desk = window.desk
    desk.deposit(1_000_000, 700_000)
    sent = made(desk.propose(50_000, description="Rent", fee_rate="2"))
    finished(desk, sent)
    page = window.page(f"{window.here}/proposals/{sent}")
    window.follow(page.get_by_role("link", name="Pay a higher fee"))
    window.judge(page, "payment-bump")
    page.get_by_label("New rate, in sat/vB").fill("9")
    window.follow(page.get_by_role("button", name="Look at it"))
    window.judge(page, "payment-bump-review")
    page.get_by_role("button", name="Propose the new version").click()
    desk.world.clock.advance(seconds=1)
    expect(page.get_by_role("link", name="an earlier version")).to_be_visible()
    page.get_by_role("link", name="Cancel").click()
    page.get_by_label("Why").fill("Paid twice")
    window.judge(page, "payment-cancel")
    window.follow(page.get_by_role("button", name="Go on"))
    window.judge(page, "payment-cancel-review")
    page.get_by_role("button", name="Cancel it").click()
    expect(page.get_by_role("status")).to_contain_text("It is cancelled.")
    window.judge(page, "payment-cancelled")
