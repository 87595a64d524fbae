"""Apps in a person's browser: let in by their digits, with fewer rights than they asked for,
and shut out again.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Queue

import pytest
from playwright.sync_api import expect

from signerd.client import DaemonClient, Granted
from signerd.errors import NotAllowed, NotPaired, SignerdError


@dataclass
class App:
    """A program of the person's own, which waits for their answer."""

    shown: "Queue[str]" = field(default_factory=Queue)
    answers: "Queue[Granted | SignerdError]" = field(default_factory=Queue)

    def pair(self, url: str) -> None:
        with DaemonClient.at(url) as daemon:
            try:
                self.answers.put(
                    daemon.pair(
                        "Ledger of Ours",
                        ["read", "propose", "approve"],
                        show=lambda code, _seconds: self.shown.put(code),
                    )
                )
            except SignerdError as error:
                self.answers.put(error)


@contextmanager
def asking(url: str) -> Iterator[App]:
    app = App()
    thread = threading.Thread(target=app.pair, args=(url,))
    thread.start()
    try:
        yield app
    finally:
        thread.join(20)


def test_an_app_is_let_in_by_its_digits_with_less_than_it_asked_for_and_shut_out_again(desk):
    page = desk.page("/apps")
    url = desk.daemon.service.page_address.url
    with asking(url) as app:
        digits = app.shown.get(timeout=90)
        asks = page.get_by_role("article", name="Ledger of Ours")
        expect(asks).to_be_visible()
        # Only the app's own window shows the digits: a person who could copy them
        # from here would compare nothing.
        expect(asks).not_to_contain_text(digits)
        asks.get_by_label("approve:").uncheck()
        asks.get_by_label("propose:").uncheck()
        wrong = f"{(int(digits) + 1) % 1_000_000:06}"
        asks.get_by_label("The six digits").fill(wrong)
        asks.get_by_role("button", name="Let it in").click()
        expect(asks.locator(".problem [data-code=wrong-pairing-code]").first).to_be_visible()
        asks.get_by_label("The six digits").fill(digits)
        asks.get_by_role("button", name="Let it in").click()
        expect(page.locator("#paired")).to_contain_text("may: read")
        expect(asks).to_have_count(0)
        granted = app.answers.get(timeout=90)
    assert isinstance(granted, Granted)
    assert granted.rights == ("read",)
    with DaemonClient.at(url, granted.token) as daemon:
        assert [line.psbt_id for line in daemon.proposals()] == ["p-1"]
        with pytest.raises(NotAllowed):
            daemon.approve("p-1", daemon.proposal("p-1").digest)
        page.get_by_role("button", name="End the access of Ledger of Ours").click()
        expect(page.locator("#paired")).to_contain_text("revoked")
        with pytest.raises(NotPaired):
            daemon.proposals()
