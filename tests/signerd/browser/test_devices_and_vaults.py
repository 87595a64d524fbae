"""A device is plugged in and unlocked, its keys are registered, a vault is pinned: as a person does it."""

import asyncio
import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from firmware_bridge import DeviceState, Question
from signerd.core.addresses import address_on_screen
from tests.support.desk import VAULT, VAULT_ID
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import EMAIL, PASSWORD
from tests.support.served import make_outer

# Nine digits: four stand in some random id by chance.
PIN = "137913791"


def begin(page: Page) -> None:
    page.get_by_role("link", name="Unlock").click()
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("heading", name="Its PIN")).to_be_visible()


def come_to(reached: Locator) -> None:
    """Moves the focus there, as a user who presses Tab:
    the page accepts none before its scripts have loaded.
    """
    expect(reached).to_be_visible()
    expect(reached.page.locator("#main")).not_to_have_attribute("inert", "")
    reached.focus()
    expect(reached).to_be_focused()


@pytest.fixture
def locked_desk(make_desk, tmp_path):
    """Its device asks for a PIN."""
    outer = make_outer(tmp_path)
    outer.bridge = FakeBridge(state=DeviceState.LOCKED, secrets={Question.PIN: PIN})
    return make_desk(outer=outer)


def test_l10_a_pin_by_the_mouse_stays_nowhere_and_a_wrong_one_is_told(locked_desk):
    page = locked_desk.page("/devices")
    addresses = []
    page.on("request", lambda request: addresses.append(request.url))
    begin(page)
    for place in ("top left", "centre"):
        page.get_by_role("button", name=f"position {place}").click()
    expect(page.get_by_text("2 places typed")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("0 places typed")).to_be_visible()
    page.get_by_role("button", name="position top right").click()
    page.get_by_role("button", name="Unlock").click()
    expect(page.get_by_role("alert")).to_contain_text("was not unlocked")
    page.get_by_role("button", name="Try again").click()
    places = {"1": "bottom left", "3": "bottom right", "7": "top left", "9": "top right"}
    for place in map(places.get, PIN):
        page.get_by_role("button", name=f"position {place}").click()
    page.get_by_role("button", name="Unlock").click()
    expect(page.get_by_role("heading", name="Unlocked")).to_be_visible()
    expect(page.get_by_text("This is the key that is registered here.")).to_be_visible()
    assert not [url for url in addresses if PIN in url]
    page.go_back()
    page.go_forward()
    stored = page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
    assert PIN not in page.content() + stored


def test_nothing_can_be_pressed_before_the_scripts_are_there(locked_desk):
    """A form that is sent without them goes to a page of its own, which refuses it."""
    page = locked_desk.page("/devices")
    held: list[Route] = []
    page.route("**/static/htmx.min.js", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks the function
    place = page.get_by_role("link", name="Unlock").get_attribute("href")
    page.goto(f"{locked_desk.origin}{place}", wait_until="commit")
    begin_at = page.locator("form[id^=start-] button").bounding_box()
    page.mouse.click(begin_at["x"] + 5, begin_at["y"] + 5)
    expect(page.locator("#main")).to_have_attribute("inert", "")
    assert page.url == f"{locked_desk.origin}{place}"
    held[0].continue_()
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("heading", name="Its PIN")).to_be_visible()


