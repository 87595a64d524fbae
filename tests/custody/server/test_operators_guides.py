"""docs/operate/backup.md: its commands, as they stand there, make a backup, try it and restore it. The steps
of docs/operate/upgrade.md: an installation that people use goes over to a newer version, which is this source
with one migration more.
"""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from custody.server.cli import app
from tests.support.cluster import HERE, Process, open_cluster, until
from tests.support.custody import SHOP, ok
from tests.support.pages import DOCS
from tests.support.platform import As
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


MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0002", "{before}", None, None


def upgrade() -> None:
    op.add_column("vaults", sa.Column("of_the_newer", sa.String(), nullable=True))
"""


def newer_version(folder: Path) -> Path:
    """Beside the old one, as ``git checkout`` and ``pip install`` put it into another environment."""
    shutil.copytree(HERE / "custody", folder / "custody")
    (folder / "custody" / "_version.py").write_text('__version__ = "0.1.1"\n')
    migrations = folder / "custody" / "server" / "store" / "migrations" / "versions"
    (before,) = (path.stem.partition("_")[0] for path in migrations.glob("*.py"))
    (migrations / "0002_newer.py").write_text(MIGRATION.format(before=before))
    return folder


def is_ready(process: Process) -> bool:
    return httpx.get(f"{process.url}/ready").status_code == 200


@pytest.mark.slow("the second database, two versions installed")
def test_the_steps_of_an_upgrade_in_their_order(tmp_path: Path, postgresql: Server) -> None:
    with postgresql.database() as url, open_cluster(tmp_path, url) as cluster:
        cluster.start(apis=1, workers=1)
        desk = cluster.desk()
        address = desk.wallets()[0]["address"]
        operator = Operator(tmp_path, CUSTODY_DATABASE_URL=url)

        dump, _ = lines("PostgreSQL")
        operator.types(dump)
        assert (tmp_path / "backup" / "custody.dump").stat().st_size > 100_000

        newer = newer_version(tmp_path / "newer")

        cluster.start(apis=1, workers=1, version=newer)
        with suppress(httpx.TransportError):  # it may have ended by now
            late = {"workspace_id": 1, "name": "Too late for the older one", "address": SHOP}
            assert desk.admin.post("/api/v1/add-whitelist-address", late).status_code == 503
        (worker,) = cluster.workers[:1]
        assert worker.await_end() == 1
        assert "A newer version of the platform has migrated the database" in worker.log.read_text()

        (api,) = cluster.apis[:1]
        api.program.send_signal(signal.SIGTERM)
        # It may be ending by itself.
        assert api.await_end() in {0, 1, -signal.SIGTERM}

        for process in cluster.apis[1:] + cluster.workers[1:]:
            until(partial(is_ready, process), "it is not ready")
        operator.env["PYTHONPATH"] = str(newer)
        assert "custody 0.1.1 on postgresql" in operator.types("custody status")
        with httpx.Client(base_url=cluster.apis[1].url) as http:
            admin = As(http, desk.admin.headers)
            (vault,) = ok(admin.get("/api/v1/list-wallets", workspace_id=1))
            assert vault["address"] == address
            entry = {"workspace_id": 1, "name": "Made by the newer one", "address": SHOP}
            ok(admin.post("/api/v1/add-whitelist-address", entry))

        del operator.env["PYTHONPATH"]
        assert "newer version" in operator.types("custody status", status=10)
