"""Apps, history, settings and help: what they show is the interface's, and what they do is done once."""

import pytest

from signerd.core.audit import Note
from signerd.shapes import AuditReport
from tests.support.paged import paged
from tests.support.served import Scripted

pytestmark = pytest.mark.anyio


# --- history ------------------------------------------------------------------------------------------------


async def test_the_history_is_the_chain_page_by_page_the_newest_first(desk):
    assert "Nothing was found" in (await desk.page("/history?search=nowhere")).words
    for n in range(60):
        desk.daemon.journal.note(Note("pinned", f"vault-{n}"))
    first = await desk.page("/history")
    (older,) = first.all("a", rel="next")
    second = await desk.page(older.attributes["href"])
    places = [
        int(tag.attributes["value"])
        for page in (first, second)
        for tag in page.all("li")
        if "value" in tag.attributes
    ]
    assert places == list(range(desk.daemon.journal.head()[0], 0, -1))


async def test_a_chain_that_is_not_whole_is_said_loudly():
    broken = AuditReport(entries=3, head="00", at=2, fault="entry 2 was changed")
    service = Scripted({"verify_audit": broken})
    async with paged(service) as browser:
        answer = await browser.get("/history/verdict")
    assert "Not whole:" in answer.text
    assert 'role="alert"' in answer.text


# --- settings -----------------------------------------------------------------------------------------------


async def test_settings_say_what_is_lowered_and_what_is_never_signed(desk):
    page = await desk.page("/settings")
    words = " ".join(page.all("main")[0].words.split())
    assert (
        "fee-share: The fee is within the configured share of what is moved. Where it is not so, you are "
        "only asked." in words
    )
    assert "10,000,000 sats" in words
    assert str(desk.daemon.state) in words
