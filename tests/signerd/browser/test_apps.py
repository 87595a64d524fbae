"""Apps in a person's browser: let in by their digits, with fewer rights than they asked for, and shut out
again; docs/build/tutorial-web.md.
"""

import base64
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Queue

import pytest
from playwright.sync_api import expect

from multisig import ReceivedPsbt, signer_progress, to_version_2
from signerd.client import DaemonClient, Granted
from signerd.core.states import State
from signerd.errors import NotAllowed, NotPaired, SignerdError
from tests.support.bills import bill
from tests.support.daemons import approve
from tests.support.desk import VAULT
from tests.support.pages import DOCS, command_lines
from tests.support.wallets import ALICE
from tests.support.web import require_client, site


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


TUTORIAL = DOCS / "build" / "tutorial-web.md"


@pytest.fixture
def shop(desk, tmp_path):
    """The origin of the tutorial's page."""
    (html,) = re.findall(
        r"^```html\n(.*?)^```$", TUTORIAL.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert "http://127.0.0.1:17707" in html
    url = desk.daemon.service.page_address.url.rstrip("/")
    shutil.copytree(require_client(), tmp_path / "site" / "signerd-client")
    (tmp_path / "site" / "index.html").write_text(html.replace("http://127.0.0.1:17707", url))
    with site(tmp_path / "site") as origin:
        yield origin


def test_the_page_is_let_in_and_gets_a_signature(desk, shop):
    page = desk.browser.new_page()
    page.goto(shop)
    sign, said = page.get_by_role("button", name="Sign with signerd"), page.get_by_role("status")
    sign.click()
    (line,) = [line for line in command_lines(TUTORIAL) if line.startswith("signerd pair")]
    command = line.replace("http://127.0.0.1:8000", shop)
    expect(said).to_contain_text(command)

    page.get_by_label("PSBT").fill(base64.b64encode(to_version_2(bill())).decode())
    state = ["--state", str(desk.daemon.state)]
    with subprocess.Popen(
        [sys.executable, "-m", "signerd", *state, *command.split()[1:]],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as pair:  # fmt: skip
        desk.daemon.until(lambda: shop in desk.daemon.service.apps.origins())
        sign.click()
        expect(said).to_contain_text("Type this in signerd within ")
        told, _ = pair.communicate(said.inner_text()[-6:] + "\n", timeout=90)
    assert pair.returncode == 0, told
    assert "Shop" in told
    expect(said).to_contain_text("Look at the payment in signerd")
    imported = desk.daemon.service.journal.imported.waiting
    desk.daemon.until(lambda: [one.state for one in imported()] == [State.WAITING_PERSON])
    (psbt_id,) = desk.daemon.on_loop(lambda: [one.psbt_id for one in imported()])
    desk.daemon.on_loop(approve, desk.daemon.service, psbt_id)
    expect(said).to_have_text("Signed. Others sign as well.")
    received = ReceivedPsbt.parse(page.get_by_label("PSBT").input_value())
    assert received.version == 2
    assert signer_progress(received.psbt, VAULT, ALICE.fingerprint).is_complete
    page.close()
