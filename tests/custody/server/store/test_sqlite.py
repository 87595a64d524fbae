"""SQLite only: a file, its mode, and its pragmas."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import column, insert, literal_column, select, table, text
from sqlalchemy.exc import InvalidRequestError, OperationalError

from custody.server.store import Store, sqlite_url
from custody.server.store.models import OrganisationRow, UserRow
from custody.server.store.store import after_commit

NOTES = table("notes", column("said"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_disk_is_asked_to_keep_what_was_answered(store: Store) -> None:
    with store.write() as db:
        assert db.scalar(text("PRAGMA synchronous")) == 2
        assert db.scalar(text("PRAGMA journal_mode")) == "wal"
        assert db.scalar(text("PRAGMA foreign_keys")) == 1


def test_a_text_that_cannot_be_read_does_not_hold_the_snapshot_that_it_was_read_from(store: Store) -> None:
    with store.write() as db:
        for email in ("'a'", "CAST(x'7365637265743aff' AS TEXT)"):
            db.execute(insert(UserRow).values(email=literal_column(email), is_operator=False, created_at=NOW))
    for _ in range(2):
        with pytest.raises(OperationalError, match="decode") as refused, store.read() as db:
            db.scalars(select(UserRow.email)).all()
        assert "secret" not in f"{refused.value} {refused.value.orig}", "P49"
        with store.write() as db:
            db.execute(text("INSERT INTO organisations (name, created_at) VALUES ('new', '2026')"))
    with store.read() as db:
        assert db.scalars(select(OrganisationRow.name)).all() == ["new"] * 2


def test_what_sqlite_rolls_back_by_itself_is_neither_committed_nor_gone_on_with(store: Store) -> None:
    """Where the disk is full, SQLite undoes the transaction: code that ignores the error must not be told
    of a commit.
    """
    told: list[str] = []

    def fill() -> None:
        with store.write() as db:
            after_commit(db, lambda: told.append("committed"))
            db.execute(text("CREATE TABLE notes (said TEXT)"))
            db.execute(insert(NOTES), {"said": "before"})
            pages = db.scalar(text("PRAGMA page_count"))
            db.execute(text(f"PRAGMA max_page_count = {pages}"))
            with pytest.raises(OperationalError, match="full"):
                db.execute(insert(NOTES), {"said": "x" * 1_000_000})
            with pytest.raises(InvalidRequestError):
                db.execute(
                    text("INSERT INTO users (email, is_operator, created_at) VALUES ('after', 0, '2026')")
                )

    with pytest.raises(InvalidRequestError):
        fill()
    assert told == []
    with store.read() as db:
        assert db.scalar(text("SELECT count(*) FROM sqlite_master WHERE name = 'notes'")) == 0
        assert db.scalars(select(UserRow.email)).all() == []


def test_another_users_programs_cannot_read_the_file(tmp_path: Path) -> None:
    store = Store.open(sqlite_url(tmp_path / "custody.db"))
    with store.write() as db:
        db.execute(text("DELETE FROM users"))
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    store.close()
    assert modes == {"custody.db": 0o600, "custody.db-wal": 0o600, "custody.db-shm": 0o600}
