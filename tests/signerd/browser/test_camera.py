"""A device without a cable in a person's browser: an animated QR code is filmed, and becomes a signature at
the platform or a registered key; a file is saved, and the answer is brought.
"""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest
import segno
from playwright.sync_api import expect

from firmware_bridge import DeviceState
from firmware_bridge.airgap import ur
from multisig import Psbt
from signerd.callers import PAGE
from signerd.core.states import State
from signerd.daemon import airgap
from tests.support.browser import NARROW, filming, show
from tests.support.ur_keys import account_of, animated, proof
from tests.support.wallets import ALICE

WIDE, HIGH = 640, 480
# Side of the code in pixels, at most.
_FILLED = 440
_SECONDS = 4
_WHITE, _GREY = 235, 128


def film(path: Path, texts: Sequence[str]) -> None:
    """Uncompressed (YUV4MPEG2, 4:2:0), a quarter of a second for each text."""
    colours = bytes([_GREY]) * (WIDE * HIGH // 2)
    with path.open("wb") as file:
        file.write(f"YUV4MPEG2 W{WIDE} H{HIGH} F{_SECONDS}:1 Ip A1:1 C420\n".encode())
        for text in texts:
            file.write(b"FRAME\n" + _picture(text) + colours)


def _picture(text: str) -> bytes:
    """The code in the middle of a grey picture, as brightness."""
    modules = [bytes(row) for row in segno.make(text, error="L", micro=False).matrix_iter(border=4)]
    scale = _FILLED // len(modules)
    side = scale * len(modules)
    left, above = (WIDE - side) // 2, (HIGH - side) // 2
    wall = bytes([_GREY])
    rows = [wall * WIDE] * above
    for modules_of_row in modules:
        row = b"".join((b"\x10" if dark else bytes([_WHITE])) * scale for dark in modules_of_row)
        rows += [wall * left + row + wall * (WIDE - left - side)] * scale
    rows += [wall * WIDE] * (HIGH - len(rows))
    return b"".join(rows)


def test_an_animated_answer_is_filmed_and_sent(desk, chromium, tmp_path):
    given = desk.daemon.on_loop(airgap.export, desk.daemon.service, "p-1", PAGE)
    answer = ALICE.sign(Psbt.parse(given.psbt)).to_bytes()
    # From the middle on: no plain part comes again soon.
    texts = tuple(islice(ur.split(answer, max_fragment=200, first=4), 40))
    film(tmp_path / "screen.y4m", texts)
    with filming(chromium, tmp_path / "screen.y4m") as desk.browser:
        context = desk.open_browser(permissions=["camera"], viewport=NARROW)
        page = context.new_page()
        show(page, f"{desk.origin}/proposals/p-1/airgap")
        page.get_by_role("button", name="Read its screen with the camera").click()
        expect(page.get_by_text("Read whole. Go on below.")).to_be_visible()
        expect(page.locator("video")).to_be_hidden()
        page.get_by_role("button", name="Verify and send").click()
        expect(page.get_by_role("heading", name="Accepted")).to_be_visible()
        desk.until_state("p-1", State.SUBMITTED)
        context.close()


@pytest.mark.slow("films another device; an answer is filmed by the test before")
def test_a_device_registers_by_its_screen_and_a_signed_line(make_desk, chromium, tmp_path):
    desk = make_desk(prepared=False)
    desk.outer.bridge.state = DeviceState.ABSENT
    film(tmp_path / "screen.y4m", animated("crypto-account", account_of(ALICE), max_fragment=50, frames=16))
    with filming(chromium, tmp_path / "screen.y4m") as desk.browser:
        context = desk.open_browser(permissions=["camera"])
        page = context.new_page()
        show(page, f"{desk.origin}/devices")
        page.get_by_role("link", name="Register a device without a cable").click()
        page.get_by_role("button", name="Read its screen with the camera").first.click()
        expect(page.get_by_text("Read whole. Go on below.")).to_be_visible()
        page.get_by_role("button", name="Read its keys").click()
        expect(page.get_by_text(str(ALICE.fingerprint)).first).to_be_visible()
        page.get_by_role("button", name="My device shows these: go on").click()
        line = page.get_by_text(re.compile(r"^Register signing key ")).inner_text()
        page.get_by_label("or the signature").fill(proof(line))
        page.get_by_role("button", name="This is my device: register").click()
        expect(page.get_by_role("heading", name="Registered")).to_be_visible()
        context.close()
    assert desk.daemon.on_loop(registered, desk.daemon.service) == ALICE.fingerprint.hex


async def registered(service):
    return (await service.status()).fingerprint


@pytest.fixture
def desk(make_desk):
    desk = make_desk()
    desk.outer.bridge.state = DeviceState.ABSENT
    desk.until_state("p-1", State.WAITING_PERSON)
    service = desk.daemon.service
    shown = desk.daemon.on_loop(service.proposal, "p-1")
    desk.daemon.on_loop(service.approve, "p-1", shown.digest, frozenset())
    return desk


def test_by_card_and_back(desk, tmp_path):
    page = desk.open_browser().new_page()
    page.set_viewport_size({"width": 360, "height": 740})
    show(page, f"{desk.origin}/proposals/p-1")
    page.get_by_role("link", name="Your device has no cable").click()
    page.get_by_role("button", name="Export on Regtest").click()
    first = page.locator(".codes img").first
    expect(first).to_be_hidden()
    expect(first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator(".codes img:not([hidden])").count() == 1
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save Treasury").click()
    request = tmp_path / saving.value.suggested_filename
    saving.value.save_as(request)
    answer = tmp_path / "signed.psbt"
    answer.write_bytes(ALICE.sign(Psbt.parse(request.read_bytes())).to_bytes())
    page.get_by_label("The file that the device wrote").set_input_files(answer)
    expect(page.get_by_label("or its text")).not_to_be_empty()
    page.get_by_role("button", name="Verify and send").click()
    expect(page.get_by_role("heading", name="Accepted")).to_be_visible()
    desk.until_state("p-1", State.SUBMITTED)
