"""L17: a user in a hurry, who presses everything twice."""

import pytest

from custody.server.console.application import ROOT
from tests.custody.server.console.test_every_page import fill
from tests.support.asgi import asgi_client
from tests.support.console import Visitor
from tests.support.console_rows import row_of, walk
from tests.support.examples import drawn
from tests.support.hasty import WIDTHS, Hasty

# Of the pages with forms, at each width, in a run.
PAGES = 4


@pytest.mark.slow("two hundred double clicks; tests/signerd/browser tries the same guard")
def test_l17_whatever_comes_under_the_pointer_is_not_pressed_by_a_double_click(window):
    fill(window.desk)
    by_row = {}
    with asgi_client(window.desk.world.platform.asgi) as http:
        person = Visitor(http).sign_in("admin@example.org")
        for start in (f"{window.here}/", f"{ROOT}/account"):
            for path in walk(person, start):
                if person.page.all("form"):
                    by_row.setdefault(row_of("GET", path.partition("?")[0]), path)
    paths, found = sorted(by_row.values()), []
    assert len(paths) > 20
    page = window.page()
    hasty = Hasty(page, "/console/static")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        for path in drawn(paths, PAGES, of=f"hasty at {width}"):
            found += hasty.presses(f"{path} at {width}", lambda path=path: page.goto(path))
    assert found == []
