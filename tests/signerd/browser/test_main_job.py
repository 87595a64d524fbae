"""The whole job on one page: a real platform, a virtual Trezor with a PIN behind real HWI,
and a person with a mouse.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from firmware_bridge import Bridge, Family
from multisig import Network
from signerd.app import DaemonDependencies, open_daemon
from signerd.journal import StateFolder
from tests.conformance.rigs import Rig, make_rig, short_folder
from tests.support.browser import PATIENCE_MS, WIDE, Complaints, origin_of, seat
from tests.support.custody import Desk, ok
from tests.support.daemons import MemoryStore, make_config
from tests.support.platform import PASSWORD, open_world, register_key, seed
from tests.support.served import Served, served

PIN = "1379"
PAID = 1_234_567
PLACES = {
    "7": "top left",
    "8": "top middle",
    "9": "top right",
    "4": "middle left",
    "5": "centre",
    "6": "middle right",
    "1": "bottom left",
    "2": "bottom middle",
    "3": "bottom right",
}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Desk]:
    """Alice has no key yet; Carol has one."""
    with open_world(tmp_path / "platform", broadcast_wait_seconds=0) as world:
        chain = world.platform.background.open_chain()
        try:
            placed = world.organisation("Acme", "admin@example.org")
            ids = {
                name: world.member(placed.workspace_id, f"{name}@example.org").user_id
                for name in ("alice", "bob", "carol")
            }
            carol = world.as_user("carol@example.org")
            ok(register_key(carol, seed(3)))
            devices = {"alice": seed(1), "carol": seed(3)}
            admin = world.as_user("admin@example.org")
            yield Desk(world, chain, placed.workspace_id, admin, {"carol": carol}, ids, devices)
        finally:
            chain.close()


@asynccontextmanager
async def daemon_beside(desk: Desk, rig: Rig, state: Path) -> AsyncIterator[object]:
    """Signed out, with the device's place known and nothing in it."""
    endpoint = await rig.plug_in()
    await rig.unplug()
    transport = httpx.ASGITransport(desk.world.platform.asgi, client=("192.0.2.9", 50_000))
    with ExitStack() as stack:
        stack.enter_context(StateFolder.hold(state))
        async with Bridge(network=Network.REGTEST, endpoints=[endpoint], usb=False) as bridge:
            outside = DaemonDependencies(transport=transport, bridge=bridge)
            async with open_daemon(make_config(), state, MemoryStore(), outside) as daemon:
                try:
                    yield daemon
                finally:
                    await rig.unplug()


PRESSES = 5


def enter_pin(page: Page, rig: Rig, digits: str) -> None:
    """As the person reads the places from the device's screen."""
    rows = rig.device._access.matrix
    assert rows is not None
    typed = page.locator("[data-count]")
    for _ in range(PRESSES):
        for digit in digits:
            place = str(rows.index(digit) + 1)
            page.get_by_role("button", name=f"position {PLACES[place]}").click()
        if typed.inner_text() == f"{len(digits)} places typed":
            break
        # The page was drawn anew meanwhile: a person sees fewer places than they pressed, and begins again.
        page.get_by_role("button", name="Clear").click()
    page.get_by_role("button", name="Unlock").click()


def sign_in(page: Page) -> None:
    page.get_by_role("link", name="Settings").click()
    page.get_by_label("E-mail").fill("alice@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#account")).to_contain_text("Signed in as alice@example.org")


def test_from_signing_in_to_the_block(browser, platform):
    with short_folder() as name:
        folder = Path(name)
        state = folder / "alice"
        state.mkdir(mode=0o700)
        rig = make_rig(Family.TREZOR, folder, seed=platform.devices["alice"], pin=PIN)
        with served(daemon_beside(platform, rig, state), state, port=0) as daemon:
            context = browser.new_context(viewport=WIDE, storage_state=seat(daemon))
            try:
                context.set_default_timeout(PATIENCE_MS)
                complaints = Complaints(origin_of(daemon))
                complaints.watch(context)
                page = context.new_page()
                page.goto(origin_of(daemon))
                the_job(page, daemon, platform, rig)
                assert complaints.said == []
            finally:
                context.close()


def the_job(page: Page, daemon: Served, platform: Desk, rig: Rig) -> None:
    sign_in(page)
    plug_in_and_register(page, daemon, rig)
    platform.vault = ok(
        platform.create_vault(signers=[platform.user_ids[name] for name in ("alice", "carol")])
    )
    platform.deposit(50_000_000)
    psbt_id = ok(platform.propose(PAID))["psbt_id"]
    pin_the_vault(page, platform)

    page.get_by_role("link", name="Proposals", exact=True).click()
    page.get_by_role("link", name=f"Proposal {psbt_id}").click()
    expect(page.locator("table.shares tr.pay .sats")).to_have_text(f"{PAID:,} sats")
    page.get_by_role("button", name="Approve on Regtest").click()
    now = page.locator(".stages [aria-current=step]")
    expect(now).to_contain_text("Others sign")
    expect(page.locator(".signatures")).to_contain_text("1 of 2")
    platform.approve("carol", psbt_id)
    platform.settle()
    expect(now).to_contain_text("In a block")
    platform.chain.mine(1)
    platform.settle()
    expect(page.locator("#standing-title")).to_have_text("Confirmed")


def plug_in_and_register(page: Page, daemon: Served, rig: Rig) -> None:
    page.get_by_role("link", name="Devices").click()
    expect(page.get_by_text("No device is connected.")).to_be_visible()
    daemon.on_loop(rig.plug_in)
    page.get_by_role("link", name="Unlock").click()
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("heading", name="Its PIN")).to_be_visible()
    enter_pin(page, rig, "5555")
    expect(page.get_by_role("alert")).to_contain_text("was not unlocked")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="Its PIN")).to_be_visible()
    enter_pin(page, rig, PIN)
    expect(page.get_by_role("heading", name="Unlocked")).to_be_visible()
    page.get_by_role("link", name="To the devices").click()
    page.get_by_role("link", name="Register its keys").click()
    page.get_by_role("button", name="Read its keys").click()
    page.get_by_role("button", name="This is my device: register").click()
    expect(page.get_by_role("heading", name="Registered")).to_be_visible()


def pin_the_vault(page: Page, platform: Desk) -> None:
    page.get_by_role("link", name="To the vaults").click()
    # It comes by itself, with the first payment from it.
    page.get_by_role("link", name="Compare and pin").click()
    page.get_by_label("Verification code").fill(platform.policy.verification_code)
    page.get_by_role("button", name="Pin on Regtest").click()
    expect(page.get_by_role("heading", name="Pinned")).to_be_visible()
