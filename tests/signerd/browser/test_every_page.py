"""Each page as it is drawn: axe finds nothing against it, the browser complains of nothing,
and nothing is wider than a telephone.

Where ``SIGNERD_SCREENSHOTS`` names a folder, every page is drawn into it, at both widths, light and dark.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from playwright.sync_api import Page, expect

from custody.schemas.proposals import TroubleKind
from firmware_bridge import DeviceState, Question
from multisig import RECEIVE, ChangeTo, Sats, TxOut, build_psbt
from signerd.core.states import State
from signerd.core.tokens import PublishedToken
from signerd.core.values import Trouble
from tests.support.browser import WIDE, judge, show
from tests.support.desk import VAULT, VAULT_ID, snapshot_of, spend
from tests.support.examples import drawn
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import URL, FakePlatform, movement
from tests.support.hasty import WIDTHS, Hasty
from tests.support.tokens import GOLD, HELD, call, gold, published, token_psbt, token_snapshot, told_call
from tests.support.wallets import foreign_script, fund, with_output

# What the desk's daemon was started with.
CONFIG = f"""network = "regtest"
[platform]
url = "{URL}"
long_poll_seconds = 0
[devices]
usb = false
[checks]
lowered = ["fee-share"]
"""
LONG = "https://" + "a" * 60 + ".example"


@dataclass(frozen=True)
class Shown:
    """A page as it stands: ``ready`` brings it there once it was opened."""

    name: str
    path: str
    ready: Callable[[Page], object] = lambda page: None
    seated: bool = True


def asks_pin(page: Page) -> None:
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("heading", name="Its PIN")).to_be_visible()


def read_keys(page: Page) -> None:
    page.get_by_role("button", name="Read its keys").click()
    expect(page.get_by_role("heading", name="2. Compare, and confirm")).to_be_visible()


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details:not(.decline)').forEach(one => one.open = true)")


def declining(page: Page) -> None:
    unfold(page)
    page.locator("summary.danger").click()
    expect(page.get_by_label("Why")).to_be_visible()


def asks_again(page: Page) -> None:
    """What is changed lets more pass than before."""
    text = page.get_by_label("config.toml")
    text.fill(text.input_value() + "\n[limits]\nwarn_fee_percent = 20\n")
    page.get_by_role("button", name="Check the change").first.click()
    expect(page.get_by_label("I have read this, and want it so")).to_be_visible()


def at_device(page: Page) -> None:
    expect(page.locator(".device-now")).to_be_visible()
    unfold(page)


def shows_address(page: Page) -> None:
    page.get_by_role("button", name="Show on device").click()
    expect(page.get_by_role("button", name="The device shows another address")).to_be_visible()


def show_codes(page: Page) -> None:
    page.get_by_role("button", name="Export on").click()
    expect(page.locator(".codes img:not([hidden])")).to_be_visible()


def is_read(page: Page) -> None:
    expect(page.get_by_text("Whole.")).to_be_visible()


PAGES = (
    Shown("enter", "/", seated=False),
    Shown("proposals", "/"),
    Shown("proposals-ended", "/?ended=1"),
    Shown("proposal", "/proposals/p-1", unfold),
    Shown("proposal-refused", "/proposals/p-2", declining),
    Shown("proposal-many", "/proposals/p-3", unfold),
    Shown("proposal-deployment", "/proposals/t-1", unfold),
    Shown("proposal-call", "/proposals/t-2", unfold),
    Shown("proposal-at-the-device", "/proposals/p-4", at_device),
    Shown("proposal-without-a-cable", "/proposals/p-5/airgap", show_codes),
    Shown("devices", "/devices"),
    Shown("device-without-a-cable", "/airgap/register", unfold),
    Shown("device-register", "/devices/{device}/register", read_keys),
    Shown("vaults", "/vaults"),
    Shown("vault", f"/vaults/{VAULT_ID}", unfold),
    Shown("vault-pin", f"/vaults/{VAULT_ID}/pin", unfold),
    Shown("movements", f"/vaults/{VAULT_ID}/movements"),
    Shown("receive", f"/vaults/{VAULT_ID}/receive"),
    Shown("addresses", f"/vaults/{VAULT_ID}/addresses"),
    Shown("tokens", f"/vaults/{VAULT_ID}/tokens"),
    Shown("profile", "/profile/addresses"),
    Shown("apps", "/apps"),
    Shown("history", "/history", is_read),
    Shown("settings", "/settings"),
    Shown("settings-edit", "/settings/edit", asks_again),
    Shown("help", "/help"),
    Shown("setup", "/setup"),
    Shown("nowhere", "/nowhere"),
    Shown("receive-at-the-device", f"/vaults/{VAULT_ID}/receive", shows_address),
    Shown("device-unlock", "/devices/{device}/unlock", asks_pin),
)


def many(psbt_id: str):
    """Seven payments, one of dust's size, from five coins."""
    coins = [fund(VAULT, 40_000_000 * (index + 1), index=index, salt=9) for index in range(5)]
    paid = (123_456_789, 98_765_432, 5_000_000, 700_000, 60_000, 5_000, 1_000)
    back = ChangeTo(Sats(600_000_000 - sum(paid) - 2_000), 1, 9)
    scripts = (bytes.fromhex("0014") + bytes([n]) * 20 for n in range(len(paid)))
    outputs = [*(TxOut(Sats(amount), script) for amount, script in zip(paid, scripts, strict=True)), back]
    return snapshot_of(build_psbt(VAULT, coins, outputs, 0), psbt_id, description="Wages " * 30)


