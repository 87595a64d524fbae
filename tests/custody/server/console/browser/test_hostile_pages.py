"""Other sites' pages in the very browser in which a person has the console open: they read nothing and change
nothing. What stays in the browser once the person has left.

What they try is in ``hostile.js``, by name; each answers whether it got through.
"""

import pytest
from playwright.sync_api import Page, expect

from custody.server.store.models import AuditEventRow, JobRow, SignInSessionRow, UserRow
from tests.support.browser import NARROW, REBOUND
from tests.support.other_origin import NOTHING, another_site, attempts_of


@pytest.fixture(scope="module")
def elsewhere():
    with another_site() as server:
        yield server.port


def known(window) -> dict[str, int]:
    """All that a request could change: the log, the sessions, the accounts, the mails."""
    return {
        model.__name__: len(window.desk.rows(model))
        for model in (AuditEventRow, JobRow, UserRow, SignInSessionRow)
    }


def attack(page: Page, window, token: str, target: str = "") -> dict[str, str]:
    return attempts_of(page, __file__, target or window.origin, window.here, window.desk.vault["id"], token)


def opened(window) -> tuple[Page, Page, str]:
    """A person at work; another window of theirs; the token of their forms."""
    window.forgiven = ("",)
    person = window.page("/console/account")
    token = person.locator("form[action='/console/sign-out'] input[name=form_token]").input_value()
    person.goto(f"{window.here}/")
    return person, person.context.new_page(), token


# Of the same site, which gets the cookie sent along, and of another one.
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_p78_another_site_gets_nothing_beside_the_open_console(window, elsewhere, name):
    person, page, token = opened(window)
    page.goto(f"http://{name}:{elsewhere}/")
    before = known(window)
    came_of_it = attack(page, window, token)
    assert len(came_of_it) > 80
    assert {key: value for key, value in came_of_it.items() if value not in NOTHING} == {}
    assert known(window) == before
    # Nor was the person put out.
    person.reload()
    expect(person.get_by_role("heading", level=1, name="Main")).to_be_visible()
    # A link of another site arrives without the session.
    page.evaluate("url => { location = url }", f"{window.origin}{window.here}/")
    page.wait_for_url("**/console/**")
    is_same_site = name == "127.0.0.1"
    expect(page.get_by_role("heading", level=1, name="Main" if is_same_site else "Sign in")).to_be_visible()


def test_p78_a_name_that_was_bound_to_this_machine_has_no_session_and_no_form(window):
    _, page, token = opened(window)
    target = window.origin.replace("127.0.0.1", REBOUND)
    page.goto(f"{target}{window.here}/")
    expect(page.get_by_role("heading", level=1, name="Sign in")).to_be_visible()
    before = known(window)
    # Of the same origin as what it asks, as far as the browser knows: it reads what is open to everybody.
    came_of_it = attack(page, window, token, target)
    read = {key: value for key, value in came_of_it.items() if value not in NOTHING}
    assert [pair for pair in read.items() if "Treasury" in pair[1]] == []
    assert known(window) == before


def test_p82_the_way_back_after_a_sign_out_shows_nothing(window):
    page = window.page(f"{window.here}/", viewport=NARROW)
    expect(page.get_by_text("Treasury")).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    expect(page.get_by_role("link", name="Your account")).not_to_be_visible()
    page.get_by_text("Menu", exact=True).click()
    page.get_by_role("link", name="Your account").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_contain_text("You are signed out.")
    for _ in range(2):
        page.go_back()
        expect(page.get_by_role("heading", level=1, name="Sign in")).to_be_visible()
        assert "Treasury" not in page.content()
