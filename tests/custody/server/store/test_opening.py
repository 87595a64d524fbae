"""Which URLs open a database, and that none of them is repeated where it may hold a password (P49)."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from sqlalchemy import text

from custody.server.app import Settings
from custody.server.domain.errors import Outdated
from custody.server.store import CannotOpen, Store, sqlite_url
from custody.server.store.opening import open_database

SECRET = "hunter2"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "no url",
        "mysql://u:hunter2@localhost/custody",
        "postgresql+asyncpg://u:hunter2@localhost/custody",
        # An @ that is not percent-encoded cuts the password in two.
        "postgresql://u:x@hunter2:y@localhost/custody",
        "postgresql://u:x@hunter2@:a/b:c@localhost/custody",
        "postgresql://u:hunter2@localhost:port/custody",
        "postgresql://u:hunter2@localhost",
        "postgresql://u@localhost/custody?password=hunter2",
        "postgresql://u:hunter2@localhost/custody?options=-c%20fsync%3Doff",
        "postgresql://u:hunter2@db.example.org/custody",
        "postgresql://u:hunter2@/custody?host=db.example.org",
        "postgresql://u:hunter2@192.0.2.7/custody",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file.db?mode=hunter2",
    ],
)
def test_what_cannot_be_used_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(CannotOpen) as refused:
        open_database(url)
    assert SECRET not in f"{refused.value} {refused.value.hint} {refused.value.__cause__!r}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2@localhost/custody",
        "postgresql+psycopg://u:hunter2@127.0.0.1:5432/custody",
        "postgresql://u:hunter2@[::1]/custody",
        "postgresql://u:hunter2@/custody?host=/run/postgresql",
        "postgresql://u:hunter2@db.example.org/custody?sslmode=verify-full&sslrootcert=/etc/custody/ca.pem",
        "postgresql://u:hunter2@db/custody?sslmode=disable",
    ],
)
def test_what_can_be_used_keeps_its_password_to_itself(url: str) -> None:
    database = open_database(url)
    assert database.writing.url.password == SECRET
    assert SECRET not in f"{database!r} {database.writing!r} {Store(database)!r} {Store(database).__dict__!r}"


def test_a_server_that_does_not_answer_is_named_without_the_password() -> None:
    """Port 1 of this machine: nobody listens there."""
    with pytest.raises(CannotOpen, match="refused") as refused:
        Store.open("postgresql://u:hunter2@127.0.0.1:1/custody")
    assert (
        SECRET
        not in f"{refused.value} {refused.value.hint} {refused.value.__cause__!r} {refused.value.__cause__}"
    )


def test_the_settings_keep_it_to_themselves(tmp_path: Path, monkeypatch) -> None:
    url = "postgresql://u:hunter2@localhost/custody"
    monkeypatch.setenv("CUSTODY_DATABASE_URL", url)
    found = Settings(state=tmp_path)
    assert found.database == url
    assert SECRET not in f"{found!r} {found} {found.model_dump()}"
    with pytest.raises(ValidationError) as incomplete:
        Settings()
    assert SECRET not in str(incomplete.value)


def test_without_a_url_it_is_a_file_in_the_state_folder(tmp_path: Path) -> None:
    folder = tmp_path / "100% of them? #1"
    folder.mkdir()
    Store.open(Settings(state=folder, database_url=None).database).close()
    assert (folder / "custody.db").is_file()
    Store.open(sqlite_url(folder / "custody.db")).close()


def test_a_database_of_a_newer_version_is_refused_in_words(database: str) -> None:
    """And one that is migrated under a running process is written to no more."""
    running = Store.open(database)
    assert not running.is_outdated()
    with running.write() as db:
        db.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert running.is_outdated()
    with pytest.raises(Outdated, match="newer version"), running.write() as db:
        db.execute(text("DELETE FROM alembic_version"))
    with pytest.raises(CannotOpen, match=r"newer version .* \(to 9999\)") as refused:
        Store.open(database)
    assert "Start that version" in refused.value.hint
    with running.read() as db:
        assert db.scalar(text("SELECT version_num FROM alembic_version")) == "9999"
    running.close()
