"""Pins, from a journal that is only read, whether a daemon writes it meanwhile or not."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from multisig import Network
from signerd.core.values import Pin
from signerd.journal import rows
from signerd.journal.storage import JOURNAL, open_to_read, require_today


def read_pins(folder: Path, network: Network) -> tuple[Pin, ...]:
    """The vaults that are pinned now; none where there is no journal yet. Raises JournalUnwritable."""
    if not (folder / JOURNAL).exists():
        return ()
    with closing(open_to_read(folder)) as connection:
        require_today(connection)
        return tuple(
            rows.read_pin(row, network) for row in connection.execute("SELECT * FROM pins ORDER BY name")
        )


def read_pinned_codes(folder: Path) -> Mapping[str, frozenset[str]]:
    """As ``rows.read_pinned_codes``; nothing where there is no journal yet. Raises JournalUnwritable."""
    if not (folder / JOURNAL).exists():
        return {}
    with closing(open_to_read(folder)) as connection:
        require_today(connection)
        return rows.read_pinned_codes(connection)
