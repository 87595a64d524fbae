"""docs/operate/backup.md: its commands, as they stand there, make a backup, try it and restore it."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from custody.server.cli import app
from tests.support.pages import DOCS
from tests.support.postgresql import Server, find_programs

GUIDE = (DOCS / "operate" / "backup.md").read_text(encoding="utf-8")
SECONDS = 300


def lines(heading: str) -> list[str]:
    """Those of a block below a heading, up to the next one."""
    section = GUIDE.partition(f"# {heading}\n")[2].partition("\n#")[0]
    found = re.findall(r"^ {4,}((?:sqlite3|cp|install|pg_\w+|createdb|custody) .*)$", section, re.MULTILINE)
    assert found, heading
    return found


class Operator:
    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        folders = {name: str(folder / name.lower()) for name in ("BACKUP", "TRIED", "RESTORED")}
        programs = [str(Path(sys.executable).parent), os.environ["PATH"]]
        if found := find_programs():
            programs.append(str(found))
        self.env = os.environ | folders | {"PATH": ":".join(programs), "CUSTODY_STATE": str(folder / "state")}
        self.env |= settings
        (folder / "backup").mkdir()

    def types(self, line: str, typed: str = "", *, status: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            env=self.env,
            input=typed,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == status, (line, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def runs(self, arguments: str, typed: str = "") -> None:
        """A command of custody, in this process."""
        done = CliRunner().invoke(app, arguments.split(), input=typed, env=self.env)
        assert done.exit_code == 0, (arguments, done.output)

    def begins(self) -> None:
        made = "admin bootstrap --organisation Ltd --workspace Treasury --chain regtest"
        self.runs(f"{made} --email a@example.org", "a long password of mine\n")
        self.runs("audit checkpoint")

    def goes_on(self) -> None:
        self.runs("admin add-member --workspace-id 1 --email b@example.org", "another long password\n")
        self.runs("audit checkpoint")


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed (Debian's package)")
def test_a_backup_of_sqlite_is_tried_and_restored_and_what_it_lacks_is_named(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    operator.begins()
    for line in lines("SQLite"):
        operator.types(line)
    operator.goes_on()
    *_, status, verified = [operator.types(line) for line in lines("Try the backup")]
    assert "custody 0." in status
    assert "Every audit chain is whole." in verified

    *restored, compared = [line for line in lines("Restore") if not line.startswith(("createdb", "pg_"))]
    for line in restored:
        operator.types(line)
    assert "workspace:1" in operator.types(compared, status=11)
    with closing(sqlite3.connect(tmp_path / "restored" / "custody.db")) as database:
        assert database.execute("SELECT email FROM users").fetchall() == [("a@example.org",)]


@pytest.mark.slow("the second database")
def test_a_backup_of_postgresql_is_restored(tmp_path: Path, postgresql: Server) -> None:
    with postgresql.empty_database() as url:
        where = {"PGHOST": str(postgresql.folder), "PGUSER": "custody"}
        operator = Operator(tmp_path, CUSTODY_DATABASE_URL=url, **where)
        operator.begins()
        for line in lines("PostgreSQL"):
            operator.types(line)
        operator.goes_on()
        try:
            for line in lines("Restore"):
                if line.startswith(("createdb", "pg_")):
                    operator.types(line)
            operator.env["CUSTODY_DATABASE_URL"] = postgresql.url("custody_restored")
            copied = tmp_path / "backup" / "audit-checkpoints.jsonl"
            assert "Every audit chain is whole." in operator.types(
                f"cp {copied} $CUSTODY_STATE/ && custody audit verify"
            )
            with closing(postgresql.connect("custody_restored")) as database:
                assert database.execute("SELECT email FROM users").fetchall() == [("a@example.org",)]
        finally:
            postgresql.administer("DROP DATABASE IF EXISTS {} WITH (FORCE)", "custody_restored")
