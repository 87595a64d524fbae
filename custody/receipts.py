"""Receipts: each response about a workspace includes the head of its audit log, and a client remembers it.
A log that was cut or rewritten since is shorter than the remembered head, or has another hash there. The
client compares each response with what it knew when it sent the request, and notices a platform that no
longer sends the header. A platform that repeats an old head, or invents heads, is only found by
``custody audit verify --receipts FILE``, which compares the whole log.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Self

from custody.private_files import write_private

HEADER: Final = "X-Audit-Head"
_FORM: Final = re.compile(r"((?:organisation|workspace):[1-9][0-9]{0,18}) ([1-9][0-9]{0,15}) ([0-9a-f]{64})")
# One for each workspace and organisation. A client remembers the first ones of more.
MAX_CHAINS: Final = 1_000
# Paths of GET endpoints; the platform has fewer.
MAX_SOURCES: Final = 200
MAX_LINE_BYTES: Final = 256
_MAX_FILE_BYTES: Final = (MAX_CHAINS + MAX_SOURCES + 1) * MAX_LINE_BYTES
# The prefixes of a file's other lines.
_PLATFORM: Final = "platform "
_SOURCE: Final = "from "


class NoReceipts(ValueError):
    """The file is not one of receipts."""


@dataclass(frozen=True)
class Receipt:
    """``size``: the number of rows in the chain; ``hash``: the last row's, in hex."""

    chain: str
    size: int
    hash: str

    def __str__(self) -> str:
        return f"{self.chain} {self.size} {self.hash}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """None where the text is not a receipt."""
        found = _FORM.fullmatch(text)
        return None if found is None else cls(found[1], int(found[2]), found[3])


@dataclass(frozen=True)
class HeadMismatch:
    """The platform's head is not a continuation of an earlier one."""

    known: Receipt
    told: Receipt

    def __str__(self) -> str:
        if self.told.size < self.known.size:
            how = f"ends with row {self.told.size}, and had {self.known.size} rows before"
        else:
            how = f"has another row {self.told.size} than before"
        return f"the platform's audit log of {self.known.chain} {how}: it was cut or rewritten"


@dataclass(frozen=True)
class MissingReceipts:
    """``source``: a path whose responses had a receipt before, and now have none."""

    source: str

    def __str__(self) -> str:
        return (
            f"the platform no longer says in its answers to {self.source} where its audit log ends: a cut "
            "of the log would go unnoticed"
        )


@dataclass(frozen=True)
class Record:
    """The content of a file. ``platform``: its address, empty where it is not known. ``sources``: the paths
    whose responses had a receipt.
    """

    platform: str = ""
    receipts: Mapping[str, Receipt] = field(default_factory=dict)
    sources: frozenset[str] = frozenset()

    def lines(self) -> list[str]:
        first = [f"{_PLATFORM}{self.platform}"] if self.platform else []
        return [
            *first,
            *(f"{_SOURCE}{path}" for path in sorted(self.sources)),
            *map(str, self.receipts.values()),
        ]


def _ignore(_what: object) -> None:
    """The default of both callbacks."""


class Receipts:
    """The receipts of one client. ``on_new`` is called with the new record, ``on_doubt`` with what is
    wrong.
    """

    def __init__(
        self,
        known: Record = Record(),
        *,
        on_new: Callable[[Record], None] = _ignore,
        on_doubt: Callable[[HeadMismatch | MissingReceipts], None] = _ignore,
    ) -> None:
        # Replaced, never modified: a thread that waits for a response keeps the record it began with.
        self._record = known
        self._on_new = on_new
        self._on_doubt = on_doubt

    @classmethod
    def in_file(
        cls, path: Path, platform: str, on_doubt: Callable[[HeadMismatch | MissingReceipts], None] = _ignore
    ) -> Self:
        """Stored in a file. The receipts of another ``platform`` are ignored, and replaced at this one's
        first receipt. A full disk fails no call: what could not be stored is known as long as the client
        lives. Raises OSError, NoReceipts.
        """
        kept = read_record(path) if path.exists() else Record()
        known = kept if kept.platform == platform else Record(platform)
        return cls(known, on_new=partial(_keep, path), on_doubt=on_doubt)

    @property
    def known(self) -> Mapping[str, Receipt]:
        """The newest of each chain."""
        return self._record.receipts

    def hear(self, text: str, asked_with: Mapping[str, Receipt], source: str = "") -> None:
        """Check the header of a response. ``asked_with``: what was known when the request was sent, so that
        responses that arrive out of order raise no doubt. ``source``: the path of a successful GET.
        """
        told = Receipt.parse(text)
        if told is None:
            if source in self._record.sources:
                self._on_doubt(MissingReceipts(source))
            return
        before = asked_with.get(told.chain)
        if before is not None and not _goes_on(before, told):
            self._on_doubt(HeadMismatch(before, told))
            return
        record = _with_source(_with(self._record, told), source)
        if record != self._record:
            self._record = record
            self._on_new(record)


def _with(record: Record, told: Receipt) -> Record:
    newest = record.receipts.get(told.chain)
    is_new = len(record.receipts) < MAX_CHAINS if newest is None else told.size > newest.size
    return replace(record, receipts={**record.receipts, told.chain: told}) if is_new else record


def _with_source(record: Record, source: str) -> Record:
    if not source or len(record.sources) >= MAX_SOURCES or len(source) + len(_SOURCE) >= MAX_LINE_BYTES:
        return record
    return replace(record, sources=record.sources | {source})


def _keep(path: Path, record: Record) -> None:
    with suppress(OSError):
        write_record(path, record)


def _goes_on(before: Receipt, told: Receipt) -> bool:
    return told.size > before.size or told == before


def read_record(path: Path) -> Record:
    """Raises OSError, NoReceipts."""
    with path.open("rb") as file:
        lines = file.read(_MAX_FILE_BYTES + 1).decode(errors="replace").splitlines()
    platform, sources, receipts = "", set[str](), dict[str, Receipt]()
    for number, line in enumerate(lines, 1):
        if line.startswith(_PLATFORM):
            platform = line.removeprefix(_PLATFORM)
        elif line.startswith(_SOURCE):
            sources.add(line.removeprefix(_SOURCE))
        elif (receipt := Receipt.parse(line)) is not None:
            receipts[receipt.chain] = receipt
        else:
            raise NoReceipts(f"{path}: line {number} is not a receipt")
    return Record(platform, receipts, frozenset(sources))


def write_record(path: Path, record: Record) -> None:
    """Atomically, readable by its owner alone. Raises OSError."""
    write_private(path, "".join(f"{line}\n" for line in record.lines()).encode())
