"""A proposal for a device without a cable on the page: its codes, its file, and the answer."""

import hashlib
import threading
from itertools import islice

import pytest

from firmware_bridge import DeviceState, airgap
from firmware_bridge.airgap import CodeSeries, Content, bbqr, series_of, ur
from multisig import Psbt
from signerd.core.states import State
from signerd.loopback.page.airgap import SCAN_SECONDS, Scans
from signerd.loopback.page.routes import ROWS
from tests.support.daemons import approve, until_state
from tests.support.desk import spend
from tests.support.paged import Markup, paged
from tests.support.ur_keys import account_of, animated
from tests.support.wallets import ALICE

pytestmark = pytest.mark.anyio


@pytest.fixture
async def approved(desk):
    desk.bridge.becomes(DeviceState.ABSENT)
    await approve(desk.daemon, "p-1")
    return desk


async def given(desk) -> tuple[Markup, Psbt]:
    answer = await desk.post("/proposals/p-1/airgap", series="bbqr")
    assert answer.status_code == 200, answer.text
    page = Markup(answer.text)
    (button,) = (tag for tag in page.all("button") if "data-save" in tag.attributes)
    return page, Psbt.parse(button.attributes["data-save"])


async def test_exporting_shows_codes_and_a_file_once_it_is_recorded(approved):
    page = await approved.page("/proposals/p-1")
    assert "/proposals/p-1/airgap" in {tag.attributes.get("href") for tag in page.all("a")}
    assert approved.daemon.journal.record("p-1").exported is None
    page, psbt = await given(approved)
    assert approved.daemon.journal.record("p-1").state is State.EXPORTED
    pictures = page.all("img")
    assert pictures
    # The policy lets pictures in that stand in the page itself, and no others.
    assert all(tag.attributes["src"].startswith("data:image/svg+xml;base64,") for tag in pictures)
    assert sum("hidden" not in tag.attributes for tag in pictures) == 1
    _page, same = await given(approved)
    assert same == psbt


async def test_s34_codes_are_put_together_beside_the_daemons_loop(approved, monkeypatch):
    threads, add = [], airgap.Scanner.add

    def spied(*given):
        threads.append(threading.current_thread())
        return add(*given)

    monkeypatch.setattr(airgap.Scanner, "add", spied)
    _page, psbt = await given(approved)
    texts = series_of(ALICE.sign(psbt).to_bytes(), Content.PSBT, CodeSeries.BBQR, 400)
    assert (await approved.post("/scans", kind="psbt", text=texts[0])).status_code == 200
    assert (await approved.post("/answers", answer="\n".join(texts))).status_code == 200
    assert len(threads) == 1 + len(texts)
    assert threading.current_thread() not in threads
    await until_state(approved.daemon, "p-1", State.SUBMITTED)


PSBT = spend()


async def scan(desk, texts, kind="psbt"):
    told = {"scan": ""}
    for text in texts:
        answer = await desk.post("/scans", scan=told["scan"], kind=kind, text=text)
        assert answer.status_code == 200, answer.text
        told = answer.json()
        if "whole" in told:
            break
    return told


async def test_a_series_becomes_the_text_of_a_form_whatever_its_order(desk):
    texts = tuple(islice(ur.split(PSBT.to_bytes(), max_fragment=90), 40))
    told = await scan(desk, (*texts[1::2], *texts[::2], *texts))
    assert told["whole"] == PSBT.to_base64()
    assert told["seen"] == told["wanted"]


async def test_s23_a_code_of_something_else_is_told_and_gives_nothing(desk):
    for kind, *texts in (
        ("psbt", *animated("crypto-account", account_of(ALICE))),
        ("text", *bbqr.split(PSBT.to_bytes(), Content.PSBT)),
        ("text", "x" * 5_000),
        ("psbt", ""),
    ):
        told = await scan(desk, texts, kind)
        assert "whole" not in told
        assert told["said"]
    assert (await desk.post("/scans", kind="film", text="x")).status_code == 422


def test_a_scan_that_was_left_is_forgotten():
    now = [0.0]
    scans = Scans(lambda: now[0])
    scan_id, scanner = scans.of("", "psbt")
    assert scans.of(scan_id, "psbt") == (scan_id, scanner)
    now[0] = SCAN_SECONDS
    assert scans.of(scan_id, "psbt")[0] != scan_id


async def test_only_the_pages_that_read_codes_may_ask_for_the_camera(desk):
    """A stranger's answer is the document that the page is written into: its policy is the page's."""
    async with paged(desk.daemon, None) as stranger:
        for row in ROWS:
            if row.method != "GET":
                continue
            path = row.path.replace("{psbt_id}", "p-1").replace("{name:path}", "page.js")
            for browser in (desk.browser, stranger):
                policy = (await browser.get(path)).headers["permissions-policy"]
                assert ("camera=(self)" in policy) is row.camera, path
                assert "microphone=()" in policy
    assert {row.path for row in ROWS if row.camera} == {"/proposals/{psbt_id}/airgap", "/airgap/register"}


@pytest.mark.parametrize(
    ("name", "sha256"),
    [
        ("qr/index.js", "a0de370051f94bd74f218f74401fdf197585e3f9ef0143164f87ea941a3fdd6f"),
        ("qr/decode.js", "00e209820dcb11d624e9a03d6383e580766792b57d1651318f0a29e4e1ff0fe8"),
    ],
)
async def test_what_others_wrote_is_the_releases_own_and_compiles_no_text(desk, name, sha256):
    answer = await desk.browser.get(f"/static/{name}")
    assert hashlib.sha256(answer.content).hexdigest() == sha256
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert b"eval(" not in answer.content
    assert b"new Function" not in answer.content
