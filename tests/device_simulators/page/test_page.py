"""The page of virtual devices: who gets in, and what a person sees and presses."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from playwright.sync_api import expect

from device_simulators.errors import NoSuchPrompt
from device_simulators.page import DeviceScreen, SimulatorDesk, Stand
from device_simulators.page.serve import MAX_BODY_BYTES, serving
from tests.support.browser import WIDE, Complaints, judge, launched, require_browser
from tests.support.patience import PATIENCE

PAYMENT = DeviceScreen(("Send 0.5 BTC", "to tb1q<b>payee</b>"), 7, no="Reject", yes="Sign")
NEXT = DeviceScreen(("Fee 378 sat",), 8, turn="Back", yes="Sign")


@dataclass
class Served:
    """A desk with two devices; ``pressed``: device, prompt, and whether it was yes."""

    desk: SimulatorDesk = field(default_factory=lambda: SimulatorDesk("Two devices"))
    pressed: list[tuple[str, int, bool]] = field(default_factory=list)
    then: dict[int, DeviceScreen] = field(default_factory=dict)
    url: str = ""
    _portal: BlockingPortal = field(init=False)

    def __post_init__(self) -> None:
        for title in ("Ledger", "Trezor"):
            self.desk.add(Stand(title, "fingerprint 9f441a36", self._pressing(title)))
        self.desk.story.links, self.desk.follow = ("Another program",), self._document

    async def _document(self, _link: str) -> str:
        return "<p>On to the other program.</p>"

    def _pressing(self, title: str):
        async def press(number: int, yes: bool) -> None:
            self.pressed.append((title, number, yes))
            # As a device does: what it asked is gone.
            place = next(stand for stand in self.desk.stands if stand.title == title)
            ended = DeviceScreen(ended="approved" if yes else "refused")
            self.desk.show(place, self.then.get(number, ended))

        return press

    def show(self, place: int, screen: DeviceScreen) -> None:
        self._portal.call(self.desk.show, self.desk.stands[place], screen)

    @contextmanager
    def running(self) -> Iterator["Served"]:
        """In a thread of its own: the browser's calls block."""
        with (
            start_blocking_portal() as self._portal,
            self._portal.wrap_async_context_manager(serving(self.desk)) as self.url,
        ):
            yield self


@pytest.fixture
def served() -> Iterator[Served]:
    with Served().running() as found:
        yield found


def press(place: int = 0, number: int = 7, button: str = "right") -> bytes:
    return json.dumps({"device": place, "number": number, "button": button}).encode()


def asked(
    served: Served, verb: str, path: str, headers: dict[str, str], body: bytes = b""
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(served.url).port, timeout=PATIENCE)
    try:
        connection.putrequest(verb, path, skip_host=True)
        for name, value in (headers | ({"Content-Length": str(len(body))} if body else {})).items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Content-Security-Policy", "")
    finally:
        connection.close()


def test_only_who_knows_the_address_on_this_machine_gets_in(served):
    parts = urlsplit(served.url)
    host, origin, base = parts.netloc, f"http://{parts.netloc}", parts.path
    own = {"Host": host, "Origin": origin}
    served.show(0, PAYMENT)
    cases = [
        ("GET", base, {"Host": host}, b"", 200),
        ("GET", base, {"Host": host, "Sec-Fetch-Site": "none"}, b"", 200),
        ("GET", f"{base}page.js", {"Host": f"localhost:{parts.port}"}, b"", 200),
        ("GET", base, {"Host": "evil.example"}, b"", 421),
        ("GET", base, {"Host": f"127.0.0.1:{parts.port + 1}"}, b"", 421),
        ("GET", base, {}, b"", 400),
        ("GET", base, {"Host": host, "Sec-Fetch-Site": "cross-site"}, b"", 403),
        ("GET", f"{base}live/events", {"Host": host, "Origin": "http://evil.example"}, b"", 403),
        ("GET", "/", {"Host": host}, b"", 404),
        ("GET", base.rstrip("/"), {"Host": host}, b"", 404),
        ("GET", "/wrong/live/events", {"Host": host}, b"", 404),
        ("GET", f"{base}../serve.py", {"Host": host}, b"", 404),
        ("GET", f"{base}link/1", {"Host": host}, b"", 404),
        ("GET", f"{base}link/0", {"Host": host, "Sec-Fetch-Site": "cross-site"}, b"", 403),
        ("POST", f"{base}live/press", own, b'{"question": 1, "answer": "Yes"}', 409),
        ("POST", "/wrong/live/press", own, press(), 404),
        ("POST", f"{base}live/press", {"Host": host}, press(), 403),
        ("POST", f"{base}live/press", {"Host": host, "Origin": "null"}, press(), 403),
        ("POST", f"{base}live/press", {"Host": host, "Origin": "http://evil.example"}, press(), 403),
        ("POST", f"{base}live/press", own, b"{", 400),
        ("POST", f"{base}live/press", own, b"x" * (MAX_BODY_BYTES + 1), 400),
        ("POST", f"{base}live/press", own, press(number=6), 409),
        ("POST", f"{base}live/press", own, press(place=2), 409),
        ("POST", f"{base}live/press", own, press(place=-1), 409),
    ]
    for verb, path, headers, body, status in cases:
        answered, policy = asked(served, verb, path, headers, body)
        assert answered == status, (verb, path, headers, answered)
        assert status == 400 or "default-src 'none'" in policy, (verb, path, policy)
    assert served.pressed == []
    # A document that sends itself on has no origin, so that it can do nothing here.
    assert asked(served, "GET", f"{base}link/0", {"Host": host})[1].startswith("sandbox allow-forms")
    assert asked(served, "POST", f"{base}live/press", own, press())[0] == 204
    assert served.pressed == [("Ledger", 7, True)]