def show_tokens(platform: FakePlatform) -> None:
    """A deployment with a listed address from the start, a transfer of another token, holdings and calls."""
    listed = (VAULT.script_pubkey(RECEIVE, 0), foreign_script("a customer"))
    shares = gold(
        name="Shares of the House", ticker="SHARE", whitelist_enabled=True, whitelist=tuple(sorted(listed))
    )
    platform.published |= {1: published(GOLD), 2: PublishedToken(shares.blob)}
    platform.proposals["t-1"] = token_snapshot(shares.deployment, contract_uid=2)
    transfer = call()
    platform.proposals["t-2"] = token_snapshot(transfer, token_psbt(transfer, salt=1), "t-2")
    platform.holdings = [HELD]
    platform.calls = [told_call(uid) for uid in range(1, 4)]


def show_movements(platform: FakePlatform, ours: str) -> None:
    """Deposits, one of them named and one not confirmed, around a payment that this machine knows."""
    named = movement(2)
    named["outputs"][0]["label"] = "Donations"
    paid = movement(3, txid=ours, kind="payment", amount_sats=-1, title="Invoice 7 of the mill")
    spent = movement(4, kind="outside", amount_sats=-123_456_789_012, balance_sats=2_099_999_997_690_000)
    platform.movements = [movement(1, height=None, balance_sats=None), named, paid, spent]
    platform.movements += [movement(number) for number in range(5, 60)]
    # What is shown of a proposal as soon as the platform tells of it.
    trouble = Trouble(
        TroubleKind.CONFLICT, "bump", "It pays 1 sat/vB.", "2026-01-02T03:04:05Z", "ab" * 32, "p-3"
    )
    platform.proposals["p-1"] = replace(platform.proposals["p-1"], trouble=trouble)


