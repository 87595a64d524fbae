"""P42 over the real table: rows edited, removed, reordered and cut behind the platform's back."""

from pathlib import Path

import pytest
from sqlalchemy import delete, insert, text, update

from custody.server.audit.log import AuditLog
from custody.server.audit.verification import read_through
from custody.server.rules.audit import GENESIS, Category, Event
from custody.server.rules.credentials import Caller
from custody.server.store import Store, sqlite_url
from custody.server.store.models import AuditEventRow, AuditHeadRow
from tests.support.databases import make_sqlite
from tests.support.platform import Clock

CALLER = Caller(7, 1, "alice@example.org", "trace")
TRIED = Event("TRIED", "// key {key}", Category.KEYS)


@pytest.fixture
def store(store: Store) -> Store:
    return filled(store)


def filled(store: Store) -> Store:
    numbers = iter(range(10_000))
    log = AuditLog(Clock(), lambda count: next(numbers).to_bytes(count))
    with store.write() as db:
        for number in range(5):
            log.record(db, CALLER, TRIED, None, key=f"{number}")
        log.record(db, CALLER, TRIED, None, None, 3, key="of another chain")
    return store


def tamper(store: Store, *statements) -> list[tuple[str, int]]:
    with store.write() as db:
        for statement in statements:
            db.execute(statement)
    return [(fault.where, fault.place) for fault in read_through(store).findings]


def at(position: int):
    return (AuditEventRow.chain_id == "platform") & (AuditEventRow.position == position)


@pytest.mark.parametrize(
    "values",
    [
        {"description": "key 99"},
        {"facts": '{"key":"99"}'},
        {"user_uuid": 8},
        {"trace_id": ""},
        {"timestamp": "2025-03-01T12:00:00.000Z"},
        {"event_hash": bytes(32)},
        {"prev_hash": bytes(32)},
    ],
)
def test_an_edited_row_is_named(store: Store, values: dict) -> None:
    assert tamper(store, update(AuditEventRow).where(at(3)).values(values)) == [("platform", 3)]


@pytest.mark.parametrize(
    ("written", "position"),
    [
        ("user_uuid = 1152921504606846976", 3),
        ("timestamp = 'noon'", 3),
        ("timestamp = 5", 3),
        ("timestamp = '2026-03-02T00:00:00.000+12:00'", 3),
        ("description = x'ff'", 3),
        ("description = 5", 3),
        ("facts = x'ff'", 3),
        ('facts = \'{"key": "2"}\'', 3),
        ("event_hash = 'text'", 3),
        # A text that cannot be read is named by its chain.
        ("user_name = CAST(x'ff' AS TEXT)", 1),
        ("user_name = char(55296)", 1),
    ],
)
def test_what_no_row_of_ours_holds_is_named_too(tmp_path: Path, written: str, position: int) -> None:
    """SQLite takes anything in any column. The same instant in other words would be missing from its day."""
    make_sqlite(tmp_path / "custody.db")
    store = filled(Store.open(sqlite_url(tmp_path / "custody.db")))
    try:
        sql = f"UPDATE audit_events SET {written} WHERE chain_id = 'platform' AND position = 3"
        assert tamper(store, text(sql)) == [("platform", position)]
    finally:
        store.close()


OF_THREE = AuditEventRow.chain_id == "organisation:3", AuditHeadRow.chain_id == "organisation:3"


@pytest.mark.parametrize(
    ("statement", "chain"),
    [
        *(
            (insert(AuditHeadRow).values(chain_id=name, size=0, head_hash=GENESIS), name)
            for name in ("Platform", "workspace:0", "workspace:1 ", "organisation:")
        ),
        (delete(AuditEventRow).where(OF_THREE[0]), "organisation:3"),
        (delete(AuditHeadRow).where(OF_THREE[1]), "organisation:3"),
    ],
)
def test_a_chain_that_nobody_writes_to_or_that_lost_its_rows_or_head_is_named(
    store: Store, statement, chain: str
) -> None:
    assert read_through(store).findings == ()
    assert tamper(store, statement) == [(chain, 1)]
