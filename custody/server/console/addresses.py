"""The address book: paged and searched, one entry at a time, exported as a file; and importing a CSV of names
and addresses: a review of the rows, then a call per row.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import quote_plus

from starlette.responses import Response

from custody.common.labels import read_labels
from custody.common.pages.serving import HEADERS, HTML
from custody.common.recipients import alike_words
from custody.common.spreadsheets import Columns
from custody.common.text import count, name_key
from custody.schemas import address_book
from custody.schemas.address_book import (
    ADD_WHITELIST_ADDRESS,
    MAX_ADDRESS,
    MAX_NAMED,
    REMOVE_WHITELIST_ADDRESS,
    RENAME_WHITELIST_ADDRESS,
    WHITELIST_ADDRESSES,
    WhitelistAddress,
)
from custody.schemas.calls import named_calls
from custody.schemas.changes import CHANGES, SECOND_PERSON_RULE
from custody.schemas.common import MAX_ITEMS
from custody.server.address_book import canonical_address, require_name
from custody.server.console.context import PageContext, WaitsForSecondPerson
from custody.server.console.rendering import TEMPLATES, csv_file
from custody.server.console.reviews import Facts, Review, require_as_shown, shown_mark
from custody.server.console.table import Row, form, template_view
from custody.server.errors import (
    CustodyError,
    Invalid,
    RateLimited,
    SecondPersonNeeded,
)
from custody.server.proposals.propose import resembling
from custody.server.vaults.stored import place_of, vaults_at
from custody.server.web.asgi import MAX_BODY_BYTES
from multisig import Network

# Suggestions while a person types a recipient.
OFFERED = 10
BOOK_READERS = ("PAYMENT_INIT", "MANAGE_WORKSPACE")
# The paths of the book's calls.
_CHANGING: Final = frozenset(call.path for _, call in named_calls(address_book))
COLUMNS: Final[Columns] = {"name": lambda entry: entry.name, "address": lambda entry: entry.address}


def _own_vault(page: PageContext) -> Facts:
    """Said of an address of a vault of this workspace: paying it moves money and pays nobody."""
    with page.reading() as ctx:
        place = place_of(ctx.db, page.workspace.id)
        own = vaults_at(
            ctx.db, [place.workspace_id], Network(place.chain), [page.form.one("address").strip()]
        )
    return [("It is an address of", f"the vault {name} of this workspace") for name in own.values()]


def _waiting(page: PageContext) -> int:
    """How many changes of the book wait for a second person."""
    return sum(
        change.status == "PENDING" and change.workspace_id == page.workspace.id and change.path in _CHANGING
        for change in page.read(CHANGES)
    )


addresses = template_view(
    "addresses/addresses.html", rule=SECOND_PERSON_RULE, waiting=_waiting,
    entries=lambda page: page.read_page(
        WHITELIST_ADDRESSES, search=page.query("search").strip() or None, key="uid"
    ),
)  # fmt: skip


def offered(page: PageContext) -> Response:
    """For the form of a payment: the entries that match what is typed."""
    listed = page.read(WHITELIST_ADDRESSES, limit=OFFERED, search=page.query("recipient").strip() or None)
    return Response(
        TEMPLATES.render("addresses/offered.html", entries=listed), headers=HEADERS, media_type=HTML
    )


def entries_of(
    page: PageContext, which: Literal["names", "addresses"], values: Sequence[str]
) -> list[WhitelistAddress]:
    """The entries that have one of the values. A value that is too long matches none."""
    wanted = list(dict.fromkeys(value for value in values if 0 < len(value) <= MAX_ADDRESS))
    return [
        entry
        for start in range(0, len(wanted), MAX_NAMED)
        for entry in page.read(WHITELIST_ADDRESSES, **{which: wanted[start : start + MAX_NAMED]})
    ]


def labels_of(page: PageContext, addresses: Sequence[str]) -> dict[str, str]:
    """The book's names, by address; empty for a person who may not read it."""
    if not addresses or not page.workspace.may(*BOOK_READERS):
        return {}
    return {entry.address: entry.name for entry in entries_of(page, "addresses", addresses)}


def entry_page(page: PageContext) -> Response:
    """Raises NotFound."""
    number = page.path_param("uid")
    entries = page.read(WHITELIST_ADDRESSES, limit=1, after=number - 1 if number > 1 else None)
    words = "There is no such entry in this workspace's address book."
    return page.render("addresses/entry.html", entry=page.one_of(entries, "uid", "uid", words))