def test_a_pin_by_the_keyboard_alone(locked_desk):
    page = locked_desk.page("/devices")
    come_to(page.get_by_role("link", name="Unlock"))
    page.keyboard.press("Enter")
    come_to(page.get_by_role("button", name="Begin"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Its PIN")).to_be_focused()
    # The first place of the matrix is next; the number pad types all of them from there.
    page.keyboard.press("Tab")
    page.keyboard.type(PIN[:2] + "5")
    page.keyboard.press("Backspace")
    page.keyboard.type(PIN[2:])
    expect(page.get_by_text("9 places typed")).to_be_visible()
    come_to(page.get_by_label("Typed places"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Unlocked")).to_be_focused()


def test_keys_are_registered_and_a_vault_is_pinned_by_the_code_that_another_signer_reads(make_desk):
    """From an empty state folder, step by step."""
    desk = make_desk(prepared=False, sign_in=False)
    page = desk.page("/")
    page.get_by_role("link", name="Go on with the next step").click()
    now = page.locator("[aria-current=step]")
    expect(page.get_by_role("heading", name="Sign in to the platform")).to_have_count(1)
    page.get_by_label("E-mail").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    # A device is ready: the step after it is next.
    expect(now).to_contain_text("2. Register its public keys")
    page.get_by_role("link", name="Register its keys").click()
    page.get_by_role("button", name="Read its keys").click()
    expect(page.get_by_role("heading", name="2. Compare, and confirm")).to_be_focused()
    page.get_by_role("button", name="This is my device: register").click()
    expect(page.get_by_role("heading", name="Registered")).to_be_focused()
    expect(page.locator(".said")).to_be_hidden()
    page.get_by_role("link", name="The set-up's next step").click()
    expect(now).to_contain_text("3. Pin your vault")
    page.get_by_role("link", name="Compare and pin").click()
    expect(page.locator(".verification")).to_have_text(VAULT.verification_code)
    on_screen = address_on_screen(VAULT.address(0, 0), VAULT.network)
    expect(page.locator(".first .address").first).to_have_text(on_screen)
    expect(page.locator(".first .note")).to_contain_text(VAULT.address(0, 0))
    page.get_by_label("or its text").fill(VAULT.descriptor)
    page.get_by_role("button", name="Compare it with the record").click()
    expect(page.get_by_text("and the platform's record says the same")).to_be_visible()
    expect(page.get_by_role("heading", name="1. Compare it with the other signers")).to_be_focused()
    page.get_by_label("Verification code").fill("AAAA-BBBB")
    page.get_by_role("button", name="Pin on Regtest").click()
    expect(page.locator("#pin .problem [data-code=wrong-verification-code]")).to_be_visible()
    page.get_by_label("Verification code").fill(VAULT.verification_code.replace("-", " ").lower())
    page.get_by_role("button", name="Pin on Regtest").click()
    expect(page.get_by_role("heading", name="Pinned")).to_be_focused()
    assert desk.outer.bridge.shown == [VAULT.address(0, 0)]
    expect(page.get_by_role("button", name="The device shows another address")).to_be_hidden()
    page.goto(f"{desk.origin}/setup")
    expect(page.get_by_text("signerd is set up.")).to_be_visible()
    receive_to_the_vault(desk, page)
    # A new vault appears by itself, as the page promises, once the daemon has heard of it.
    page.get_by_role("link", name="Vaults", exact=True).click()
    expect(page.get_by_role("heading", name="Treasury", exact=True)).to_be_visible()
    desk.outer.platform.bad_vaults.append(
        {**desk.outer.platform._vault(), "id": "vault-2", "name": "Reserve"}
    )
    follower = desk.daemon.service.follower
    desk.daemon.on_loop(follower.read_vaults, follower.workspaces[0])
    expect(page.get_by_text("The platform now calls it “Reserve”.")).to_be_visible()


def test_s13_another_address_is_offered_while_the_device_shows_one_in_every_tab(make_desk):
    desk = make_desk()
    bridge, devices = desk.outer.bridge, desk.daemon.service.bridge_devices
    page, other = (desk.page(f"/vaults/{VAULT_ID}/receive") for _ in range(2))
    offers = [tab.get_by_role("button", name="The device shows another address") for tab in (page, other)]
    bridge.gate = asyncio.Event()
    come_to(page.get_by_role("button", name="Show on device"))
    # A key that is struck twice asks once.
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    for offer in offers:
        expect(offer).to_be_visible()
    assert len(bridge.shown) == 1
    expect(page.locator(".device-now")).to_contain_text("Receive address 0 of the vault 'Treasury'")
    come_to(offers[0])
    expect(offers[0]).to_be_enabled()
    page.keyboard.press("Enter")
    for offer in offers:
        expect(offer).to_be_hidden()
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_role("alert")).to_contain_text("you say that the device shows another address")
    assert devices.on_screen == {}


def receive_to_the_vault(desk, page: Page) -> None:
    """By the platform's word two addresses are used: the third is told, as this machine derives it."""
    fresh = VAULT.address(0, 2)
    # Before the vault's page is opened: it reads its balance once.
    desk.outer.platform.next_address, desk.outer.platform.confirmed_sats = fresh, 1_234
    page.locator(".setup").get_by_role("link", name="Treasury").click()
    expect(page.locator(".balance")).to_contain_text("1,234 sats")
    expect(page.locator("#payments")).to_contain_text("Pay 0.0005 BTC to")
    page.get_by_role("link", name="Receive", exact=True).click()
    expect(page.get_by_role("heading", name="Address 2, not used yet")).to_be_visible()
    expect(page.locator(".first .address").first).to_have_text(address_on_screen(fresh, VAULT.network))
    expect(page.get_by_role("img", name=f"QR code of the address {fresh}")).to_be_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the address").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == fresh
    page.get_by_role("button", name="Show on device").click()
    expect(page.get_by_text("Your device shows the same address.")).to_be_visible()
    assert desk.outer.bridge.shown[-1] == fresh
    # The address was compared: nothing asks for it any more.
    expect(page.get_by_role("button", name="The device shows another address")).to_be_hidden()
    # What the device said moves the link while it is drawn: a key finds it all the same.
    page.get_by_role("link", name="All addresses").press("Enter")
    expect(page.locator(".addresses .badge")).to_have_count(10)
    marks = page.locator(".addresses .badge").all_inner_texts()
    assert marks[:4] == ["used, or given out", "used, or given out", "the next one", "not used"]
    page.get_by_role("button", name=re.compile(r"address 1$")).click()
    expect(page.get_by_text("Your device shows the same address.")).to_be_visible()
    assert desk.outer.bridge.shown[-1] == VAULT.address(0, 1)