@pytest.mark.anyio
async def test_a_button_answers_the_screen_that_was_seen_and_no_other():
    one = Served()
    desk, stand = one.desk, one.desk.stands[0]
    desk.show(stand, NEXT)
    for place, number, yes in ((0, 7, True), (0, 0, True), (1, 0, True), (1, 8, True)):
        with pytest.raises(NoSuchPrompt):
            await desk.press(place, number, yes=yes)
    desk.show(stand, DeviceScreen(("Press to go on",), 9, yes="Continue"))
    with pytest.raises(NoSuchPrompt, match="no button of this screen says no"):
        await desk.press(0, 9, yes=False)
    assert one.pressed == []
    views = desk.views()
    assert [view["number"] for view in (await anext(views))["devices"]] == [9, 0]
    desk.show(stand, NEXT)
    desk.show(stand, PAYMENT)
    assert [(view["number"], view["left"]) for view in (await anext(views))["devices"]] == [
        (7, "Reject"),
        (0, ""),
    ]


def test_a_person_reads_the_screens_and_presses_the_buttons_by_the_keyboard(served):
    require_browser()
    with launched() as chromium, chromium.in_use() as browser:
        context = browser.new_context(viewport=WIDE)
        complaints = Complaints(served.url)
        complaints.watch(context)
        page = context.new_page()
        page.goto(served.url)
        ledger = page.get_by_role("region", name="Ledger")
        expect(ledger.get_by_role("log")).to_have_text("Ready.")
        expect(page.get_by_role("status")).to_have_text("No device asks anything now.")
        served.show(0, PAYMENT)
        expect(page.get_by_role("status")).to_contain_text("Ledger")
        # What a device shows is text: nothing of it becomes a part of the page.
        expect(ledger.get_by_text("to tb1q<b>payee</b>", exact=True)).to_be_visible()
        assert judge(page, "virtual-devices") == []
        sign = ledger.get_by_role("button", name="Sign")
        sign.focus()
        # The screen changes under the finger: the press is for the new one, or for none.
        served.show(0, NEXT)
        expect(ledger.get_by_text("Fee 378 sat")).to_be_visible()
        expect(sign).to_be_focused()
        expect(sign).to_be_enabled()
        page.keyboard.press("Enter")
        expect(ledger.get_by_role("log")).to_have_text("Approved.")
        page.keyboard.press("Enter")
        served.show(1, PAYMENT)
        reject = page.get_by_role("region", name="Trezor").get_by_role("button", name="Reject")
        expect(reject).to_be_enabled()
        reject.press("Space")
        expect(page.get_by_role("region", name="Trezor").get_by_role("log")).to_have_text("Refused.")
        assert served.pressed == [("Ledger", 8, True), ("Trezor", 7, False)]
        assert complaints.said == []
        context.close()


def test_the_second_press_of_a_double_click_answers_nothing_that_came_after_the_first(served):
    require_browser()
    with launched() as chromium, chromium.in_use() as browser:
        page = browser.new_page()
        page.clock.install(time=0)
        page.goto(served.url)
        page.clock.pause_at(1_000)
        served.then = {7: NEXT}
        served.show(0, PAYMENT)
        expect(page.get_by_text("to tb1q<b>payee</b>", exact=True)).to_be_visible()
        page.clock.fast_forward(1_100)
        sign = page.get_by_role("region", name="Ledger").get_by_role("button", name="Sign")
        sign.click()
        expect(page.get_by_text("Fee 378 sat")).to_be_visible()
        sign.click(force=True, click_count=2)
        expect(page.locator(".lost")).to_be_hidden()
        page.clock.fast_forward(1_100)
        sign.click()
        expect(page.get_by_text("Approved.")).to_be_visible()
        assert served.pressed == [("Ledger", 7, True), ("Ledger", 8, True)]
