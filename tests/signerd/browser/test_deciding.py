"""Proposals in a person's browser: read, approved, declined, refused, changed meanwhile."""

import asyncio
import re
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from custody.schemas.proposals import ProposalStatus, TroubleKind
from firmware_bridge import RefusedByPerson
from signerd.core.states import State
from signerd.core.values import Trouble
from tests.support.browser import NARROW, WIDE, draw, show, until_true
from tests.support.desk import snapshot_of, spend

FOCUSED = """(() => {
    const at = document.activeElement;
    return at === document.body ? ["", "none"] : [at.innerText || "", getComputedStyle(at).outlineStyle];
})()"""


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def hold_the_device(desk) -> asyncio.Event:
    """It asks its person, and waits for the event."""
    desk.outer.bridge.gate = gate = asyncio.Event()
    return gate


def stage(page: Page) -> str:
    return page.locator(".stages [aria-current=step]").inner_text()


def confirm_everywhere(desk, psbt_id="p-1"):
    """The platform tells step by step what became of it."""
    proposals = desk.outer.platform.proposals
    txid = proposals[psbt_id].txid_expected
    for status, confirmations, state in (
        (ProposalStatus.BROADCASTING, 0, State.BROADCAST),
        (ProposalStatus.CONFIRMED, 1, State.CONFIRMED),
    ):
        told = {"status": status, "txid": txid, "confirmations": confirmations, "collected": 2}
        proposals[psbt_id] = replace(proposals[psbt_id], trouble=None, **told)
        desk.until_state(psbt_id, state)
        yield state


def test_l17_a_key_that_is_held_is_one_press(desk):
    page = desk.page("/proposals/p-1")
    page.locator("summary.danger").press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Why")).to_be_visible()
    expect(page.locator("summary.danger")).to_have_text("Back", use_inner_text=True)
    # Another key between them, and the next press is meant.
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    button = page.get_by_role("button", name="Decline this proposal")
    expect(button).to_be_focused()
    expect(button).to_be_enabled()
    expect(page.locator("#approve")).to_be_hidden()
    page.keyboard.press("Enter")
    desk.until_state("p-1", State.DECLINED)
    assert desk.outer.bridge.asked == 0


def test_l17_what_a_refreshed_part_moves_is_not_pressed_at_its_new_place_at_once(desk):
    page = desk.page("/proposals/p-1")
    approve = page.get_by_role("button", name="Approve")
    expect(approve).to_be_enabled()
    box = approve.bounding_box()
    page.clock.set_fixed_time(2_000_000_000_000)
    # What stands above it grows while the person presses.
    page.evaluate("document.querySelector('.decide').style.bottom = '200px'")
    page.evaluate("document.querySelector('main').append(document.createElement('p'))")
    page.mouse.click(box["x"] + 5, box["y"] + 5 - 200)
    expect(approve).to_have_attribute("aria-disabled", "true")
    assert desk.outer.bridge.asked == 0
    # It is said, and not lost in silence; a double click that acted says nothing.
    expect(page.locator(".lost")).to_have_text(
        "Nothing was done: this came here a moment ago. Press it again."
    )
    page.clock.set_fixed_time(2_000_000_001_100)
    page.mouse.click(box["x"] + 5, box["y"] + 5 - 200)
    desk.daemon.until(lambda: desk.outer.bridge.asked == 1)
    page.mouse.click(box["x"] + 5, box["y"] + 5 - 200, click_count=2)
    expect(page.locator(".lost")).to_have_text("")


