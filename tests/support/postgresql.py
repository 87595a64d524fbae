"""A PostgreSQL server for one test run: Debian's programs, its own folder, a Unix socket and no port."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import URL

from custody.server.store import Store

PROGRAMS = Path("/usr/lib/postgresql")
# Where it is set, a run without PostgreSQL fails instead of skipping, as in CI.
REQUIRED = "CUSTODY_REQUIRE_POSTGRESQL"
# initdb refuses root.
SERVANTS = ("postgres", "nobody")
START_SECONDS = 300
# No durability. Few connections, so that one that a test leaves open is noticed.
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "log_min_messages": "fatal",
}
TEMPLATE = "with_tables"
# Runs while our end of its standard input is open, so that the server ends with this process.
WATCH = """
"$1/pg_ctl" -D "$2/data" -l "$2/log" -w -t 60 start >/dev/null && echo ready || cat "$2/log"
read -r _
"$1/pg_ctl" -D "$2/data" -m immediate stop >/dev/null
rm -rf "$2"
"""


def find_programs() -> Path | None:
    """The folder of the newest version's programs."""
    found = [path.parent for path in PROGRAMS.glob("*/bin/initdb") if path.parent.parent.name.isdecimal()]
    return max(found, key=lambda path: int(path.parent.name), default=None)


def is_required() -> bool:
    return os.environ.get(REQUIRED, "") not in {"", "0"}


@dataclass
class Server:
    """A running server; its socket is in ``folder``."""

    folder: Path
    names: Iterator[int] = field(default_factory=count)

    def url(self, database: str) -> str:
        url = URL.create(
            "postgresql", username="custody", database=database, query={"host": str(self.folder)}
        )
        return url.render_as_string(hide_password=False)

    @contextmanager
    def database(self, *, is_made: bool = True) -> Iterator[str]:
        """The URL of a fresh database with the tables, or of one that is not made yet; dropped at the end,
        even if clients are still connected.
        """
        name = f"test_{next(self.names)}"
        if is_made:
            self.copy(TEMPLATE, name)
        try:
            yield self.url(name)
        finally:
            self.administer("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    @contextmanager
    def empty_database(self, options: str = "") -> Iterator[str]:
        """A fresh database without tables."""
        name = f"test_{next(self.names)}"
        self.administer("CREATE DATABASE {} TEMPLATE template0 " + options, name)
        try:
            yield self.url(name)
        finally:
            self.administer("DROP DATABASE {} WITH (FORCE)", name)

    def replace(self, name: str, template: str = TEMPLATE) -> None:
        """Replaces the database by a copy of the template."""
        self.administer("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
        self.copy(template, name)

    def copy(self, template: str, name: str) -> None:
        """Copies files (PostgreSQL 15), in a third of the time of a copy through the write-ahead log."""
        self.administer("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", name, template)

    def administer(self, statement: str, *names: str) -> None:
        self._administrator.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    # Kept open: each test needs it three times, and a session costs half as much as a small database.
    @cached_property
    def _administrator(self) -> psycopg.Connection:
        return self.connect("postgres")

    def close(self) -> None:
        """Closes our own session, not the server."""
        if "_administrator" in vars(self):
            self._administrator.close()

    def connect(self, database: str) -> psycopg.Connection:
        """A session beside the platform's, with autocommit."""
        return psycopg.connect(host=str(self.folder), user="custody", dbname=database, autocommit=True)

    def make_template(self) -> None:
        self.administer("CREATE DATABASE {} TEMPLATE template0", TEMPLATE)
        Store.open(self.url(TEMPLATE)).close()


@contextmanager
def running_server(programs: Path, **settings: str) -> Iterator[Server]:
    """Runs a server; it and its folder are removed afterwards, even where this process is killed.
    ``settings``: further ones.
    """
    servant = _servant()
    folder = Path(tempfile.mkdtemp(prefix="custody-pg-"))
    if servant is not None:
        shutil.chown(folder, servant)
    _create_cluster(programs, folder, servant, settings)
    watch = subprocess.Popen(
        ["/bin/sh", "-c", WATCH, "watch", str(programs), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        user=servant,
        cwd=folder,
        # Ctrl-C is for the tests: the server ends after them.
        start_new_session=True,
    )
    with watch:
        try:
            assert watch.stdout is not None
            first = watch.stdout.readline()
            assert first == "ready\n", first + watch.communicate(timeout=START_SECONDS)[0]
            with closing(Server(folder)) as server:
                server.make_template()
                yield server
        finally:
            assert watch.stdin is not None
            watch.stdin.close()
            watch.wait(START_SECONDS)


def _servant() -> str | None:
    """The user that runs the server: this one unless it is root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in SERVANTS if name in known)


def _create_cluster(programs: Path, folder: Path, servant: str | None, changes: Mapping[str, str]) -> None:
    command = [
        programs / "initdb", "--pgdata", folder / "data", "--username", "custody", "--auth", "trust",
        "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync", "--no-instructions",
    ]  # fmt: skip
    made = subprocess.run(
        command, user=servant, cwd=folder, capture_output=True, text=True, check=False, timeout=START_SECONDS
    )
    assert made.returncode == 0, made.stderr
    settings = SETTINGS | {"unix_socket_directories": str(folder)} | changes
    with (folder / "data" / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
