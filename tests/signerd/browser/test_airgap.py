"""A proposal for a device without a cable, in a person's browser on a telephone's width: codes that turn, a
file that is saved, and the answer that is brought.
"""

import pytest
from playwright.sync_api import expect

from firmware_bridge import DeviceState
from multisig import Psbt
from signerd.core.states import State
from tests.support.browser import show
from tests.support.wallets import ALICE


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