def test_what_holds_a_payment_is_read_before_anything_else(desk):
    """It spends a coin that a signed payment spends."""
    page = desk.page("/proposals/p-1", viewport=NARROW)
    page.get_by_role("button", name="Approve").click()
    desk.until_state("p-1", State.SUBMITTED)
    desk.outer.platform.proposals["p-2"] = snapshot_of(spend(fee=2_000), "p-2")
    desk.until_state("p-2", State.WAITING_PERSON)
    show(page, f"{desk.origin}/proposals/p-2")
    (why,) = [
        check.sentence
        for check in desk.daemon.on_loop(desk.daemon.service.proposal, "p-2").checks
        if check.name == "conflict"
    ]
    warning = page.locator("#standing .notice", has_text=why[:40])
    expect(warning).to_be_in_viewport()
    draw(page, "proposal-held", ("light",))


NOTHING_LIES_OVER = """(() => {
    const it = document.querySelector("%s"), box = it?.getBoundingClientRect();
    return it?.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
})()"""


def expect_the_decision_in_view(page: Page) -> None:
    """At both ends of the page, on a telephone and on a screen: nobody looks for the way to say no, and
    whoever approves has the whole address before them.
    """
    for size in (NARROW, WIDE):
        page.set_viewport_size(size)
        for place in (0, 100_000):
            page.evaluate(f"window.scrollTo(0, {place})")
            payee, approve = page.locator(".decide .address"), page.get_by_role("button", name="Approve on")
            for decision in (approve, payee, page.locator("summary.danger")):
                expect(decision).to_be_in_viewport(ratio=1)
            for decision in ("#approve button", "summary.danger"):
                until_true(page, NOTHING_LIES_OVER % decision)


def test_approved_it_is_followed_to_the_block_without_a_reload(desk):
    page = desk.page("/")
    page.get_by_role("link", name="Proposal p-1").click()
    title = desk.daemon.on_loop(desk.daemon.service.proposal, "p-1").title
    assert title.startswith("Pay 0.0005 BTC to ")
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect_the_decision_in_view(page)
    desk.outer.bridge.failures.append(RefusedByPerson())
    page.get_by_role("button", name="Approve on Regtest").click()
    expect(page.locator("#standing")).to_contain_text("refused on the device")
    gate = hold_the_device(desk)
    page.get_by_role("button", name="Approve on Regtest").click()
    expect(page.locator(".device-now")).to_be_visible()
    view = desk.daemon.on_loop(desk.daemon.service.proposal, "p-1")
    (paid,) = view.money.payments
    total = f"{(paid.amount_sats + view.money.fee_sats) / 1e8:.8f}".rstrip("0")
    screens = [squeezed(text) for text in page.locator(".screens li").all_inner_texts()]
    assert [paid.on_screen in screen for screen in screens] == [True, False]
    assert f"Total{total}TEST" in screens[1]
    # The refusal is over, and the device's words stand in one place.
    expect(page.get_by_text("refused on the device")).to_have_count(0)
    expect(page.get_by_text("Confirm the transaction.")).to_have_count(1)
    expect(page.locator("#standing")).to_contain_text("Confirm the transaction.")
    assert "Your device signs" in stage(page)
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    # The form has gone: who sent it is led to what came of it.
    expect(page.locator("#standing-title")).to_be_focused()
    page.evaluate("window.same = true")
    desk.daemon.on_loop(gate.set)
    desk.until_state("p-1", State.SUBMITTED)
    expect(page.locator(".stages [aria-current=step]")).to_contain_text("Others sign")
    for state in confirm_everywhere(desk):
        now = {State.BROADCAST: "In a block", State.CONFIRMED: None}[state]
        if now:
            expect(page.locator(".stages [aria-current=step]")).to_contain_text(now)
            proposals = desk.outer.platform.proposals
            slow = Trouble(TroubleKind.SLOW, "bump", "It pays 1 sat/vB.", "2026-01-02T03:04:05Z")
            proposals["p-1"] = replace(proposals["p-1"], trouble=slow)
            expect(page.locator("#standing")).to_contain_text("It has waited for hours")
    expect(page.locator("#standing")).not_to_contain_text("It has waited for hours")
    expect(page.locator("#standing-title")).to_have_text("Confirmed")
    expect(page.locator(".stages .done")).to_have_count(6)
    main = page.locator("main").inner_text()
    assert "refused" not in main
    assert "Confirm the transaction." not in main
    expect(page.locator(".decide")).to_have_count(0)
    assert page.evaluate("window.same")
    assert len(desk.outer.platform.signatures("p-1")) == 1


