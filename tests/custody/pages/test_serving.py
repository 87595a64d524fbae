"""The files that both pages serve: the third-party script is the release that the ADR names."""

import hashlib
import re
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Route

from custody.common.pages import serving
from custody.server import console
from signerd.loopback import page
from tests.support.asgi import asgi_client

ADR = Path(__file__).parents[3] / "docs" / "adr" / "0020-the-page.md"


def test_htmx_is_the_file_that_the_decision_names():
    (said,) = re.findall(r"`([0-9a-f]{64})`", ADR.read_text())
    content = (Path(serving.__file__).parent / "static" / "htmx.min.js").read_bytes()
    assert hashlib.sha256(content).hexdigest() == said


def test_a_file_is_compressed_for_a_client_that_takes_it_and_loaded_once():
    folder = Path(console.__file__).parent / "static"
    files = serving.Assets(folder)
    app = Starlette(
        routes=[Route("/{name}", lambda asked: files.answer(asked, asked.path_params["name"], {}))]
    )
    sent = 0
    with asgi_client(app) as http:
        for name in files.files:
            packed = http.get(name)
            plain = http.get(name, headers={"Accept-Encoding": "br, gzip;q=0"})
            assert plain.content == packed.content
            assert plain.headers["etag"] != packed.headers["etag"]
            assert int(plain.headers["content-length"]) == len(plain.content)
            again = http.get(name, headers={"If-None-Match": packed.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
            sent += int(packed.headers["content-length"])
    # With a page of fifty proposals, under 100 kB at first.
    assert sent < 30_000


def test_a_page_waits_for_its_own_end_before_it_is_drawn():
    (awaited,) = re.findall(
        r'<link rel="expect" href="#(\w+)" blocking="render">',
        (Path(serving.__file__).parent / "templates" / "head.html").read_text(),
    )
    layouts = [
        text
        for package in (console, page)
        for path in (Path(package.__file__).parent / "templates").glob("*.html")
        if '{% include "head.html" %}' in (text := path.read_text())
    ]
    assert len(layouts) == 4
    for text in layouts:
        assert text.endswith(f'<span id="{awaited}" hidden></span>\n</body>\n</html>\n')
