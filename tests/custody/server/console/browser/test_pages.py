"""Each page that links lead to, once, with what axe finds at both widths; a quarter of them in a fast run."""

from tests.custody.server.console.test_every_page import fill
from tests.support.asgi import asgi_client
from tests.support.console import Visitor
from tests.support.console_rows import row_of, walk
from tests.support.examples import drawn


def test_nothing_is_found_against_any_page(window):
    fill(window.desk)
    paths = {}
    with asgi_client(window.desk.world.platform.asgi) as http:
        person = Visitor(http).sign_in("admin@example.org")
        for start in (f"{window.here}/", "/console/"):
            for path in walk(person, start):
                paths.setdefault(row_of("GET", path.partition("?")[0]), path)
    assert len(paths) > 40
    page = window.page()
    for path in drawn([*paths.values()], len(paths), of=__name__):
        page.goto(path)
        window.judge(page, path.removeprefix("/console/").replace("/", "-"))
    page = window.page("/console/sign-in", person=None)
    for path in ("sign-in", "register", "forgotten-password", "reset-password", "nowhere"):
        page.goto(f"/console/{path}")
        window.judge(page, path)
