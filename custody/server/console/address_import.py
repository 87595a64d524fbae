"""Importing a CSV of names and addresses into the address book: a review of the rows, then a call per row."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus

from starlette.responses import Response

from custody.schemas.address_book import WhitelistAddress
from custody.server.console.addresses import COLUMNS, entries
from custody.server.console.table import Review, Row, require_as_shown, shown_mark
from custody.server.console.visit import Visit, WaitsForSecondPerson
from custody.server.domain.address_book import canonical_address, name_key, require_name
from custody.server.domain.errors import (
    CustodyError,
    Invalid,
    RateLimited,
    SecondPersonNeeded,
    WrongNetworkAddress,
)
from custody.server.web.asgi import MAX_BODY_BYTES
from custody.text import network_words
from multisig import Network

# Below one person's limit of writes per minute.
MAX_ROWS: Final = 250
# The confirmation sends the text urlencoded, with the second factor.
MAX_URLENCODED: Final = MAX_BODY_BYTES - 16 * 1024


@dataclass(frozen=True)
class Line:
    """``does``: add, rename, nothing or refused. ``uid``: of the existing entry. ``why``: in words."""

    number: int
    name: str
    address: str
    does: str
    uid: int = 0
    why: str = ""


def import_page(visit: Visit) -> Response:
    return visit.page("addresses/import.html", here="addresses", most=MAX_ROWS)


def read_lines(visit: Visit) -> list[Line]:
    """What each row of the text would do to the book as it is now. Raises Invalid."""
    rows = _rows(_text(visit))
    book = entries(visit)
    by_address = {entry.address: entry for entry in book}
    taken = {name_key(entry.name): entry.address for entry in book}
    lines: list[Line] = []
    seen: set[str] = set()
    for number, (name, address) in rows:
        line = _line(visit, number, name, address, by_address, taken)
        if line.does != "refused" and line.address in seen:
            line = Line(number, name, line.address, "refused", why="an earlier row has this address")
        seen.add(line.address)
        if line.does in {"add", "rename"}:
            taken[name_key(name)] = line.address
        lines.append(line)
    return lines


def _text(visit: Visit) -> str:
    """The file's text, or the typed lines. Raises Invalid."""
    given = [text for text in visit.form.every("csv") if text.strip()]
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
    first = text.lstrip().partition("\n")[0]
    # Spreadsheets write ";" where the comma separates decimals.
    delimiter = ";" if ";" in first and "," not in first else ","
    reader = csv.reader(text.splitlines(), strict=True, delimiter=delimiter)
    try:
        cells = list(enumerate(reader, 1))
    except csv.Error as error:
        raise Invalid.at("/csv", f"Line {reader.line_num} is not CSV: {error}.") from error
    rows = [(number, [cell.strip() for cell in row]) for number, row in cells if any(row)]
    if rows and tuple(cell.lower() for cell in rows[0][1]) == COLUMNS:
        rows = rows[1:]
    if not rows:
        raise Invalid.at("/csv", "No row has a name and an address.")
    if len(rows) > MAX_ROWS:
        raise Invalid.at("/csv", f"There are {len(rows):,} rows: import at most {MAX_ROWS} at once.")
    if len(quote_plus(text)) > MAX_URLENCODED:
        raise Invalid.at("/csv", "The list is too long to import at once: import it in parts.")
    for number, row in rows:
        if len(row) != len(COLUMNS):
            raise Invalid.at("/csv", f"Line {number} has {len(row)} cells: write a name and an address.")
    return [(number, (row[0].removeprefix("'"), row[1])) for number, row in rows]


def _line(
    visit: Visit,
    number: int,
    name: str,
    address: str,
    by_address: Mapping[str, WhitelistAddress],
    taken: Mapping[str, str],
) -> Line:
    try:
        address = _canonical(address, visit.here.entry.workspace_info.net)
        require_name(name)
    except CustodyError as error:
        return Line(number, name, address, "refused", why=error.detail)
    if not name:
        return Line(number, name, address, "refused", why="the name is missing")
    present = by_address.get(address)
    if present is not None and present.name == name:
        return Line(number, name, address, "nothing", present.uid, "it is in the book")
    if taken.get(name_key(name), address) != address:
        return Line(number, name, address, "refused", why="another address has this name")
    if present is not None:
        return Line(number, name, address, "rename", present.uid, f"it was {present.name}")
    return Line(number, name, address, "add")


def _canonical(address: str, net: str) -> str:
    """On any network that the workspace may be on; the API's call knows which one. Raises Invalid,
    WrongNetworkAddress.
    """
    chains = [chain for chain in Network if (chain is Network.MAINNET) == (net == "mainnet")]
    for chain in chains[:-1]:
        try:
            return canonical_address(address, chain)
        except CustodyError:
            continue
    try:
        return canonical_address(address, chains[-1])
    except WrongNetworkAddress as error:
        words = f"the address is of another network: this workspace is on {network_words(net)}"
        raise WrongNetworkAddress(words) from error


def review_import(visit: Visit) -> Review:
    lines = read_lines(visit)
    counts = {
        does: sum(line.does == does for line in lines) for does in ("add", "rename", "nothing", "refused")
    }
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


def import_lines(visit: Visit) -> Response:
    """One call per row: a refused row undoes none before it. Raises StateConflict where the rows would now do
    something other than the review showed.
    """
    lines = read_lines(visit)
    require_as_shown(visit, *lines)
    done: list[tuple[Line, str]] = []
    for line in lines:
        if line.does in {"nothing", "refused"}:
            done.append((line, line.why))
            continue
        try:
            done.append((line, _act(visit, line)))
        except SecondPersonNeeded:
            raise
        except RateLimited:
            done.append((line, "left out: you reached your limit of writes per minute. Import it later."))
            break
        except CustodyError as error:
            done.append((line, f"refused: {error.detail}"))
    return visit.page("addresses/imported.html", here="addresses", done=done)


def _act(visit: Visit, line: Line) -> str:
    ids: dict[str, Any] = {"workspace_id": visit.here.id}
    try:
        if line.does == "rename":
            visit.post("rename-whitelist-address", **ids, uid=line.uid, name=line.name)
            return "renamed"
        visit.post("add-whitelist-address", nth=line.number, **ids, name=line.name, address=line.address)
    except WaitsForSecondPerson:
        return "waits for a second person"
    return "added"


_HERE = "/w/{workspace_id:int}/addresses/import"
ROWS = (
    Row("GET", _HERE, import_page),
    Row("POST", _HERE, import_lines, again=import_page, review=review_import, steps_up=True, has_file=True),
)
