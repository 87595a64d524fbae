"""Pins, from a journal that is only read, whether a daemon writes it meanwhile or not."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from multisig import Network
from signerd.core.values import Pin
from signerd.journal import rows
from signerd.journal.storage import JOURNAL, open_to_read, require_today

T = TypeVar("T")


def read_pins(folder: Path, network: Network) -> tuple[Pin, ...]:
    """The vaults that are pinned now; none where there is no journal yet. Raises JournalUnwritable."""
    query = "SELECT * FROM pins ORDER BY name"
    return _read(folder, lambda journal: tuple(rows.read_pin(r, network) for r in journal.execute(query)), ())


def read_pinned_codes(folder: Path) -> Mapping[str, frozenset[str]]:
    """As ``rows.read_pinned_codes``; nothing where there is no journal yet. Raises JournalUnwritable."""
    return _read(folder, rows.read_pinned_codes, {})


def _read(folder: Path, read: Callable[[sqlite3.Connection], T], nothing: T) -> T:
    if not (folder / JOURNAL).exists():
        return nothing
    with closing(open_to_read(folder)) as connection:
        require_today(connection)
        return read(connection)
