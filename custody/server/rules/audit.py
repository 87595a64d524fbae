"""The audit chain: the bytes that are hashed, and how a broken chain is found; and the log as CSV (RFC 4180),
safe to open in a spreadsheet (`custody.common.spreadsheets`), from which the chain can be verified alone.

``event_hash = SHA256("audit-v1" ‖ prev_hash ‖ JCS(row without its hashes))``; the first row follows 32 zero
bytes. JCS is RFC 8785; rows hold text and integers only, for which the encoding is short.
"""

import csv
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final

from custody.common.spreadsheets import csv_lines
from custody.common.text import count
from custody.server.rules.limits import policy_words
from multisig.canonical_json import JsonValue, canonical_json, parse_canonical

PREFIX = b"audit-v1"
GENESIS = bytes(32)

PLATFORM_CHAIN = "platform"


class Category(StrEnum):
    """What an event is about. SIGNING is the specification's word; the others follow it."""

    SIGN_IN = "SIGN_IN"
    ACCESS = "ACCESS"
    PEOPLE = "PEOPLE"
    KEYS = "KEYS"
    VAULTS = "VAULTS"
    ADDRESS_BOOK = "ADDRESS_BOOK"
    ONBOARDING = "ONBOARDING"
    PROPOSALS = "PROPOSALS"
    FORWARDING = "FORWARDING"
    TOKENS = "TOKENS"
    SIGNING = "SIGNING"
    CHAIN = "CHAIN"
    PURCHASES = "PURCHASES"
    WEBHOOKS = "WEBHOOKS"
    AUDIT = "AUDIT"
    JOBS = "JOBS"


Facts = Mapping[str, Any]

# Those with a sentence for people, by the action and the names of the facts.
_EVENTS: Final[dict[tuple[str, frozenset[str]], "Event"]] = {}


@dataclass(frozen=True)
class Event:
    """What can happen. Its row stores facts, of which the sentence is made. Pages show what stands before
    ``//``, and no page of a workspace shows an event that has nothing there; the row's description has both.

    A fact stands in braces. The last word of its name says what it is: ``role`` and ``new_role`` are ids of
    roles. Of ``[to {name}|to nobody]`` the first part stays if its facts are there (not null, false or
    empty), else the second, which may be missing. A fact that is true or false has no words of its own.
    ``{paid}`` is no fact: a page puts in whom the payment pays.

    An action with several sentences has several events, each with facts of other names.
    """

    action: str
    sentence: str
    category: Category = Category.PEOPLE

    def __post_init__(self) -> None:
        if self.says:
            same = _EVENTS.setdefault((self.action, self.names), self)
            assert same == self, f"{self.action} with these facts has another sentence already"

    @property
    def names(self) -> frozenset[str]:
        return frozenset(_FACT.findall(self.sentence)) - {"paid"}

    @property
    def says(self) -> str:
        return self.sentence.partition("//")[0].rstrip()

    def describe(self, facts: Facts) -> str:
        parts = (part.strip() for part in chosen(self.sentence, facts).split("//"))
        texts = {name: _text(facts[name], name) for name in facts}
        return "; ".join(filter(None, parts)).format_map(texts)


def event_of(action: str, facts: Facts) -> Event | None:
    return _EVENTS.get((action, frozenset(facts)))


def stored_facts(text: object) -> Facts:
    """Of a row. Empty where it was altered: the log shows such a row all the same."""
    try:
        facts = parse_canonical(text.encode()) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def paid_by(facts: Facts) -> str:
    """The proposal whose payees are ``{paid}``."""
    return str(facts.get("proposal"))


def chosen(sentence: str, facts: Facts) -> str:
    """The sentence with one part of each choice."""

    def part(choice: re.Match[str]) -> str:
        are_there = all(_is_there(facts.get(name)) for name in _FACT.findall(choice[1]))
        return choice[1] if are_there else choice[2] or ""

    return _CHOICE.sub(part, sentence)


def _is_there(fact: JsonValue) -> bool:
    return fact is not None and fact is not False and fact not in ("", [])


def kind_of(name: str) -> str:
    """Of a fact, by the last word of its name."""
    return name.rpartition("_")[2]