def export(page: PageContext) -> Response:
    """The whole book, as the import reads it."""
    return csv_file(f"address-book-{page.workspace.id}", COLUMNS, _pages(page))


def _pages(page: PageContext) -> Iterator[list[WhitelistAddress]]:
    """Read as they are sent: one at a time is in memory."""
    after = None
    while True:
        listed = page.read(WHITELIST_ADDRESSES, limit=MAX_ITEMS, after=after)
        yield listed
        if len(listed) < MAX_ITEMS:
            return
        after = listed[-1].uid


# --- importing --------------------------------------------------------------------------------------------

# Below one person's limit of writes per minute.
MAX_ROWS: Final = 250
# The confirmation sends the text urlencoded, with the second factor.
MAX_URLENCODED: Final = MAX_BODY_BYTES - 16 * 1024


@dataclass(frozen=True)
class ImportRow:
    """``does``: add, rename, nothing or refused. ``uid``: of the existing entry. ``why``: in words."""

    number: int
    name: str
    address: str
    does: str
    uid: int = 0
    why: str = ""


import_page = template_view("addresses/import.html", most=MAX_ROWS)


def read_lines(page: PageContext) -> list[ImportRow]:
    """What each row of the text would do to the book as it is now. Raises Invalid."""
    rows = _rows(_text(page))
    with page.reading() as ctx:
        place = place_of(ctx.db, page.workspace.id)
    book = page.read(WHITELIST_ADDRESSES)
    by_address = {entry.address: entry for entry in book}
    taken = {name_key(entry.name): entry.address for entry in book}
    lines: list[ImportRow] = []
    seen: set[str] = set()
    for number, (name, address) in rows:
        line = _line(Network(place.chain), number, name, address, by_address, taken)
        if line.does != "refused" and line.address in seen:
            line = ImportRow(number, name, line.address, "refused", why="an earlier row has this address")
        seen.add(line.address)
        if line.does in {"add", "rename"}:
            taken[name_key(name)] = line.address
        lines.append(line)
    new = [line.address for line in lines if line.does == "add"]
    with page.reading() as ctx:
        alike = resembling(ctx.db, place, new)
    by_itself = "If it is right, add it by itself."
    why = {address: f"{alike_words(address, known)} {by_itself}" for address, known in alike.items()}
    return [
        replace(line, does="refused", why=why[line.address]) if line.address in why else line
        for line in lines
    ]


def _text(page: PageContext) -> str:
    """The file's text, or the typed lines. Raises Invalid."""
    given = [text for text in page.form.every("csv") if text.strip()]
    if len(given) > 1:
        words = (
            "A file was chosen and lines were typed: import one, then the other. Here are the file's lines."
        )
        raise Invalid.at("/csv", words)
    return "".join(given)


def _rows(text: str) -> list[tuple[int, tuple[str, str]]]:
    """Line number, name and address; a header and empty lines are left out. Raises Invalid."""
    if "\ufffd" in text:
        words = "This is not UTF-8 text: save the list as CSV in UTF-8, and choose that file."
        raise Invalid.at("/csv", words)
    rows = _labelled(text) if text.lstrip().startswith("{") else _cells(text)
    if not rows:
        raise Invalid.at("/csv", "No row has a name and an address.")
    if len(rows) > MAX_ROWS:
        raise Invalid.at("/csv", f"There are {len(rows):,} rows: import at most {MAX_ROWS} at once.")
    if len(quote_plus(text)) > MAX_URLENCODED:
        raise Invalid.at("/csv", "The list is too long to import at once: import it in parts.")
    return rows


def _labelled(text: str) -> list[tuple[int, tuple[str, str]]]:
    """The addresses of another wallet's labels (BIP-329). Raises Invalid."""
    try:
        found = read_labels(text.encode())
    except ValueError as error:
        raise Invalid.at("/csv", f"The list {error}.") from error
    for number, fault in found.faults.items():
        raise Invalid.at("/csv", f"Line {number} is no label: {fault}.")
    addresses = ((number, each) for number, each in found.records.items() if each.type == "addr")
    return [(number, (each.label.strip(), each.ref)) for number, each in addresses if each.label]


