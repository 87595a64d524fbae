"""Signing in through a real identity provider, in a browser: an owner sets it, a member links and uses it."""

import socket
from contextlib import ExitStack
from datetime import UTC, datetime
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from custody.server.sign_in.identity_providers import CALLBACK
from tests.custody.server.console.browser.conftest import Window, heading
from tests.support.console import served_app
from tests.support.identity import CLIENT_ID, CLIENT_SECRET
from tests.support.platform import PASSWORD, open_world
from tests.support.real_provider import HOST, authority, running

BOB = "bob@example.org"
# The provider's own pages would have their letters from there; nothing is fetched.
FONTS = "https://fonts.googleapis.com/"


def prove(page: Page, action: str) -> None:
    page.get_by_label("Your password, once more").fill(PASSWORD)
    page.get_by_role("button", name=action).click()


def at_provider(page: Page, name: str) -> None:
    """Its own forms: who signs in, and that the platform may know."""
    page.get_by_placeholder("Enter any login").fill(name)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()


def test_an_owner_sets_it_a_member_links_and_signs_in(browser, tmp_path):
    folder = tmp_path / "provider"
    ca = authority(folder)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
        issuer = stack.enter_context(running(folder, f"{origin}{CALLBACK}/1"))
        allowed = f"{HOST}:{urlsplit(issuer).port}"
        settings = {"public_url": origin, "identity_allow": allowed, "identity_ca_file": ca}
        world = stack.enter_context(open_world(tmp_path / "state", **settings))
        stack.enter_context(served_app(world.platform.asgi, listener))
        world.clock.now = datetime.now(UTC)
        world.organisation("Acme", "admin@example.org")
        world.member(1, BOB)
        forgiven = (f"elsewhere: {issuer}", f"elsewhere: {FONTS}", "console: Failed to load resource")
        window = Window(browser, None, origin, forgiven)
        stack.callback(window._open.close)

        page = window.page("/console/w/1/identity")
        window.judge(page, "identity-none")
        page.get_by_label("Issuer").fill(issuer)
        page.get_by_label("Client ID").fill(CLIENT_ID)
        page.get_by_label("Members have to use it").check()
        page.get_by_role("button", name="Set the provider").click()
        heading(page, "Set the organisation's identity provider?")
        prove(page, "Set it")
        page.get_by_role("textbox", name="Secret").fill(CLIENT_SECRET)
        # From the field: the button may scroll to where the last press was, and takes none for a second then.
        page.get_by_role("textbox", name="Secret").press("Enter")
        expect(page.get_by_role("status")).to_contain_text("never shown again")
        code = page.locator("dd.mono").first.inner_text().split()[0]

        page = window.page("/console/account", person="bob", ignore_https_errors=True)
        page.context.route(f"{FONTS}**", lambda route: route.abort())
        window.judge(page, "account-provider")
        page.get_by_role("button", name="Link Acme").click()
        prove(page, "Go on")
        at_provider(page, "bob at login")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("button", name="Unlink Acme")).to_be_visible()

        page = window.page(f"/console/sign-in?organisation={code}", person=None, ignore_https_errors=True)
        page.context.route(f"{FONTS}**", lambda route: route.abort())
        window.judge(page, "sign-in-provider")
        page.get_by_role("button", name="Sign in through it").click()
        at_provider(page, "bob at login")
        page.get_by_role("button", name="Continue").click()
        page.wait_for_url(f"{origin}/console/")
        page.get_by_role("link", name="Main").click()
        heading(page, "Main")
        expect(page.get_by_role("link", name="Your account")).to_have_count(0)
        page = window.page("/console/w/1/identity")
        expect(page.get_by_role("row", name=BOB)).to_be_visible()
        window.judge(page, "identity")
        assert (window.complained(), window.faults) == ([], [])