def _text(value: JsonValue, name: str) -> str:
    match value:
        case None | bool():
            return ""
        case dict():
            return policy_words(value)
        case list():
            return ", ".join(map(str, value)) or "nothing"
        case int() if kind_of(name) == "coins":
            return count(value, "coin", "coins")
    return _UNITS.get(kind_of(name), "{}").format(value)


_UNITS: Final = {"user": "user {}", "sats": "{} sat"}
_FACT: Final = re.compile("{([a-z_]+)}")
_CHOICE: Final = re.compile(r"\[([^]|]*)(?:\|([^]]*))?\]")


def chain_of(org_uid: str, workspace_uid: str) -> str:
    """The one chain an event belongs to: the workspace's, else the organisation's, else the platform's."""
    if workspace_uid:
        return f"workspace:{workspace_uid}"
    return f"organisation:{org_uid}" if org_uid else PLATFORM_CHAIN


def is_chain(chain_id: object) -> bool:
    """Whether ``chain_of`` can return this name. Another program may have written into the database."""
    return isinstance(chain_id, str) and _CHAIN.fullmatch(chain_id) is not None


_CHAIN = re.compile("platform|(organisation|workspace):[1-9][0-9]{0,18}")


@dataclass(frozen=True)
class AuditRow:
    """A row as it is hashed. ``timestamp`` is RFC 3339 in UTC with milliseconds; ``position`` counts from 1;
    ``facts`` is a JSON object in its canonical form.
    """

    event_uid: str
    chain_id: str
    position: int
    org_uid: str
    workspace_uid: str
    timestamp: str
    category: str
    action: str
    description: str
    facts: str
    user_uuid: int
    user_name: str
    role_uid: str
    trace_id: str


@dataclass(frozen=True)
class ChainedRow:
    row: AuditRow
    prev_hash: bytes
    event_hash: bytes

    @property
    def values(self) -> dict[str, Any]:
        """As it is shown and exported, by column: the hashes in base64."""
        hashes = {"prev_hash": self.prev_hash, "event_hash": self.event_hash}
        return vars(self.row) | {name: b64encode(hashed).decode() for name, hashed in hashes.items()}


@dataclass(frozen=True)
class AttestedHash:
    """What the row at a position must hash to, and which checkpoint says so ("checkpoint 7 of …")."""

    event_hash: bytes
    source: str


@dataclass(frozen=True)
class ChainFault:
    """The first thing that is wrong with a chain, and where."""

    chain_id: str
    position: int
    sentence: str


def event_hash(prev_hash: bytes, row: AuditRow) -> bytes:
    return sha256(PREFIX + prev_hash + canonical_json(vars(row))).digest()


def is_hash_of(hashed: bytes, prev_hash: bytes, row: AuditRow) -> bool:
    """Whether the row hashes to ``hashed``. False also where the stored values have types that cannot be
    hashed.
    """
    try:
        return hashed == event_hash(prev_hash, row)
    except (TypeError, ValueError):
        return False


def find_fault(
    chain_id: str,
    rows: Iterable[ChainedRow],
    size: int,
    head_hash: bytes,
    marks: Mapping[int, AttestedHash] | None = None,
) -> ChainFault | None:
    """Reads a chain in order of position and names the first row that was edited, removed, reordered or cut.

    ``size`` and ``head_hash`` are the stored head. An attacker who rewrites the rows and the head
    consistently is caught by ``marks``: the row hashes, by position, of checkpoints that are kept elsewhere.
    """
    marks = marks or {}
    previous, position, vouched = GENESIS, 0, 0
    for chained in rows:
        position += 1
        sentence = _fault_of(chained, chain_id, position, previous)
        if sentence is not None:
            return ChainFault(chain_id, position, sentence)
        previous = chained.event_hash
        if position in marks:
            if marks[position].event_hash != previous:
                sentence = (
                    f"the chain was rewritten somewhere from row {vouched + 1} to row {position}: "
                    f"{marks[position].source} names another row {position}"
                )
                return ChainFault(chain_id, vouched + 1, sentence)
            vouched = position
    return _fault_at_end(chain_id, position, previous, (size, head_hash), marks)


