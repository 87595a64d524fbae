"""What SQLite alone has: a file, its mode, and its pragmas."""

from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import OperationalError

from custody.server.store import Store, sqlite_url
from custody.server.store.models import Organisation, User
from custody.server.store.statements import Query


def test_the_disk_is_asked_to_keep_what_was_answered(tmp_path: Path) -> None:
    store = Store.open(sqlite_url(tmp_path / "custody.db"))
    with store.write() as db:
        assert db.scalar(text("PRAGMA synchronous")) == 2
        assert db.scalar(text("PRAGMA journal_mode")) == "wal"
        assert db.scalar(text("PRAGMA foreign_keys")) == 1
    store.close()


def test_a_text_that_cannot_be_read_does_not_hold_the_snapshot_that_it_was_read_from(tmp_path: Path) -> None:
    asked, names = Query(select(User.email)), Query(select(Organisation.name))
    store = Store.open(sqlite_url(tmp_path / "custody.db"))
    with store.write() as db:
        for email in ("'a'", "CAST(x'7365637265743aff' AS TEXT)"):
            db.execute(
                text(f"INSERT INTO users (email, is_operator, created_at) VALUES ({email}, 0, '2026')")
            )
    for _ in range(2):
        with pytest.raises(OperationalError, match="decode") as refused, store.read() as db:
            asked.all(db)
        assert "secret" not in f"{refused.value} {refused.value.orig}", "P49"
        with store.write() as db:
            db.execute(text("INSERT INTO organisations (name, created_at) VALUES ('new', '2026')"))
    with store.read() as db:
        assert names.all(db) == [("new",)] * 2
    store.close()


def test_another_users_programs_cannot_read_the_file(tmp_path: Path) -> None:
    store = Store.open(sqlite_url(tmp_path / "custody.db"))
    with store.write() as db:
        db.execute(text("DELETE FROM users"))
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    store.close()
    assert modes == {"custody.db": 0o600, "custody.db-wal": 0o600, "custody.db-shm": 0o600}
