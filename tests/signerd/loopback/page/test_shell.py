"""The frame of every page: who gets in, what it may load, what every form brings back, and that it is whole
HTML. History and settings.
"""

import hashlib
import re
from itertools import pairwise

import pytest

from custody.common.pages.serving import KINDS, POLICY
from signerd.callers import STRANGER, TERMINAL, Right
from signerd.core.audit import Note
from signerd.core.states import State
from signerd.loopback.page import rendering
from signerd.loopback.page.routes import ROWS
from signerd.shapes import AuditReport
from tests.support.desk import VAULT_ID
from tests.support.fake_bridge import FakeBridge
from tests.support.paged import Markup, paged
from tests.support.served import Scripted

pytestmark = pytest.mark.anyio

DEVICE = FakeBridge().device.id
PAGES = (
    *("/", "/?ended=1", "/proposals/p-1", "/apps", "/history", "/settings", "/help"),
    *("/devices", f"/devices/{DEVICE}/unlock", f"/devices/{DEVICE}/register"),
    *("/vaults", "/vaults/vault-1", "/vaults/vault-1/pin", "/vaults/vault-1/addresses"),
    "/vaults/vault-1/tokens",
    "/vaults/vault-1/movements",
)


ANYONES = {"/static/{name:path}"}


def filled(path):
    names = {"psbt_id": "p-1", "vault_id": "vault-1", "device_id": DEVICE}
    return re.sub(r"\{(\w+)\}", lambda found: names.get(found[1], "x-1"), path)


async def test_every_page_keeps_to_the_frame(daemon):
    async with paged(daemon) as browser:
        for path in PAGES:
            answer = await browser.get(path)
            assert answer.status_code == 200, path
            assert answer.headers["content-security-policy"] == POLICY
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["referrer-policy"] == "no-referrer"
            html = Markup(answer.text)
            assert html.broken == [], path
            holds_nothing_of_its_own_nor_points_outside(html)
            posts_every_form_by_the_script(html)
            has_landmarks_headings_and_ids_in_order(html)


def holds_nothing_of_its_own_nor_points_outside(html):
    """L8: what the policy forbids is not there either, so that there is no reason to loosen it."""
    for tag in html.tags:
        assert "style" not in tag.attributes
        assert tag.name not in {"style", "iframe", "object", "embed", "base"}
        assert not [name for name in tag.attributes if name.startswith(("on", "hx-on"))]
        for name in ("href", "src", "action", "hx-get", "hx-post"):
            assert tag.attributes.get(name, "/").startswith(("/", "#"))
            assert not tag.attributes.get(name, "/").startswith("//")
    assert not any(tag.words for tag in html.all("script"))


def posts_every_form_by_the_script(html):
    """L4, L10: without a script a form would be sent as its ``method`` says; what was typed must not stand
    in an address.
    """
    for form in html.all("form"):
        if form.attributes.get("role") != "search":
            assert form.attributes["method"] == "post"
            assert form.attributes["action"] == form.attributes["hx-post"]


def has_landmarks_headings_and_ids_in_order(html):
    assert [len(html.all(name)) for name in ("main", "header", "h1")] == [1, 1, 1]
    assert len({nav.attributes["aria-label"] for nav in html.all("nav")}) == len(html.all("nav"))
    assert html.all("main")[0].attributes["id"] == html.all("a")[0].attributes["href"].removeprefix("#")
    levels = [int(tag.name[1]) for tag in html.tags if tag.name in {"h1", "h2", "h3", "h4"}]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    identities = [tag.attributes["id"] for tag in html.tags if "id" in tag.attributes]
    assert len(identities) == len(set(identities))
    for label in html.all("label"):
        assert "for" not in label.attributes or label.attributes["for"] in identities
    assert not [tag for tag in html.tags if int(tag.attributes.get("tabindex", "0")) > 0]


@pytest.mark.parametrize("caller", [None, STRANGER, TERMINAL], ids=["nobody", "stranger", "terminal"])
async def test_l13_who_has_no_session_is_told_how_to_enter_and_nothing_else(daemon, caller):
    digest = (await daemon.proposal("p-1")).digest
    async with paged(daemon, caller) as browser:
        asked = [("GET", path) for path in PAGES]
        asked += [(row.method, filled(row.path)) for row in ROWS if row.needs is not Right.ANYONE]
        for method, path in asked:
            given = {"data": {"digest": digest}} if method == "POST" else {}
            answer = await browser.request(method, path, **given)
            assert answer.status_code == 401, path
            assert "signerd open" in answer.text
            assert answer.headers["content-security-policy"] == POLICY
            for secret in ("regtest", "p-1", "treasury"):
                assert secret not in answer.text.lower()
    assert {row.path for row in ROWS if row.needs is Right.ANYONE} == ANYONES
    assert daemon.journal.record("p-1").state is State.WAITING_PERSON


async def test_the_files_beside_it_are_a_fixed_list_and_asked_about_again(daemon):
    async with paged(daemon, STRANGER) as browser:
        for name, path in rendering.ASSETS.files.items():
            asked = {"Accept-Encoding": "identity"}
            answer = await browser.get(f"/static/{name}", headers=asked)
            assert answer.headers["content-type"] == KINDS[path.suffix]
            assert hashlib.sha256(answer.content).hexdigest()[:32] in answer.headers["etag"]
            asked["If-None-Match"] = answer.headers["etag"]
            again = await browser.get(f"/static/{name}", headers=asked)
            assert (again.status_code, again.content) == (304, b"")
    async with paged(daemon) as browser:
        for name in ("style.css.map", "..%2f..%2froutes.py", "routes.py"):
            assert (await browser.get(f"/static/{name}")).status_code == 404


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


async def test_the_history_names_what_it_is_about_and_a_command_its_folder(desk):
    facts = {"fingerprint": "73c5da0a", "keys": []}
    for kind, subject, of in (
        ("unpinned", VAULT_ID, {}), ("registered", "1" * 32, facts), ("app-revoked", "a-1", {"name": "Books"})
    ):  # fmt: skip
        desk.daemon.journal.note(Note(kind, subject, of))
    page = await desk.page("/history")
    assert f"signerd --state {desk.daemon.state} open" in (await desk.page("/help")).words
    assert [tag.words for tag in page.all("b")][1:4] == ["Books", "The device 73c5da0a", "Treasury"]


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
