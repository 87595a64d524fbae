"""The page's devices: seen, unlocked, shown, registered, without a secret in anything that comes back."""

import pytest

from firmware_bridge import DeviceState, Question
from tests.support.fake_bridge import FakeBridge
from tests.support.paged import field_of, shown_words, whole
from tests.support.wallets import ALICE, BOB

pytestmark = pytest.mark.anyio
# Nine digits: four stand in some random id by chance.
PIN = "791379137"


@pytest.fixture
def bridge():
    return FakeBridge(state=DeviceState.LOCKED, secrets={Question.PIN: PIN})


def form_of(html, start):
    (found,) = [tag for tag in html.all("form") if tag.attributes["action"].startswith(start)]
    return found.attributes["action"]


async def ask(browser, bridge):
    """The form of the first question."""
    html = whole(await browser.post(f"/devices/{bridge.device.id}/unlock"))
    return html, form_of(html, f"/devices/{bridge.device.id}/questions/")


async def test_s22_each_device_stands_there_with_its_state_in_words_and_what_to_do(browser, bridge):
    html = whole(await browser.get("/devices"))
    assert "locked" in html.words
    assert "emulator" in html.words
    assert "Unlock it with its PIN." in html.words
    assert html.all("a", href=f"/devices/{bridge.device.id}/unlock")
    bridge.becomes(DeviceState.READY)
    html = whole(await browser.get("/devices"))
    assert "the key that is registered here" in html.words
    assert not html.all("a", href=f"/devices/{bridge.device.id}/unlock")
    bridge.firmware, bridge.emulator = "2.5.0", False
    assert (
        "Stop using it: TREZOR-2.5.1-REPLACEMENT (2022-05-18)" in whole(await browser.get("/devices")).words
    )


@pytest.mark.parametrize(
    ("label", "name"), [("Alice's", "Alice's"), ("", "Fake device"), (None, "Fake device")]
)
async def test_a_device_has_one_name_the_persons_own_or_else_its_model(daemon, browser, bridge, label, name):
    bridge.label = label
    html, _action = await ask(browser, bridge)
    assert [tag.words for tag in html.all("h2")] == ["Its PIN"]
    assert daemon.feed.since(0)[-1].text == f"{name} asks for its PIN."
    bridge.becomes(DeviceState.READY)
    device = bridge.device.id
    assert f"Register {name}" in whole(await browser.get(f"/devices/{device}/register")).words
    assert f"Device {name}" in shown_words(whole(await browser.post(f"/devices/{device}/register/keys")))
    [card] = whole(await browser.get("/devices")).all("h2")
    assert card.words == name
    await browser.post(f"/devices/{device}/identify")
    assert daemon.feed.since(0)[-1].text.startswith(f"{name} shows itself")


async def test_the_matrix_has_nine_places_without_a_digit_on_them(browser, bridge):
    html, _action = await ask(browser, bridge)
    keys = [tag for tag in html.all("button") if "data-place" in tag.attributes]
    assert [key.attributes["data-place"] for key in keys] == list("789456123")
    assert keys[0].attributes["aria-label"] == "position top left"
    assert keys[8].attributes["aria-label"] == "position bottom right"
    assert {key.words for key in keys} == {"●"}
    field = field_of(html, "answer")
    assert (field.attributes["type"], field.attributes["autocomplete"]) == ("password", "off")
    # A line of the feed would take the typed places away.
    assert (await browser.get(html.by_id("unlocking").attributes["hx-get"])).status_code == 204


async def test_what_are_no_places_never_reaches_the_device(daemon, browser, bridge):
    _html, action = await ask(browser, bridge)
    for typed in ("", "12a", "1230", "１２"):
        refused = await browser.post(action, data={"kind": "pin", "answer": typed})
        assert refused.status_code == 422
    assert len(await daemon.unlocking.questions()) == 1


async def test_a_passphrase_is_typed_twice_and_warned_of(daemon, browser, bridge):
    bridge.secrets = {Question.PASSPHRASE: "horse"}
    html, action = await ask(browser, bridge)
    assert "a wrong one too" in shown_words(html)
    slip = {"kind": "passphrase", "answer": "horse", "again": "hrose"}
    refused = await browser.post(action, data=slip)
    assert refused.status_code == 422
    assert "horse" not in refused.text
    assert "hrose" not in refused.text
    bridge.signer = BOB
    done = await browser.post(action, data={**slip, "again": "horse"})
    assert "This is not the key that is registered here" in done.text
    assert str(BOB.fingerprint) in done.text
    assert "horse" not in done.text


async def test_registering_shows_the_keys_and_is_bound_to_them(daemon, browser, bridge):
    bridge.becomes(DeviceState.READY)
    device = bridge.device.id
    assert "Read its keys" in whole(await browser.get(f"/devices/{device}/register")).words
    html = whole(await browser.post(f"/devices/{device}/register/keys"))
    assert str(ALICE.fingerprint) in shown_words(html)
    digest = field_of(html, "digest")
    stale = await browser.post(f"/devices/{device}/register", data={"digest": "0" * 64})
    assert stale.status_code == 409
    assert bridge.messages == []
    done = await browser.post(f"/devices/{device}/register", data={"digest": digest.attributes["value"]})
    assert "Registered" in done.text
    [text] = bridge.messages
    said = whole(await browser.get("/said/registration?after=0"))
    assert [tag.words for tag in said.all("code")] == [text], "what the device shows, to be compared"
    assert "a warning about the path, then an address of your key, then this text" in shown_words(said)


async def test_another_devices_keys_are_registered_only_with_a_word(browser, bridge):
    bridge.becomes(DeviceState.READY)
    bridge.signer = BOB
    html = whole(await browser.post(f"/devices/{bridge.device.id}/register/keys"))
    replace = field_of(html, "replace")
    assert "required" in replace.attributes


async def test_what_is_said_meanwhile_stands_on_the_page(daemon, browser, bridge):
    daemon.feed.add("registration", "progress", "of another visit")
    bridge.becomes(DeviceState.READY)
    html = whole(await browser.get(f"/devices/{bridge.device.id}/register"))
    live = html.by_id("said").attributes["hx-get"]
    daemon.feed.add("registration", "progress", "Look at\x1b[2J your <b>device</b>.")
    said = await browser.get(live)
    assert "Look at" in said.text
    assert "<b>device" not in said.text
    assert "\x1b" not in said.text
    assert "another visit" not in said.text
    for bad in ("/said/registration", "/said/registration?after=-1", "/said/registration?after=" + "9" * 40):
        assert (await browser.get(bad)).status_code == 422
