"""Past proposals, from a journal that is only read, whether a daemon writes it meanwhile or not."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from multisig import MultisigError, Network, Psbt, inspect
from signerd.core.audit import Entry
from signerd.core.checks.case import InspectedCase
from signerd.core.review import HARD_LIMITS
from signerd.core.signing import signing_of
from signerd.core.tokens import Screen
from signerd.core.values import Limits, OwnKey, Pin, ReviewContext, Snapshot
from signerd.errors import JournalCorrupted
from signerd.journal import rows
from signerd.journal.books import ScreenBook
from signerd.journal.keys import KeyBook
from signerd.journal.storage import JOURNAL, fault_of, open_to_read, require_today


@dataclass(frozen=True)
class History:
    """The whole chain; what the platform called each proposal's vault; its quorum; and what can be judged:
    readable, of a vault that is pinned now. ``pinned``: as ``rows.read_pinned_codes``.
    """

    entries: tuple[Entry, ...]
    vaults: Mapping[str, str]
    quorums: Mapping[str, str | None]
    pinned: Mapping[str, frozenset[str]]
    cases: Mapping[str, InspectedCase]


def read_history(folder: Path, network: Network) -> History:
    """Raises JournalCorrupted (it stays where it is), JournalUnwritable."""
    with closing(open_to_read(folder)) as connection:
        # One look: what the daemon writes meanwhile is for the next.
        connection.execute("BEGIN")
        fault = fault_of(connection)
        if fault is not None:
            raise JournalCorrupted(f"the journal is damaged ({fault})")
        require_today(connection)
        pins = {
            pin.vault.verification_code: pin
            for pin in (rows.read_pin(row, network) for row in connection.execute("SELECT * FROM pins"))
        }
        book = KeyBook(connection, network)
        keys = (*book.registered(), *(former.own for former in book.former()))
        return _read(connection, network, pins, keys)


def _read(
    connection: sqlite3.Connection, network: Network, pins: Mapping[str, Pin], own_keys: tuple[OwnKey, ...]
) -> History:
    vaults, quorums, cases, screens = {}, {}, {}, ScreenBook(connection)
    for row in connection.execute(f"{rows.RECORD_COLUMNS} ORDER BY p.rowid"):
        snapshot = rows.read_record(row).snapshot
        vaults[snapshot.psbt_id] = snapshot.vault_id
        quorums[snapshot.psbt_id] = row["quorum"]
        pin = pins.get(row["quorum"])
        # What was seen last is taken for what was there then.
        screen = None if pin is None else screens.of(pin.own_key.fingerprint)
        case = _case(snapshot, pin, own_keys, network, screen)
        if case is not None:
            cases[snapshot.psbt_id] = case
    pinned = rows.read_pinned_codes(connection)
    return History(tuple(rows.audit_entries(connection)), vaults, quorums, pinned, cases)


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


def _case(
    snapshot: Snapshot,
    pin: Pin | None,
    own_keys: tuple[OwnKey, ...],
    network: Network,
    screen: Screen | None,
) -> InspectedCase | None:
    context = ReviewContext(
        network=network,
        limits=Limits(),
        pin=pin,
        claimed_descriptor=None,
        own_keys=own_keys,
        screen=screen,
    )
    signing = signing_of(snapshot, context)
    if signing is None or (pin is None and not snapshot.is_of_profile):
        return None
    try:
        psbt = Psbt.parse(snapshot.psbt)
    except MultisigError:
        return None
    inspection = inspect(psbt, signing.policy, network=network, limits=HARD_LIMITS)
    return InspectedCase(snapshot, psbt, context, pin, inspection, signing)