def test_with_the_keyboard_alone_from_the_list_to_the_signature(desk):
    page = desk.page("/")

    def tab_to(words: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            # Read at once: the page may be drawn anew between two questions, and the body then has the focus.
            words_there, outline = page.evaluate(FOCUSED)
            if words in words_there:
                assert outline != "none", "what has the focus shows it"
                return
        raise AssertionError(f"no Tab leads to {words}")

    tab_to("Skip to the content")
    page.keyboard.press("Enter")
    tab_to("proposal p-1")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{desk.origin}/proposals/p-1")
    expect(page.get_by_role("button", name="Approve on Regtest")).to_be_enabled()
    tab_to("Approve on Regtest")
    page.keyboard.press("Enter")
    desk.until_state("p-1", State.SUBMITTED)
    expect(page.locator("#standing-title")).to_be_focused()
    assert len(desk.outer.platform.signatures("p-1")) == 1


def test_s24_a_key_that_was_meant_for_what_stood_there_decides_nothing_about_what_stands_there_now(desk):
    page = desk.page("/proposals/p-1")
    page.get_by_role("button", name="Approve on Regtest").focus()
    desk.outer.platform.proposals["p-2"] = snapshot_of(spend(fee=1_500), "p-2")
    expect(page.get_by_role("alert").filter(has_text="It changed since you looked")).to_be_visible()
    expect(page.locator("[class*=htmx-]")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator("body")).to_be_focused()
    assert desk.outer.bridge.asked == 0


@pytest.mark.parametrize("acted", [True, False], ids=["signerd acted", "it did not"])
def test_an_answer_that_is_lost_is_not_called_a_press_that_was_not_sent(desk, acted):
    desk.forgiven = ("",)
    page = desk.page("/proposals/p-1")

    def lose(route):
        if acted:
            digest = desk.daemon.on_loop(desk.daemon.service.proposal, "p-1").digest
            desk.daemon.on_loop(desk.daemon.service.approve, "p-1", digest, frozenset())
        route.abort("connectionreset")

    page.route("**/approve", lose)
    page.get_by_role("button", name="Approve").click()
    if acted:
        expect(page.locator("#standing-title")).to_have_text("The platform has your signature")
        expect(page.locator("main")).not_to_contain_text("No answer came")
    else:
        expect(page.locator("#approve .problem")).to_contain_text("signerd may have received it")
    expect(page.locator("#connection")).to_be_hidden()


def test_what_happens_leaves_alone_what_a_person_fills_in(desk):
    page = desk.page("/proposals/p-1")
    page.locator("summary.danger").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Why").fill("half a sent")
    with page.expect_response(lambda answer: "/standing" in answer.url):
        desk.daemon.feed("p-9", "attention", "Something happened.")
    expect(page.locator("#heard")).to_have_text("Something happened.")
    page.evaluate(
        "document.querySelector('#review').setAttribute('hx-get', '/proposals/p-1/review?shown=0&seen=0')"
    )
    page.evaluate("htmx.process(document.querySelector('#review'))")
    desk.daemon.feed("p-1", "info", "It is made anew.")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Why")).to_have_value("half a sent")
    expect(page.get_by_label("Why")).to_be_visible()
    # On another page a line says which proposal it is about.
    show(page, f"{desk.origin}/devices")
    desk.daemon.feed("p-1", "progress", "Look at your device.")
    expect(page.locator("#heard")).to_contain_text("Look at your device. Pay 0.0005 BTC to")
    page.locator("#heard a").press("Enter")
    expect(page.get_by_text("Proposal p-1")).to_be_visible()
