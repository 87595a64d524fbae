"""The address book by the console: pages, search, changes; a CSV in and out."""

import pytest

from custody.common.labels import Label, write_labels
from custody.server import calls
from custody.server.errors import IdempotencyInProgress
from tests.support.custody import CAFE, SHOP, ok
from tests.support.look_alikes import alike


@pytest.fixture
def path(here):
    return f"{here}/addresses/import"


def book(desk):
    found = ok(desk.admin.get("/api/v1/get-whitelist-addresses", workspace_id=desk.workspace_id))
    return {entry["name"]: entry["address"] for entry in found}


def test_a_form_that_is_still_being_worked_on_does_not_come_back_with_another_key(
    desk, browse, here, monkeypatch
):
    """With it, what the first press asked for could be made twice."""
    person = browse("admin").open(f"{here}/addresses").send(f"{here}/addresses", name="Shop", address=SHOP)

    def is_under_way(*_given, **_more):
        raise IdempotencyInProgress("A request with this Idempotency-Key is being worked on.")

    monkeypatch.setattr(calls, "answer", is_under_way)
    person.confirm(f"{here}/addresses", status=409)
    assert 'name="key"' not in person.html


def test_an_import_shows_each_row_first_and_then_acts_on_them(desk, browse, here, path):
    desk.enter("Old name", SHOP)
    text = f'name,address\r\nShop,{SHOP}\r\n"\'=1+1",{CAFE}\r\nAgain,{CAFE}\r\nWrong,bcrt1q\r\n,{CAFE}\r\n'
    person = browse("admin").open(path).send(path, csv=text)
    assert [(cells[1], cells[3].partition(":")[0]) for cells in person.rows] == [
        ("Shop", "renamed"),
        ("=1+1", "added"),
        ("Again", "refused"),
        ("Wrong", "refused"),
        ("", "refused"),
    ]
    assert book(desk) == {"Old name": SHOP}
    person.confirm(path)
    assert [cells[3].partition(":")[0] for cells in person.rows][:2] == ["renamed", "added"]
    assert book(desk) == {"Shop": SHOP, "=1+1": CAFE}
    exported = person.http.get(f"{here}/addresses/export")
    assert exported.text == f"name,address\r\nShop,{SHOP}\r\n'=1+1,{CAFE}\r\n"
    person.open(path).send(path, csv=exported.text)
    assert person.facts["Unchanged"] == "2"


def test_s37_a_look_alike_is_entered_by_itself_by_who_has_compared_the_two(desk, browse, here, path):
    other = alike(SHOP)
    desk.enter("Shop", SHOP)
    person = browse("admin").open(path).send(path, csv=f"Rent,{other}\nCafé,{CAFE}\nBar,{alike(CAFE)}")
    assert [cells[3].partition(":")[0] for cells in person.rows] == ["refused", "added", "refused"]
    person.says(f"{other} looks like {SHOP}, which", "add it by itself", f"{alike(CAFE)} looks like {CAFE}")
    person.confirm(path)
    assert book(desk) == {"Shop": SHOP, "Café": CAFE}
    at = f"{here}/addresses"
    person.open(at).send(at, name="Rent", address=other, status=409)
    person.says(f"{other} looks like {SHOP}, which")
    person.send(at, name="Rent", address=other, resembles=SHOP)
    assert person.facts["Only resembles"] == SHOP
    person.confirm(at)
    assert book(desk)["Rent"] == other
    person.open(at).send(at, name="Own", address=desk.vault["address"])
    assert person.facts["It is an address of"] == "the vault Treasury of this workspace"


def test_an_import_that_would_do_something_else_by_now_is_looked_at_again(desk, browse, path):
    person = browse("admin").open(path).send(path, csv=f"Shop,{SHOP}")
    desk.enter("Supplier", SHOP)
    person.confirm(path, status=409)
    assert "would now do something else" in person.words
    person.send(path)
    assert "it was Supplier" in person.words
    assert book(desk) == {"Supplier": SHOP}


def test_a_csv_file_is_imported_without_a_script(desk, browse, path):
    person = browse("admin").open(path)
    person.send_file(path, "\ufeffname;address\r\nCafé;".encode() + CAFE.encode())
    assert [cells[1] for cells in person.rows] == ["Café"]
    person.confirm(path)
    assert book(desk) == {"Café": CAFE}
    person.open(path)
    person.send_file(path, f"Café,{CAFE}".encode(), csv=f"Shop,{SHOP}", status=422)
    assert "A file was chosen and lines were typed" in person.page.by_id("csv-problem").words
    person.send_file(path, b"", csv=f"Shop,{SHOP}")
    assert [cells[1] for cells in person.rows] == ["Shop"], "no file is chosen"


def test_the_addresses_of_another_wallets_labels_are_imported_after_the_same_review(desk, browse, path):
    desk.enter("Old name", SHOP)
    labels = [
        Label("tx", "ab" * 32, "Rent"),
        Label("addr", CAFE.upper(), "Café"),
        Label("addr", SHOP, "Shop"),
    ]
    person = browse("admin").open(path)
    person.send_file(path, write_labels(labels))
    assert [cells[3].partition(":")[0] for cells in person.rows] == ["added", "renamed"]
    person.confirm(path)
    assert book(desk) == {"Shop": SHOP, "Café": CAFE}


def test_what_is_no_list_of_addresses_is_refused_with_what_to_do(browse, path):
    person = browse("admin")
    for content, words, status in (
        ("Café,b".encode("cp1252"), "This is not UTF-8 text", 422),
        ("a,b".encode("utf-16"), "This is not UTF-8 text", 422),
        (b"a,b\r\n" * 251, "251 rows: import at most 250 at once", 422),
        (b"a,b\r\n" * 30_000, "Send a long list in parts", 413),
        (b"\n", "No row", 422),
        (b"a,b,c", "3 cells", 422),
        (b"a", "Line 1 has 1 cell: write a name and an address, with a comma", 422),
        (b'a,b\n"a', "Line 2 is not CSV", 422),
        (b'{"type": "tx"}', "Line 1 is no label: its ref is no tx", 422),
        (b"{" + b"\n" * 60_000, "lines: split it", 422),
    ):
        person.open(path).send_file(path, content, status=status)
        assert words in person.words


def test_a_list_passes_its_confirmation_or_is_refused_before_its_review(browse, path):
    """Urlencoded, a character of Chinese is nine bytes instead of three."""
    person = browse("admin")
    for rows, status in ((100, 200), (150, 422)):
        names = (f"{'龍' * 99}{number}" for number in range(rows))
        content = "\n".join(f"{name},bcrt1q" for name in names).encode()
        person.open(path).send_file(path, content, status=status)
        if status == 200:
            person.confirm(path)
    assert "import it in parts" in person.page.by_id("csv-problem").words