@pytest.fixture
def full(make_desk) -> Iterator[object]:
    """Something of everything: waiting, refused, large, of tokens, at the device;
    apps that ask and are paired; a locked device comes later.
    """
    desk = make_desk()
    proposals = desk.outer.platform.proposals
    desk.until_state("p-1", State.WAITING_PERSON)
    honest = spend()
    wrong = with_output(honest, 1, script_pubkey=honest.tx.outputs[0].script_pubkey)
    proposals["p-2"] = snapshot_of(wrong, "p-2")
    proposals["p-3"] = many("p-3")
    coin = fund(VAULT, 90_000, index=3, salt=4)
    proposals["p-4"] = snapshot_of(
        build_psbt(VAULT, [coin], [TxOut(Sats(88_000), bytes.fromhex("0014") + b"\7" * 20)], 0), "p-4"
    )
    coin = fund(VAULT, 80_000, index=4, salt=4)
    proposals["p-5"] = snapshot_of(
        build_psbt(VAULT, [coin], [TxOut(Sats(78_000), bytes.fromhex("0014") + b"\x08" * 20)], 0), "p-5"
    )
    show_tokens(desk.outer.platform)
    show_movements(desk.outer.platform, honest.tx.txid)
    written = desk.daemon.state / "config.toml"
    written.write_text(CONFIG)
    desk.daemon.service.config_file = written
    desk.until_state("p-2", State.REFUSED)
    desk.until_state("t-1", State.WAITING_PERSON)
    desk.until_state("t-2", State.WAITING_PERSON)
    desk.until_state("p-4", State.WAITING_PERSON)
    desk.outer.bridge.gate = asyncio.Event()
    service = desk.daemon.service
    # The device is busy with the first: the second waits, and goes by card.
    for psbt_id, state in (("p-4", State.SIGNING), ("p-5", State.WAITING_DEVICE)):
        desk.until_state(psbt_id, State.WAITING_PERSON)
        shown = desk.daemon.on_loop(service.proposal, psbt_id)
        acknowledged = frozenset(check.name for check in shown.checks if check.acknowledge)
        desk.daemon.on_loop(service.approve, psbt_id, shown.digest, acknowledged)
        desk.until_state(psbt_id, state)
    asked = desk.daemon.on_loop(service.apps.ask, "Ledger of Ours", frozenset({"read", "propose"}), None)
    desk.daemon.on_loop(_accept, service, asked)
    desk.daemon.on_loop(service.apps.let_in, LONG, 60)
    yield desk
    desk.daemon.on_loop(desk.outer.bridge.gate.set)


async def _accept(service, asked) -> None:
    await service.apps.accept(asked.id, asked.code, rights=None, days=90)
    await service.apps.collect(asked.id, asked.secret)


@pytest.mark.slow("axe on every page at two widths")
def test_nothing_is_found_against_any_page(full):
    device = full.outer.bridge.device.id
    windows = {seated: full.open_browser(seated=seated).new_page() for seated in (True, False)}
    found = []
    for one in PAGES:
        if one.name == "device-unlock":
            lock(full.outer.bridge, full)
        if one.name == "apps":
            # It lasts two minutes.
            wish = frozenset({"read", "approve"})
            full.daemon.on_loop(full.daemon.service.apps.ask, "Wallet", wish, LONG)
        page = windows[one.seated]
        page.set_viewport_size(WIDE)
        (show if one.seated else Page.goto)(page, full.origin + one.path.replace("{device}", device))
        one.ready(page)
        found += judge(page, one.name)
    assert found == []


def test_l17_whatever_comes_under_the_pointer_is_not_pressed_by_a_double_click(full):
    device = full.outer.bridge.device.id
    page, found = full.open_browser().new_page(), []
    hasty = Hasty(page, "/static")
    seated = [one for one in PAGES if one.seated and one.name != "device-unlock"]
    for one in drawn(seated, 9, of="hasty"):
        (width,) = drawn(WIDTHS, 1, of=one.name)
        page.set_viewport_size({"width": width, "height": 800})

        def open_it(one: Shown = one) -> None:
            show(page, full.origin + one.path.replace("{device}", device))
            if one.ready in {unfold, declining}:
                one.ready(page)

        found += hasty.presses(f"{one.name} at {width}", open_it)
    assert found == []


def test_nothing_is_found_against_the_emergency_kit_and_it_prints(make_desk, tmp_path):
    """Opened from where the browser keeps it: its own policy lets its own style in."""
    desk = make_desk()
    context = desk.open_browser()
    page = context.new_page()
    show(page, f"{desk.origin}/vaults/{VAULT_ID}")
    with page.expect_download() as kept:
        page.get_by_role("link", name="Emergency kit").click()
    path = tmp_path / kept.value.suggested_filename
    kept.value.save_as(path)
    assert path.name == "kit-treasury.html"
    page.goto(path.as_uri())
    expect(page.locator("#descriptor")).to_have_text(VAULT.descriptor)
    assert judge(page, "kit") == []
    assert page.evaluate("getComputedStyle(document.querySelector('.box')).borderTopWidth") == "2px"
    assert page.pdf().startswith(b"%PDF")


def lock(bridge: FakeBridge, desk) -> None:
    bridge.secrets = {Question.PIN: "1"}
    desk.daemon.on_loop(bridge.becomes, DeviceState.LOCKED)
