"""A vault's movements and coins, as pages and as CSV files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response, StreamingResponse

from custody.pages.headers import attachment
from custody.server.console.table import Row
from custody.server.console.typed import query_day, query_sats
from custody.server.console.vaults import path_of, vault_here
from custody.server.console.visit import Visit
from custody.server.console.words import COIN_WORDS, MOVEMENT_WORDS
from custody.server.domain.errors import Invalid
from custody.spreadsheets import COIN_COLUMNS, MOVEMENT_COLUMNS, coin_cells, csv_lines, movement_cells

# A movement may spend hundreds of coins.
PAGE = 25
# Rows per call for a file: the API's most.
FILE_PAGE = 500
_TEXTS = ("kind", "status", "state", "label", "address", "txid")


def _wanted(visit: Visit, names: Sequence[str]) -> dict[str, Any]:
    """The filters that were given, as the API takes them. Raises Invalid."""
    found: dict[str, Any] = {name: visit.query(name).strip() for name in names if name in _TEXTS}
    found |= {"min_sats": query_sats(visit, "least"), "max_sats": query_sats(visit, "most")}
    if "since" in names:
        found |= {"from_time": query_day(visit, "since"), "to_time": query_day(visit, "before")}
    return {name: value for name, value in found.items() if value != ""}


MOVEMENT_FILTERS = ("kind", "status", "label", "address", "txid", "since", "before", "least", "most")
COIN_FILTERS = ("state", "address", "least", "most")


def _page(visit: Visit, path: str, filters: Sequence[str], template: str, **context: Any) -> Response:
    """A page of a list; where a filter cannot be read, an empty one that says what is wrong."""
    shown, cursor = vault_here(visit), visit.query("cursor")
    typed = {name: visit.query(name) for name in filters}
    place = {"workspace_id": visit.here.id, "vault_id": shown.id}
    found = None
    try:
        found = visit.get(path, **place, **_wanted(visit, filters), cursor=cursor or None, limit=PAGE)
    except Invalid as error:
        visit.problem = error
    query = urlencode({name: value for name, value in typed.items() if value})
    return visit.page(
        template, here="vaults", vault=shown, base=path_of(visit, shown), found=found, sought=typed,
        query=query, cursor=cursor, **context,
    )  # fmt: skip


def movements(visit: Visit) -> Response:
    return _page(visit, "vault-history", MOVEMENT_FILTERS, "vaults/movements.html", kinds=MOVEMENT_WORDS)


def coins(visit: Visit) -> Response:
    return _page(visit, "vault-coins", COIN_FILTERS, "vaults/coins.html", states=COIN_WORDS)


def movements_file(visit: Visit) -> Response:
    """Everything that the filters match, the oldest first."""
    pages = _pages(visit, "vault-history", MOVEMENT_FILTERS, {"order": "oldest"})
    return _file(
        visit, "movements", MOVEMENT_COLUMNS, pages, lambda page: map(movement_cells, page.movements)
    )


def coins_file(visit: Visit) -> Response:
    pages = _pages(visit, "vault-coins", COIN_FILTERS, {})
    return _file(visit, "coins", COIN_COLUMNS, pages, lambda page: map(coin_cells, page.coins))


def _pages(visit: Visit, path: str, filters: Sequence[str], more: Mapping[str, Any]) -> Iterator[Any]:
    """Read as they are sent: one at a time is in memory."""
    place = {"workspace_id": visit.here.id, "vault_id": visit.path_param("vault_id")}
    wanted: dict[str, Any] = {**place, **_wanted(visit, filters), **more, "limit": FILE_PAGE}
    cursor = None
    while True:
        page = visit.get(path, **wanted, cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return


def _file(
    visit: Visit,
    what: str,
    header: Sequence[str],
    pages: Iterator[Any],
    rows_of: Callable[[Any], Iterator[Sequence[str]]],
) -> Response:
    """The first page is read before the answer begins, so that a refusal is a page and no broken file."""
    first = next(pages)
    rows = chain.from_iterable(map(rows_of, chain((first,), pages)))
    headers = attachment(f"{what}-{visit.path_param('vault_id')[:8]}.csv")
    return StreamingResponse(csv_lines(header, rows), headers=headers, media_type="text/csv; charset=utf-8")


_VAULT = "/w/{workspace_id:int}/vaults/{vault_id}"
ROWS = (
    Row("GET", f"{_VAULT}/movements", movements),
    Row("GET", f"{_VAULT}/movements.csv", movements_file),
    Row("GET", f"{_VAULT}/coins", coins),
    Row("GET", f"{_VAULT}/coins.csv", coins_file),
)
