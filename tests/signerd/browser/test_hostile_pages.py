"""Other sites' pages in the very browser in which a person has the page open: they read nothing,
change nothing, ask nothing.

What they try is in ``hostile.js``, by name; each answers whether it got through.
"""

import pytest
from playwright.sync_api import expect

from signerd.core.states import State
from tests.support.browser import REBOUND
from tests.support.firefox import firefox
from tests.support.other_origin import NAMES, NOTHING, another_site, attempts_of
from tests.support.ported import exchange, read_answer

__all__ = ["firefox"]


@pytest.fixture(scope="module")
def elsewhere():
    with another_site() as server:
        yield server.port


def known(desk) -> tuple[object, ...]:
    """All that a request could have changed, and all that a person would have been told."""
    service = desk.daemon.service
    return (
        service.feed.last,
        desk.daemon.on_loop(service.verify_audit),
        desk.daemon.on_loop(service.apps.open_requests),
        desk.daemon.on_loop(service.apps.list_origins),
        desk.outer.bridge.asked,
        desk.outer.platform.told(),
    )


def attack(page, desk, target=None):
    """By the name of each attempt: what came of it. The digest that an approval needs is given away."""
    digest = desk.daemon.on_loop(desk.daemon.service.proposal, "p-1").digest
    return attempts_of(page, __file__, target or desk.origin, digest)


@pytest.mark.parametrize("name", NAMES)
def test_l1_l2_l3_l4_l9_l14_another_site_gets_nothing_beside_the_open_page(desk, elsewhere, name):
    desk.forgiven = ("",)
    context = desk.open_browser()
    person, page = context.new_page(), context.new_page()
    person.goto(f"{desk.origin}/proposals/p-1")
    expect(person.get_by_role("button", name="Approve")).to_be_visible()
    before = known(desk)
    page.goto(f"http://{name}:{elsewhere}/")
    came_of_it = attack(page, desk)
    assert len(came_of_it) > 40
    assert {key: value for key, value in came_of_it.items() if value not in NOTHING} == {}
    assert known(desk) == before
    # A link there opens no page of the person's.
    with page.expect_navigation():
        page.evaluate(
            "url => { const a = document.body.appendChild(document.createElement('a')); "
            "a.href = url; a.click() }",
            f"{desk.origin}/proposals/p-1",
        )
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    assert "Treasury" not in page.content()
    # Nor was the person put out, or what they look at touched.
    person.reload()
    expect(person.get_by_role("button", name="Approve")).to_be_visible()
    desk.until_state("p-1", State.WAITING_PERSON)


def test_l1_a_name_that_was_bound_to_this_machine_is_no_way_in(desk):
    desk.forgiven = ("",)
    context = desk.open_browser()
    page = context.new_page()
    port = desk.daemon.service.page_address.port
    before = known(desk)
    answer = page.goto(f"http://{REBOUND}:{port}/")
    assert answer is not None
    assert answer.status == 403
    assert "p-1" not in page.content()
    # Of the same origin as what it asks, as far as the browser knows.
    came_of_it = attack(page, desk, f"http://{REBOUND}:{port}")
    # It may read that it is refused, and nothing else.
    read = {key: value for key, value in came_of_it.items() if value not in NOTHING}
    assert [pair for pair in read.items() if "403" not in pair[1] or "p-1" in pair[1]] == []
    assert known(desk) == before


def test_l12_a_server_on_another_port_of_this_host_gets_nothing_that_opens_the_page(desk):
    """Another user's, perhaps, on the machine at which the person sits (`ssh -L`): what the browser sends it,
    it sends on to our port.
    """
    desk.forgiven = ("",)
    port = desk.daemon.service.page_address.port
    with another_site() as theirs:
        # As many of our names as it can think of, for every path.
        theirs.plants = [f"signerd-{port}=x; Path={path}" for path in ("/", "/proposals", "/v1")]
        page = desk.page("/proposals/p-1")
        expect(page.get_by_role("button", name="Approve")).to_be_visible()
        for _ in range(2):
            page.goto(f"http://127.0.0.1:{theirs.port}/")
        assert theirs.heard
        for heard in theirs.heard:
            host = desk.origin.removeprefix("http://")
            stolen = {**heard, "Host": host, "Connection": "close"}
            for path in ("/", "/proposals/p-1", "/v1/devices", "/v1/events"):
                lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in stolen.items())]
                answer = read_answer(exchange(port, "\r\n".join([*lines, "", ""]).encode("latin-1")))
                assert answer.status == 401, (path, heard)
        # The planted cookies do not lock the person out.
        page.goto(f"{desk.origin}/proposals/p-1")
        expect(page.get_by_role("button", name="Approve")).to_be_visible()
        page.get_by_role("button", name="Approve").click()
        desk.daemon.until(lambda: desk.outer.bridge.asked == 1)


def test_l12_an_address_that_looks_like_another_hosts_gets_the_secret_sent_to_no_other_host(desk, elsewhere):
    """The page's policy would stop the request; the script must not make it."""
    desk.forgiven = ("",)
    context = desk.open_browser(bypass_csp=True)
    asked = []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.goto(f"{desk.origin}//127.0.0.1:{elsewhere}/")
    expect(page.get_by_role("heading", name="Not Found")).to_be_visible()
    assert [url for url in asked if not url.startswith(f"{desk.origin}/")] == []
