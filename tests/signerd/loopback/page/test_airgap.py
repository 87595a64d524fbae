"""A proposal for a device without a cable on the page: its codes, its file, and the answer."""

import base64
import threading

import pytest

from firmware_bridge import DeviceState, airgap
from firmware_bridge.airgap import Content, Series, series_of
from multisig import Psbt
from signerd.core.states import State
from tests.support.daemons import approve, until_state
from tests.support.paged import Markup
from tests.support.wallets import ALICE, BOB

pytestmark = pytest.mark.anyio


@pytest.fixture
async def approved(desk):
    desk.bridge.becomes(DeviceState.ABSENT)
    await approve(desk.daemon, "p-1")
    return desk


async def given(desk, series="bbqr") -> tuple[Markup, Psbt]:
    answer = await desk.post("/proposals/p-1/airgap", series=series)
    assert answer.status_code == 200, answer.text
    page = Markup(answer.text)
    (button,) = (tag for tag in page.all("button") if "data-save" in tag.attributes)
    return page, Psbt.parse(button.attributes["data-save"])


async def test_what_waits_for_a_decision_has_nothing_to_take(desk):
    page = await desk.page("/proposals/p-1/airgap")
    assert page.all("form") == []
    assert "Only a proposal that you approved" in page.all("main")[0].words
    refused = await desk.post("/proposals/p-1/airgap", series="bbqr")
    assert refused.status_code == 409
    assert desk.daemon.journal.record("p-1").exported is None


@pytest.mark.parametrize("series", ["bbqr", "ur"])
async def test_exporting_shows_codes_and_a_file_once_it_is_recorded(approved, series):
    page = await approved.page("/proposals/p-1")
    assert "/proposals/p-1/airgap" in {tag.attributes.get("href") for tag in page.all("a")}
    assert approved.daemon.journal.record("p-1").exported is None
    page, psbt = await given(approved, series)
    assert approved.daemon.journal.record("p-1").state is State.EXPORTED
    pictures = page.all("img")
    assert pictures
    # The policy lets pictures in that stand in the page itself, and no others.
    assert all(tag.attributes["src"].startswith("data:image/svg+xml;base64,") for tag in pictures)
    assert sum("hidden" not in tag.attributes for tag in pictures) == 1
    _page, same = await given(approved, series)
    assert same == psbt


async def test_the_codes_are_drawn_beside_the_daemons_loop(approved, monkeypatch):
    drawn, draw = [], airgap.draw

    def spied(*given, **how):
        drawn.append(threading.current_thread())
        return draw(*given, **how)

    monkeypatch.setattr(airgap, "draw", spied)
    await given(approved)
    assert drawn
    assert threading.current_thread() not in drawn


async def test_the_answer_is_taken_as_a_file_or_as_the_texts_of_codes(approved):
    _page, psbt = await given(approved)
    signed = ALICE.sign(psbt)
    texts = "\n".join(series_of(signed.to_bytes(), Content.PSBT, Series.UR, 400))
    answer = await approved.post("/answers", answer=texts)
    assert answer.status_code == 200, answer.text
    assert "signed" in Markup(answer.text).all("p")[0].words
    await until_state(approved.daemon, "p-1", State.SUBMITTED)


async def test_s19_an_altered_answer_says_why_in_the_forms_own_place(approved):
    _page, psbt = await given(approved)
    for text in ("", "no psbt", BOB.sign(psbt).to_base64(), psbt.to_base64(), "B$ZP0200AAAAAAAA"):
        answer = await approved.post("/answers", answer=text)
        assert answer.status_code == 409, text[:20]
        assert answer.headers["HX-Retarget"] == "find .problem"
    assert approved.daemon.journal.record("p-1").state is State.EXPORTED


async def test_another_kind_of_codes_is_refused_before_anything_is_recorded(approved):
    answer = await approved.post("/proposals/p-1/airgap", series="morse")
    assert answer.status_code == 422
    assert approved.daemon.journal.record("p-1").exported is None


async def test_l9_a_forms_body_from_elsewhere_is_not_believed(approved):
    answer = await approved.browser.post("/answers", json={"answer": base64.b64encode(b"x").decode()})
    assert answer.status_code == 422
