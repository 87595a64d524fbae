"""What both pages share: the fields of a submitted form, figures and names as HTML, and the files that they
serve.
"""

import hashlib
import re
import unicodedata
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Route

from custody.common.pages import figures, serving
from custody.common.pages.rendering import FORM, FORM_WITH_FILE, Fields
from custody.server import console
from signerd.loopback import page
from tests.support.asgi import asgi_client

WITH_FILE = f"{FORM_WITH_FILE}; boundary=edge"


def part(name, value):
    return b'--edge\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (name, value)


def with_file(body):
    return Fields.read_with_file(WITH_FILE, body, 3)


def test_both_kinds_of_form_have_at_most_so_many_fields():
    fields, parts = b"a=1&a=1&a=1", part(b"a", b"1") * 3
    values = {"a": ["1"] * 3}
    found = with_file(part(b"a", b"1") + part(b"a", b"2") + b"--edge--")
    assert found.one("a") == "1", "of one name the first counts"
    assert Fields.read(FORM, fields, 3).values == with_file(parts + b"--edge--\r\n").values == values
    with pytest.raises(ValueError, match="fields"):
        Fields.read(FORM, fields + b"&b=1", 3)
    with pytest.raises(ValueError, match="fields"):
        with_file(parts + part(b"b", b"1") + b"--edge--\r\n")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", None),
        (part(b"a", b"1"), "no whole form"),
        (b"before" + part(b"a", b"1") + b"--edge--", "no whole form"),
        (b"--edge\r\nContent-Disposition: form-data\r\n\r\n1\r\n--edge--", "without a name"),
        (b'--edge\r\nContent-Disposition: form-data; name="a"\r\n--edge--', "without a name"),
        (part(b"a", b"1\r\n--edge\r\n2") + b"--edge--", "without a name"),
        (part(b"a", b"1\r\n--edge--\r\n2") + b"--edge--", "without a name"),
        (part(b"a", b"\xff") + b"--edge--", "utf-8"),
        (part(b"\xff", b"1") + b"--edge--", "utf-8"),
    ],
)
def test_a_body_that_is_no_whole_form_is_refused(body, why):
    with pytest.raises(ValueError, match=why):
        with_file(body)


def test_a_boundary_counts_at_a_lines_start_alone():
    found = with_file(part(b"a", b"1 --edge-- 2\n--edge\r--edge") + b"--edge--")
    assert found.values == {"a": ["1 --edge-- 2\n--edge\r--edge"]}


SATS = st.integers(min_value=-(10**18), max_value=10**18)


def words(html) -> str:
    return re.sub(r"<[^>]*>", "", html)


@given(SATS)
@example(1)
def test_an_amount_says_both_units_and_they_agree(sats):
    shown = words(figures.amount(sats)).replace(",", "").replace(figures.MINUS, "-")
    btc, raw, more = re.fullmatch(r"(-?\d+\.\d{8}) BTC (-?\d+) sat(s?)", shown).groups()
    assert bool(more) == (abs(sats) != 1)
    assert int(raw) == sats
    assert int(btc.replace(".", "")) == sats


@given(st.text(st.characters(categories=["Ll", "Lu", "Nd"]), max_size=100))
def test_an_address_is_whole_and_is_copied_as_it_is(text):
    assert words(figures.address(text)) == text
    assert all(len(group) <= figures.ADDRESS_GROUP for group in figures.grouped(text))


@given(st.text(max_size=60))
def test_l8_no_text_of_others_becomes_markup_or_moves_what_is_read(text):
    for shown in (
        figures.address(text),
        figures.hexadecimal(text),
        figures.moment(text),
        figures.sentence(text),
    ):
        inside = re.sub(r"</?(span|wbr|time|code)( [a-z]+=\"[^\"<>]*\")*>", "", shown)
        assert "<" not in inside
        assert ">" not in inside
        assert not [char for char in shown if unicodedata.category(char) in {"Cf", "Cc", "Zl", "Zp"}]


def test_what_is_to_be_typed_stands_apart_from_the_sentence():
    assert figures.sentence("<b>: run `signerd login`, or `x`.") == (
        "&lt;b&gt;: run <code>signerd login</code>, or <code>x</code>."
    )
    assert figures.sentence("a ` alone") == "a ` alone"


def test_a_time_is_local_with_utc_beside_it():
    shown = figures.moment("2026-01-02T03:04:05.678+00:00")
    here = datetime.fromisoformat("2026-01-02T03:04:05+00:00").astimezone()
    assert 'datetime="2026-01-02T03:04:05.678000+00:00"' in shown
    assert 'title="2026-01-02 03:04:05 UTC"' in shown
    assert words(shown) == f"{here:%-d %b %Y, %H:%M:%S %Z}"


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
