"""The steps of docs/operate/upgrade.md with real processes: an installation that people use goes over to a
newer version, which is this source with one migration more.
"""

import shutil
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.custody.server.test_backup_guide import Operator
from tests.custody.server.test_backup_guide import lines as backup_lines
from tests.support.cluster import HERE, Process, open_cluster, until
from tests.support.custody import SHOP, ok
from tests.support.platform import As
from tests.support.postgresql import Server

pytestmark = pytest.mark.slow("the second database, two versions installed")

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


def test_the_steps_of_an_upgrade_in_their_order(tmp_path: Path, postgresql: Server) -> None:
    with postgresql.database() as url, open_cluster(tmp_path, url) as cluster:
        cluster.start(apis=1, workers=1)
        desk = cluster.desk()
        address = desk.wallets()[0]["address"]
        operator = Operator(tmp_path, CUSTODY_DATABASE_URL=url)

        dump, _ = backup_lines("PostgreSQL")
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
