"""The address book by the console: pages, search, changes; a CSV in and out."""

import pytest

from custody.server import calls
from custody.server.errors import IdempotencyInProgress
from tests.support.custody import CAFE, SHOP, ok


@pytest.fixture
def here(desk):
    return f"/console/w/{desk.workspace_id}/addresses"


def book(desk):
    found = ok(desk.admin.get("/api/v1/get-whitelist-addresses", workspace_id=desk.workspace_id))
    return {entry["name"]: entry["address"] for entry in found}


def add(desk, name, address):
    body = {"workspace_id": desk.workspace_id, "name": name, "address": address}
    return ok(desk.admin.post("/api/v1/add-whitelist-address", body))["uid"]


def test_an_address_is_added_renamed_and_removed(desk, browse, here):
    person = browse("admin").open(here)
    person.send(here, name="Shop", address=f" {SHOP} ")
    assert (person.facts["Address"], book(desk)) == (SHOP, {})
    person.confirm(here)
    assert book(desk) == {"Shop": SHOP}
    one = f"{here}/1"
    person.open(one).send(f"{one}/name", name="The shop").confirm(f"{one}/name")
    assert book(desk) == {"The shop": SHOP}
    person.send(f"{one}/remove").confirm(f"{one}/remove")
    assert (book(desk), "The book is empty." in person.words) == ({}, True)


def test_a_form_that_is_still_being_worked_on_does_not_come_back_with_another_key(
    desk, browse, here, monkeypatch
):
    """With it, what the first press asked for could be made twice."""
    person = browse("admin").open(here).send(here, name="Shop", address=SHOP)

    def is_under_way(*_given, **_more):
        raise IdempotencyInProgress("A request with this Idempotency-Key is being worked on.")

    monkeypatch.setattr(calls, "answer", is_under_way)
    person.confirm(here, status=409)
    assert "This form was sent a moment ago" in person.words
    assert 'name="key"' not in person.html


def test_an_import_shows_each_row_first_and_then_acts_on_them(desk, browse, here):
    add(desk, "Old name", SHOP)
    text = f'name,address\r\nShop,{SHOP}\r\n"\'=1+1",{CAFE}\r\nAgain,{CAFE}\r\nWrong,bcrt1q\r\n,{CAFE}\r\n'
    person = browse("admin").open(f"{here}/import").send(f"{here}/import", csv=text)
    assert [(cells[1], cells[3].partition(":")[0]) for cells in person.rows] == [
        ("Shop", "renamed"),
        ("=1+1", "added"),
        ("Again", "refused"),
        ("Wrong", "refused"),
        ("", "refused"),
    ]
    assert book(desk) == {"Old name": SHOP}
    person.confirm(f"{here}/import")
    assert [cells[3].partition(":")[0] for cells in person.rows][:2] == ["renamed", "added"]
    assert book(desk) == {"Shop": SHOP, "=1+1": CAFE}
    exported = person.http.get(f"{here}/export")
    assert exported.text == f"name,address\r\nShop,{SHOP}\r\n'=1+1,{CAFE}\r\n"
    person.open(f"{here}/import").send(f"{here}/import", csv=exported.text)
    assert person.facts["Unchanged"] == "2"


def test_an_import_that_would_do_something_else_by_now_is_looked_at_again(desk, browse, here):
    person = browse("admin").open(f"{here}/import").send(f"{here}/import", csv=f"Shop,{SHOP}")
    add(desk, "Supplier", SHOP)
    person.confirm(f"{here}/import", status=409)
    assert "would now do something else" in person.words
    assert book(desk) == {"Supplier": SHOP}
    person.send(f"{here}/import")
    assert "it was Supplier" in person.words
    person.confirm(f"{here}/import")
    assert book(desk) == {"Shop": SHOP}


def test_a_csv_file_is_imported_without_a_script(desk, browse, here):
    person = browse("admin").open(f"{here}/import")
    person.send_file(f"{here}/import", "\ufeffname;address\r\nCafé;".encode() + CAFE.encode())
    assert [cells[1] for cells in person.rows] == ["Café"]
    person.confirm(f"{here}/import")
    assert book(desk) == {"Café": CAFE}
    person.open(f"{here}/import").send_file(f"{here}/import", b"", csv=f"Shop,{SHOP}")
    assert [cells[1] for cells in person.rows] == ["Shop"], "no file is chosen"
    person.open(f"{here}/import")
    person.send_file(f"{here}/import", f"Café,{CAFE}".encode(), csv=f"Shop,{SHOP}", status=422)
    assert "A file was chosen and lines were typed" in person.page.by_id("csv-problem").words


@pytest.mark.parametrize(
    ("content", "words", "status"),
    [
        ("Café,b".encode("cp1252"), "This is not UTF-8 text", 422),
        ("a,b".encode("utf-16"), "This is not UTF-8 text", 422),
        (b"a,b\r\n" * 300, "300 rows: import at most 250 at once", 422),
        (b"a,b\r\n" * 30_000, "Send a long list in parts", 413),
    ],
)
def test_a_file_that_is_no_list_is_refused_with_what_to_do(browse, here, content, words, status):
    person = browse("admin").open(f"{here}/import")
    person.send_file(f"{here}/import", content, status=status)
    assert words in person.words


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "No row"), ("a,b,c", "3 cells"), ('a,b\n"a', "Line 2 is not CSV"), ("a,b\n" * 251, "251 rows")],
)
def test_what_is_no_list_of_addresses_is_refused_and_kept(browse, here, text, words):
    person = browse("admin").open(f"{here}/import").send(f"{here}/import", csv=text, status=422)
    assert words in person.page.by_id("csv-problem").words


def test_a_list_passes_its_confirmation_or_is_refused_before_its_review(browse, here):
    """Urlencoded, a character of Chinese is nine bytes instead of three."""
    person = browse("admin")
    for rows, status in ((100, 200), (150, 422)):
        names = (f"{'龍' * 99}{number}" for number in range(rows))
        content = "\n".join(f"{name},bcrt1q" for name in names).encode()
        person.open(f"{here}/import").send_file(f"{here}/import", content, status=status)
        if status == 200:
            person.confirm(f"{here}/import")
    assert "import it in parts" in person.page.by_id("csv-problem").words