def _cells(text: str) -> list[tuple[int, tuple[str, str]]]:
    """Raises Invalid."""
    first = text.lstrip().partition("\n")[0]
    # Spreadsheets write ";" where the comma separates decimals.
    delimiter = ";" if ";" in first and "," not in first else ","
    reader = csv.reader(text.splitlines(), strict=True, delimiter=delimiter)
    try:
        cells = list(enumerate(reader, 1))
    except csv.Error as error:
        raise Invalid.at("/csv", f"Line {reader.line_num} is not CSV: {error}.") from error
    rows = [(number, [cell.strip() for cell in row]) for number, row in cells if any(row)]
    if rows and [cell.lower() for cell in rows[0][1]] == [*COLUMNS]:
        rows = rows[1:]
    wanted = "write a name and an address, with a comma or a semicolon between"
    for number, row in rows:
        if len(row) != len(COLUMNS):
            raise Invalid.at("/csv", f"Line {number} has {count(len(row), 'cell', 'cells')}: {wanted}.")
    return [(number, (row[0].removeprefix("'"), row[1])) for number, row in rows]


def _line(
    network: Network,
    number: int,
    name: str,
    address: str,
    by_address: Mapping[str, WhitelistAddress],
    taken: Mapping[str, str],
) -> ImportRow:
    try:
        address = canonical_address(address, network)
        require_name(name)
    except CustodyError as error:
        return ImportRow(number, name, address, "refused", why=error.detail)
    if not name:
        return ImportRow(number, name, address, "refused", why="the name is missing")
    present = by_address.get(address)
    if present is not None and present.name == name:
        return ImportRow(number, name, address, "nothing", present.uid, "it is in the book")
    if taken.get(name_key(name), address) != address:
        return ImportRow(number, name, address, "refused", why="another address has this name")
    if present is not None:
        return ImportRow(number, name, address, "rename", present.uid, f"it was {present.name}")
    return ImportRow(number, name, address, "add")


def review_import(page: PageContext) -> Review:
    lines = read_lines(page)
    counts = Counter(line.does for line in lines)
    facts: tuple[tuple[str, object], ...] = (
        ("Added", counts["add"]),
        ("Renamed", counts["rename"]),
        ("Unchanged", counts["nothing"]),
        ("Refused", counts["refused"]),
        ("lines", lines),
    )
    return Review(
        "Import these addresses?", facts, "Import", template="addresses/import_review.html",
        pinned=(shown_mark(*lines),),
    )  # fmt: skip


def import_lines(page: PageContext) -> Response:
    """One call per row: a refused row undoes none before it. Raises StateConflict where the rows would now do
    something other than the review showed.
    """
    lines = read_lines(page)
    require_as_shown(page, *lines)
    done: list[tuple[ImportRow, str]] = []
    for line in lines:
        if line.does in {"nothing", "refused"}:
            done.append((line, line.why))
            continue
        try:
            done.append((line, _act(page, line)))
        except SecondPersonNeeded:
            raise
        except RateLimited:
            done.append((line, "left out: you reached your limit of writes per minute. Import it later."))
            break
        except CustodyError as error:
            done.append((line, f"refused: {error.detail}"))
    return page.render("addresses/imported.html", done=done)


def _act(page: PageContext, line: ImportRow) -> str:
    try:
        if line.does == "rename":
            page.act(RENAME_WHITELIST_ADDRESS, uid=line.uid, name=line.name)
            return "renamed"
        page.act(ADD_WHITELIST_ADDRESS, nth=line.number, name=line.name, address=line.address)
    except WaitsForSecondPerson:
        return "waits for a second person"
    return "added"


_HERE = "/w/{workspace_id:int}/addresses"
_ONE = _HERE + "/{uid:int}"
_IMPORT = _HERE + "/import"
ROWS = (
    Row(
        "POST", _IMPORT, import_lines, again=import_page, review=review_import, has_file=True, has_page=True,
        acts=(ADD_WHITELIST_ADDRESS, RENAME_WHITELIST_ADDRESS),
    ),
    Row("GET", _HERE, addresses),
    Row("GET", "/w/{workspace_id:int}/parts/addresses", offered),
    form(
        _HERE, ADD_WHITELIST_ADDRESS, addresses, "The address is in the book.", to="addresses", asks="Add",
        warns="Compare the address with its owner, over another channel than the one it came by.",
        beside=_own_vault,
    ),
    Row("GET", _HERE + "/export", export),
    Row("GET", _ONE, entry_page),
    form(
        _ONE + "/name", RENAME_WHITELIST_ADDRESS, entry_page, "The name is changed.", asks="Change the name",
    ),
    form(
        _ONE + "/remove", REMOVE_WHITELIST_ADDRESS, entry_page, "The address is removed.", to="addresses",
        asks="Remove",
        warns="A vault that pays only the address book no longer pays it. Tokens' whitelists do not change.",
    ),
)  # fmt: skip
