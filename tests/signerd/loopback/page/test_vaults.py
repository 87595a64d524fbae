"""The page's vaults: compared, pinned, forgotten, and their addresses shown on the device."""

import asyncio
import base64
from itertools import product

import pytest
from markupsafe import escape

from firmware_bridge import DeviceState
from multisig import wallet_policy
from signerd.core.addresses import address_on_screen
from signerd.core.audit import Note
from tests.support.coordinators import caravan
from tests.support.daemons import daemon_at, until
from tests.support.desk import NETWORK, PROFILE_KEY, VAULT, VAULT_ID, own_keys, spend
from tests.support.fake_platform import movement
from tests.support.paged import Markup, field_of, paged, shown_words, whole
from tests.support.patience import PATIENCE
from tests.support.wallets import ALICE, BOB, MALLORY, make_vault

pytestmark = pytest.mark.anyio
CODE = VAULT.verification_code
OTHER = make_vault((ALICE, BOB, MALLORY))


@pytest.fixture
async def daemon(state, platform, bridge):
    """Keys registered, the vault seen, nothing pinned."""
    async with daemon_at(state, platform, bridge) as running:
        running.journal.add_own_keys((*own_keys(), PROFILE_KEY), "key-1", Note("registered", "key-1"))
        await until(lambda: running.follower.workspaces)
        await running.follower.read_vaults(running.follower.workspaces[0])
        yield running


@pytest.fixture
async def browser(daemon):
    async with paged(daemon) as client:
        yield client


async def pin(browser, **given):
    return await browser.post(f"/vaults/{VAULT_ID}/pin", data={"code": CODE, "source": "record", **given})


async def test_s13_the_person_says_on_the_page_that_it_is_another_address(browser, bridge):
    """A Trezor has no button for it."""
    meanwhile = whole(await browser.get(f"/vaults/{VAULT_ID}/pin")).by_id("said").attributes["hx-get"]
    another = f"/devices/{bridge.device.id}/another-address"
    assert another not in (await browser.get(meanwhile)).text
    assert (await browser.post(another, data={})).status_code == 409, "none is shown"
    bridge.gate = asyncio.Event()
    pinning = asyncio.create_task(pin(browser))
    await until(lambda: bridge.shown)
    shown = await browser.get(meanwhile)
    assert another in shown.text
    [card] = whole(shown).all("dd")
    assert "".join(card.words.split()) == address_on_screen(VAULT.address(0, 0), NETWORK)
    assert "Recorded" in (await browser.post(another, data={})).text
    refused = await asyncio.wait_for(pinning, PATIENCE)
    assert refused.status_code == 409
    assert "you say that the device shows another address" in refused.text
    assert another not in (await browser.get(meanwhile)).text
    assert "not pinned" in (await browser.get("/vaults")).text
    assert whole(await browser.get(f"/vaults/{VAULT_ID}")).all("a", href=f"/vaults/{VAULT_ID}/pin")


async def test_a_device_without_a_cable_gets_a_file_and_the_person_says_what_it_shows(browser, bridge):
    bridge.becomes(DeviceState.ABSENT)
    part = Markup((await browser.get(f"/vaults/{VAULT_ID}/enrolment")).text)
    (button,) = part.all("button")
    assert "Policy: 2 of 3" in base64.b64decode(button.attributes["data-save"]).decode()
    refused = await pin(browser, airgapped="another")
    assert refused.status_code == 409
    assert "ALARM" in refused.text
    done = await pin(browser, airgapped="same")
    assert "your device has shown the same first address" in done.text
    assert bridge.shown == []


@pytest.mark.parametrize("source", ["file", "psbt"])
async def test_a_vault_from_elsewhere_is_held_against_the_record(browser, source):
    text = caravan(VAULT) if source == "file" else base64.b64encode(spend().to_bytes()).decode()
    sent = {"source": source, "text": f" {text}\n"}
    html = whole(await browser.post(f"/vaults/{VAULT_ID}/pin/preview", data=sent))
    assert "the platform's record says the same" in shown_words(html)
    assert ("It was read as Caravan's file." in shown_words(html)) is (source == "file")
    again = {name: field_of(html, name).attributes["value"] for name in ("source", "descriptor")}
    assert again["source"] == source
    assert "Pinned" in (await pin(browser, **again)).text


async def test_what_has_no_vault_in_it_is_refused(browser):
    for source, text in product(("file", "psbt"), ("", "nonsense", "é" * 10, "A" * 50_000)):
        sent = {"source": source, "text": text}
        assert (await browser.post(f"/vaults/{VAULT_ID}/pin/preview", data=sent)).status_code == 422


async def test_the_policy_is_shown_on_demand(browser):
    await pin(browser)
    assert whole(await browser.get(f"/vaults/{VAULT_ID}")).all("button", **{"hx-target": "#policy"})
    text = (await browser.get(f"/vaults/{VAULT_ID}/policy")).text
    for part in (wallet_policy(VAULT).template, *wallet_policy(VAULT).keys, "None of a Ledger"):
        assert escape(part) in text


async def test_an_alarm_stands_on_every_page_of_the_vault(daemon, browser):
    await pin(browser)
    claim = daemon.journal.claim(VAULT_ID)
    daemon.journal.learn(type(claim)(**{**vars(claim), "descriptor": OTHER.descriptor}))
    for path in ("/vaults", f"/vaults/{VAULT_ID}", f"/vaults/{VAULT_ID}/addresses"):
        assert "ALARM" in whole(await browser.get(path)).words


async def test_addresses_are_listed_whole_and_in_pages(browser):
    await pin(browser)
    html = whole(await browser.get(f"/vaults/{VAULT_ID}/addresses?chain=1&start=20"))
    for index in range(20, 30):
        assert VAULT.address(1, index) in html.words
    assert html.all("a", href=f"/vaults/{VAULT_ID}/addresses?chain=1&start=10")
    assert html.all("a", href=f"/vaults/{VAULT_ID}/addresses?chain=1&start=30")
    for bad in ("chain=2", "start=-1", "start=x", "start=99999999999"):
        assert (await browser.get(f"/vaults/{VAULT_ID}/addresses?{bad}")).status_code == 422


async def test_a_name_that_the_platform_gives_an_address_is_marked_as_its_word(daemon, browser, platform):
    await pin(browser)
    output = {"address": VAULT.address(0, 1), "amount_sats": 1_000, "vout": 0, "label": "The mill"}
    platform.movements = [movement(1, outputs=[output])]
    text = (await browser.get(f"/vaults/{VAULT_ID}/movements/newest?limit=5")).text
    assert "the platform says: to <q>The mill</q>" in text
    assert text.count("The mill") == 1


async def test_movements_are_sought_and_paged_by_links_that_keep_what_was_sought(daemon, browser, platform):
    await pin(browser)
    platform.movements = [movement(number, title="Rent") for number in range(1, 60)]
    newest = (await browser.get(f"/vaults/{VAULT_ID}/movements/newest?limit=5")).text
    assert newest.count("Deposit") == 5
    assert "By the platform's word" in newest
    first = whole(await browser.get(f"/vaults/{VAULT_ID}/movements?search=rent&since=2026-05-01&before="))
    [older] = first.all("a", rel="next")
    assert "search=rent&since=2026-05-01&cursor=50" in older.attributes["href"]
    second = whole(await browser.get(older.attributes["href"]))
    assert second.all("a", rel="next") == []
    assert "block 159" in second.words
    wrong = await browser.get(f"/vaults/{VAULT_ID}/movements?since=May")
    assert wrong.status_code == 422
    assert "The first day" in wrong.text
