"""What SQLite alone has: a file, its mode, and its pragmas."""

from pathlib import Path

from sqlalchemy import text

from custody.server.store import Store, sqlite_url


def test_the_disk_is_asked_to_keep_what_was_answered(tmp_path: Path) -> None:
    store = Store.open(sqlite_url(tmp_path / "custody.db"))
    with store.write() as db:
        assert db.scalar(text("PRAGMA synchronous")) == 2
        assert db.scalar(text("PRAGMA journal_mode")) == "wal"
        assert db.scalar(text("PRAGMA foreign_keys")) == 1
    store.close()


def test_another_users_programs_cannot_read_the_file(tmp_path: Path) -> None:
    store = Store.open(sqlite_url(tmp_path / "custody.db"))
    with store.write() as db:
        db.execute(text("DELETE FROM users"))
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    store.close()
    assert modes == {"custody.db": 0o600, "custody.db-wal": 0o600, "custody.db-shm": 0o600}
