"""``make demo AUTO=1 TOKENS=1``: every part real and in a process of its own,
from nothing to a confirmed transaction, and from there through the life of a token.
"""

import contextlib
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from signerd.demo.steps import END, STEPS
from tests.support.browser import launched, require_browser
from tests.support.patience import PATIENCE
from tests.support.processes import said

DEMO_SECONDS = 1800
# The platform and what its operator does (the organisation, the coins, six blocks, a block); three devices,
# three daemons. What a person does beside goes through the libraries: an interpreter takes a second to start.
MAIN_JOB, TOKEN = 11, 7
# The real program, which tells of each program that it starts (Python's reference, "Audit events table").
PROGRAM = """
import sys
def heard(event, told):
    if event == "subprocess.Popen":
        print("started", *map(str, told[1]), flush=True)
sys.addaudithook(heard)
from signerd.cli import main
main()
"""


@pytest.mark.slow("every program as a whole: test_airgap.py tries the same in less")
def test_the_main_job_and_a_token_run_unattended_and_the_confirmed_transaction_id_comes_last():
    command = [sys.executable, "-c", PROGRAM, "demo", "--auto", "--tokens"]
    heard = said(command, seconds=DEMO_SECONDS, stdin=subprocess.DEVNULL)
    *told, txid = heard.splitlines()
    assert re.fullmatch(r"[0-9a-f]{64}", txid)
    # What is compared is the same to the letter: on the page, in the terminal, on each device.
    (address,) = set(re.findall(r"compares the first address (tb1\w+)", heard))
    for device in ("Ledger of the first", "Coldcard of the second", "Trezor of the third"):
        shown = [line for line in told if f"{device} signer shows" in line]
        assert any(address in line for line in shown), shown
    confirmed = next(place for place, line in enumerate(told) if "Confirmed at height" in line)
    # The same transaction: the token's come after it.
    assert any(txid in line for line in told[:confirmed])
    assert any("The vault holds 999.50 GOLD" in line for line in told[confirmed:])
    for part, most in ((told[:confirmed], MAIN_JOB), (told[confirmed:], TOKEN)):
        started = [line for line in part if line.startswith("started")]
        assert 0 < len(started) <= most, "\n".join(started)


PRESS = """end => document.getElementById("step").textContent !== end
    && document.querySelector("button.right:not([aria-disabled=true])")?.click()"""


@contextlib.contextmanager
def killed_at_the_end(program: "subprocess.Popen[str]") -> Iterator[None]:
    """Also where the test fails: it would be waited for without an end."""
    try:
        yield
    finally:
        program.kill()


@pytest.mark.slow(
    "every program as a whole, and a browser: test_terminal.py tries the page's answers in less"
)
def test_a_browser_alone_plays_the_demo_to_its_end():
    require_browser()
    keyboard, screen = pty.openpty()
    with (
        subprocess.Popen(
            [sys.executable, "-m", "signerd", "demo"], stdin=screen, stdout=subprocess.PIPE, text=True
        ) as demo,
        killed_at_the_end(demo),
        launched() as chromium,
        chromium.in_use() as browser,
    ):
        assert demo.stdout is not None
        url = next(found[0] for line in demo.stdout if (found := re.search(r"http://127\.0\.0\.1\S+", line)))
        page = browser.new_page()
        page.goto(url)
        seen = []
        while (step := page.locator("#step").inner_text()) != END[0]:
            seen += [step] if step not in seen else []
            if step == "The first signer approves" and len(page.context.pages) == 1:
                with page.context.expect_page() as opened:
                    page.get_by_role("link", name="first signer").click()
                expect(opened.value.get_by_text("Waiting for you")).to_be_visible()
                with page.context.expect_page() as opened:
                    page.get_by_role("link", name="console").click()
                # How to sign in stays readable beside the console.
                with page.context.expect_page() as console:
                    opened.value.get_by_role("button", name="Open the console").click()
                expect(console.value.get_by_role("heading", name="Sign in")).to_be_visible()
                page.bring_to_front()
            # The answer that goes on stands right, on each device and in the story.
            page.evaluate(PRESS, END[0])
        assert set(seen) >= {title for title, _ in STEPS[:4]} | {"The second signer approves"}
        expect(page.get_by_role("button", name="Stop everything")).to_be_enabled()
        page.get_by_role("button", name="Stop everything").press("Enter")
        expect(page.get_by_role("status")).to_contain_text("The demo is over")
        assert demo.wait(PATIENCE) == 0
    os.close(keyboard)
    os.close(screen)
