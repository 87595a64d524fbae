"""The audit log as CSV (RFC 4180), safe to open in a spreadsheet (`custody.spreadsheets`). The chain can be
verified from the file alone.
"""

import csv
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from custody.server.domain.audit import AuditRow, ChainedRow, ChainFault, Mark, chain_of, is_hash_of
from custody.spreadsheets import csv_lines, neutralise

# The specification's fields in its order, then the name and the position, which the hash covers too.
COLUMNS: Final = (
    "event_uid", "org_uid", "workspace_uid", "timestamp", "category", "action", "description", "user_uuid",
    "role_uid", "trace_id", "prev_hash", "event_hash", "user_name", "position",
)  # fmt: skip
WORDS: Final = frozenset({"category", "action", "description", "user_name"})


class NotAnExport(ValueError):
    """The file is not an export of the platform; the message says where."""


def write_csv(rows: Iterable[ChainedRow]) -> Iterator[str]:
    """The header and one line for each row, each ending in CRLF."""
    return csv_lines(COLUMNS, map(_cells, rows))


def _cells(chained: ChainedRow) -> list[str]:
    values = {
        **vars(chained.row),
        "prev_hash": b64encode(chained.prev_hash).decode(),
        "event_hash": b64encode(chained.event_hash).decode(),
    }
    return [neutralise(values[name]) if name in WORDS else str(values[name]) for name in COLUMNS]


def restore(cell: str) -> str:
    return cell.removeprefix("'")


def read_csv(lines: Iterable[str]) -> Generator[ChainedRow, None, None]:
    """The rows of an export; the file is opened with ``newline=""``. Raises NotAnExport."""
    reader = csv.reader(lines, strict=True)
    try:
        if tuple(next(reader, ())) != COLUMNS:
            raise NotAnExport("The first line does not name the columns of an export.")
        for cells in reader:
            yield _row(cells)
    except (csv.Error, ValueError, Base64Error) as error:
        if isinstance(error, NotAnExport):
            raise
        raise NotAnExport(f"Line {reader.line_num} cannot be read: {error}") from error


def _row(cells: list[str]) -> ChainedRow:
    if len(cells) != len(COLUMNS):
        raise ValueError(f"it has {len(cells)} cells instead of {len(COLUMNS)}")
    values = dict(zip(COLUMNS, cells, strict=True))
    words = {name: restore(values[name]) for name in WORDS}
    row = AuditRow(
        event_uid=values["event_uid"],
        chain_id=chain_of(values["org_uid"], values["workspace_uid"]),
        position=_number(values["position"]),
        org_uid=values["org_uid"],
        workspace_uid=values["workspace_uid"],
        timestamp=values["timestamp"],
        user_uuid=_number(values["user_uuid"]),
        role_uid=values["role_uid"],
        trace_id=values["trace_id"],
        **words,
    )
    hashes = (b64decode(values[name], validate=True) for name in ("prev_hash", "event_hash"))
    return ChainedRow(row, *hashes)


def _number(cell: str) -> int:
    if not (cell.isascii() and cell.isdigit()):
        raise ValueError(f"{cell!r} is no number")
    return int(cell)


@dataclass
class ExportSummary:
    """Counts of an export, filled while it is checked. ``gaps``: places where a filter left rows out.

    ``confirmed`` counts rows that a checkpoint names: without one, a file proves only that it agrees with
    itself.
    """

    chain_id: str = ""
    rows: int = 0
    first: int = 0
    last: int = 0
    gaps: int = 0
    confirmed: int = 0


def find_export_fault(
    rows: Iterable[ChainedRow], seen: ExportSummary, marks: dict[str, dict[int, Mark]] | None = None
) -> ChainFault | None:
    """The first row that was edited, moved or added; a row that is missing shows as a gap, in ``seen``."""
    previous: ChainedRow | None = None
    for chained in rows:
        row = chained.row
        if previous is None:
            seen.chain_id, seen.first = row.chain_id, row.position
        sentence = _fault_of(chained, previous)
        mark = (marks or {}).get(row.chain_id, {}).get(row.position)
        if sentence is None and mark is not None:
            seen.confirmed += 1
            if mark.event_hash != chained.event_hash:
                sentence = f"{mark.source} names another row at this position"
        if sentence is not None:
            return ChainFault(row.chain_id, row.position, sentence)
        if previous is not None and row.position > previous.row.position + 1:
            seen.gaps += 1
        seen.rows, seen.last, previous = seen.rows + 1, row.position, chained
    return None


def _fault_of(chained: ChainedRow, previous: ChainedRow | None) -> str | None:
    if not is_hash_of(chained.event_hash, chained.prev_hash, chained.row):
        return "the row was altered"
    if previous is None:
        return None
    if chained.row.chain_id != previous.row.chain_id:
        return "the row belongs to another chain than the one before it"
    if chained.row.position <= previous.row.position:
        return "the row does not come after the one before it"
    if chained.row.position == previous.row.position + 1 and chained.prev_hash != previous.event_hash:
        return "the row does not follow the one before it"
    return None
