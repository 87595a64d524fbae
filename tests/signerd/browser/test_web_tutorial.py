"""docs/build/tutorial-web.md: the page as it stands there, served and opened as the tutorial says."""

import base64
import re
import shutil
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from multisig import ReceivedPsbt, signer_progress, to_version_2
from signerd.core.states import State
from tests.support.bills import bill
from tests.support.daemons import approve
from tests.support.desk import VAULT
from tests.support.pages import DOCS, command_lines
from tests.support.wallets import ALICE
from tests.support.web import require_client, site

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