def _fault_at_end(
    chain_id: str, position: int, last: bytes, head: tuple[int, bytes], marks: Mapping[int, AttestedHash]
) -> ChainFault | None:
    if position != head[0]:
        return ChainFault(
            chain_id, position + 1, f"the chain should have {head[0]} rows but ends after {position}"
        )
    if last != head[1]:
        return ChainFault(chain_id, position, "the last row is not the one that the head names")
    missing = max(marks, default=0)
    if missing > position:
        sentence = f"the chain was cut after row {position}: {marks[missing].source} names {missing} rows"
        return ChainFault(chain_id, position + 1, sentence)
    return None


def _fault_of(chained: ChainedRow, chain_id: str, position: int, previous: bytes) -> str | None:
    if chained.row.position != position:
        return f"row {position} is missing: row {chained.row.position} follows"
    if chained.row.chain_id != chain_id:
        return "the row belongs to another chain"
    if chained.prev_hash != previous:
        return "the row does not follow the one before it"
    if not is_hash_of(chained.event_hash, previous, chained.row):
        return "the row was altered"
    return None


# The specification's fields in its order, then what the hash covers too.
COLUMNS: Final = (
    "event_uid", "org_uid", "workspace_uid", "timestamp", "category", "action", "description", "user_uuid",
    "role_uid", "trace_id", "prev_hash", "event_hash", "user_name", "position",
    "facts",
)  # fmt: skip


class NotAnExport(ValueError):
    """The file is not an export of the platform; the message says where."""


def write_csv(rows: Iterable[ChainedRow]) -> Iterator[str]:
    """The header and one line for each row, each ending in CRLF."""
    return csv_lines(COLUMNS, (list(map(str, itemgetter(*COLUMNS)(row.values))) for row in rows))


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
    values: dict[str, Any] = dict(zip(COLUMNS, map(restore, cells), strict=True))
    hashes = [b64decode(values.pop(name), validate=True) for name in ("prev_hash", "event_hash")]
    values |= {name: _number(values[name]) for name in ("position", "user_uuid")}
    chain_id = chain_of(values["org_uid"], values["workspace_uid"])
    return ChainedRow(AuditRow(**values, chain_id=chain_id), *hashes)


def _number(cell: str) -> int:
    if not (cell.isascii() and cell.isdigit()):
        raise ValueError(f"{cell!r} is no number")
    return int(cell)


@dataclass
class ExportSummary:
    """Counts of an export, filled while it is checked. ``gaps``: places where a filter left rows out.

    ``confirmed`` counts rows that a checkpoint names, ``confirmed_rows`` these and those before each up to a
    gap: without one, a file proves only that it agrees with itself.
    """

    chain_id: str = ""
    rows: int = 0
    first: int = 0
    last: int = 0
    gaps: int = 0
    confirmed: int = 0
    confirmed_rows: int = 0


def find_export_fault(
    rows: Iterable[ChainedRow], seen: ExportSummary, marks: dict[str, dict[int, AttestedHash]] | None = None
) -> ChainFault | None:
    """The first row that was edited, moved or added; a row that is missing shows as a gap, in ``seen``."""
    previous: ChainedRow | None = None
    unnamed = 0
    for chained in rows:
        row = chained.row
        if previous is None:
            seen.chain_id, seen.first = row.chain_id, row.position
        sentence = _line_fault(chained, previous)
        mark = (marks or {}).get(row.chain_id, {}).get(row.position)
        if sentence is None and mark is not None:
            seen.confirmed += 1
            if mark.event_hash != chained.event_hash:
                sentence = f"{mark.source} names another row at this position"
        if sentence is not None:
            return ChainFault(row.chain_id, row.position, sentence)
        if previous is not None and row.position > previous.row.position + 1:
            seen.gaps += 1
            unnamed = 0
        unnamed += 1
        if mark is not None:
            seen.confirmed_rows, unnamed = seen.confirmed_rows + unnamed, 0
        seen.rows, seen.last, previous = seen.rows + 1, row.position, chained
    return None


def _line_fault(chained: ChainedRow, previous: ChainedRow | None) -> str | None:
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
