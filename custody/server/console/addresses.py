"""The address book: paged and searched, one entry at a time, and exported as a file."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Literal

from starlette.responses import Response, StreamingResponse

from custody.pages.headers import HEADERS, HTML, attachment
from custody.schemas.address_book import MAX_ADDRESS, MAX_NAMED, MAX_PAGE, WhitelistAddress
from custody.server.console.rendering import TEMPLATES
from custody.server.console.table import Review, Row
from custody.server.console.visit import Visit
from custody.server.domain.errors import NotFound
from custody.spreadsheets import csv_lines, neutralise

PAGE = 50
# Suggestions while a person types a recipient.
OFFERED = 10
COLUMNS = ("name", "address")


def addresses(visit: Visit) -> Response:
    search, after = visit.query("search").strip(), visit.place_in_list("after")
    found = entries(visit, limit=PAGE + 1, search=search or None, after=after)
    waiting = [
        change
        for change in visit.get("changes", workspace_id=visit.here.id)
        if change.status == "PENDING"
        and change.workspace_id == visit.here.id
        and change.path.endswith("-whitelist-address")
    ]
    return visit.page(
        "addresses/addresses.html",
        here="addresses",
        entries=found[:PAGE],
        next_after=found[PAGE - 1].uid if len(found) > PAGE else 0,
        search=search,
        is_first=after is None,
        rule=visit.get("second-person-rule", workspace_id=visit.here.id),
        waiting=len(waiting),
    )


def offered(visit: Visit) -> Response:
    """For the form of a payment: the entries that match what is typed."""
    found = entries(visit, limit=OFFERED, search=visit.query("recipient").strip() or None)
    return Response(
        TEMPLATES.render("addresses/offered.html", entries=found), headers=HEADERS, media_type=HTML
    )


def entries(visit: Visit, **query: Any) -> list[WhitelistAddress]:
    found: list[WhitelistAddress] = visit.get("get-whitelist-addresses", workspace_id=visit.here.id, **query)
    return found


def entries_of(
    visit: Visit, which: Literal["names", "addresses"], values: Sequence[str]
) -> list[WhitelistAddress]:
    """The entries that have one of the values. A value that is too long matches none."""
    asked = list(dict.fromkeys(value for value in values if 0 < len(value) <= MAX_ADDRESS))
    return [
        entry
        for start in range(0, len(asked), MAX_NAMED)
        for entry in entries(visit, **{which: asked[start : start + MAX_NAMED]})
    ]


def entry_page(visit: Visit) -> Response:
    return visit.page("addresses/entry.html", here="addresses", entry=_entry(visit))


def _entry(visit: Visit) -> WhitelistAddress:
    """Raises NotFound."""
    found = entry_of(visit, visit.path_param("uid"))
    if found is None:
        raise NotFound("There is no such entry in this workspace's address book.")
    return found


def entry_of(visit: Visit, number: int) -> WhitelistAddress | None:
    found = entries(visit, limit=1, after=number - 1 if number > 1 else None)
    return found[0] if found and found[0].uid == number else None


def review_new(visit: Visit) -> Review:
    facts = (("Name", visit.form.one("name")), ("Address", visit.form.one("address").strip()))
    warning = "Compare the address with its owner, over another channel than the one it came by."
    return Review("Add this address?", facts, "Add", warning)


def add(visit: Visit) -> Response:
    form = visit.form
    visit.post(
        "add-whitelist-address",
        workspace_id=visit.here.id,
        name=form.one("name"),
        address=form.one("address"),
    )
    return visit.go(f"{visit.here.path}/addresses", "The address is in the book.")


def review_name(visit: Visit) -> Review:
    found = _entry(visit)
    facts = (
        ("Address", found.address),
        ("Current name", found.name),
        ("New name", visit.form.one("name")),
    )
    return Review("Change this name?", facts, "Change the name")


def rename(visit: Visit) -> Response:
    number = visit.path_param("uid")
    visit.post(
        "rename-whitelist-address", workspace_id=visit.here.id, uid=number, name=visit.form.one("name")
    )
    return visit.go(f"{visit.here.path}/addresses/{number}", "The name is changed.")


def review_removal(visit: Visit) -> Review:
    found = _entry(visit)
    facts = (("Name", found.name), ("Address", found.address))
    warning = "A vault that pays only the address book no longer pays it. Tokens' whitelists do not change."
    return Review("Remove this address?", facts, "Remove", warning)


def remove(visit: Visit) -> Response:
    visit.post("remove-whitelist-address", workspace_id=visit.here.id, uid=visit.path_param("uid"))
    return visit.go(f"{visit.here.path}/addresses", "The address is removed.")


def export(visit: Visit) -> Response:
    """The whole book, safe to open in a spreadsheet, and as the import reads it. The first page is read
    before the answer begins, so that a refusal is a page.
    """
    pages = _pages(visit)
    rows = ((neutralise(each.name), each.address) for page in chain([next(pages)], pages) for each in page)
    headers = attachment(f"address-book-{visit.here.id}.csv")
    return StreamingResponse(csv_lines(COLUMNS, rows), headers=headers, media_type="text/csv; charset=utf-8")


def _pages(visit: Visit) -> Iterator[list[WhitelistAddress]]:
    """Read as they are sent: one at a time is in memory."""
    after = None
    while True:
        page = entries(visit, limit=MAX_PAGE, after=after)
        yield page
        if len(page) < MAX_PAGE:
            return
        after = page[-1].uid


_HERE = "/w/{workspace_id:int}/addresses"
_ONE = _HERE + "/{uid:int}"
ROWS = (
    Row("GET", _HERE, addresses),
    Row("GET", "/w/{workspace_id:int}/parts/addresses", offered),
    Row("POST", _HERE, add, again=addresses, review=review_new, steps_up=True),
    Row("GET", _HERE + "/export", export),
    Row("GET", _ONE, entry_page),
    Row("POST", _ONE + "/name", rename, again=entry_page, review=review_name, steps_up=True),
    Row("POST", _ONE + "/remove", remove, again=entry_page, review=review_removal, steps_up=True),
)
