"""``CUSTODY_DATABASE_URL``: the commands work on the database that it names, and never repeat it."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import func, select

from custody.common.terminal import Exit
from custody.server.cli import app
from custody.server.store import Store
from custody.server.store.models import UserRow
from tests.support.platform import PASSWORD

BOOTSTRAP = ("admin", "bootstrap", "--organisation", "Acme", "--workspace", "Main", "--chain", "regtest",
             "--email", "alice@example.org", "--state")  # fmt: skip


def custody(*arguments: str | Path, url: str, answer: str = "") -> Result:
    environment = {"CUSTODY_DATABASE_URL": url}
    return CliRunner().invoke(app, [str(each) for each in arguments], input=answer, env=environment)


def people(url: str) -> int:
    store = Store.open(url)
    with store.read() as db:
        count = db.scalar(select(func.count()).select_from(UserRow))
    store.close()
    return count


def test_the_commands_work_on_it(tmp_path: Path, database: str) -> None:
    done = custody(*BOOTSTRAP, tmp_path / "state", url=database, answer=f"{PASSWORD}\n")
    assert done.exit_code == 0, done.output
    assert custody("audit", "verify", "--state", tmp_path / "state", url=database).exit_code == 0
    assert people(database) == 1
    assert not (tmp_path / "state" / "custody.db").exists()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://u:hunter2@127.0.0.1:1/custody", "cannot be opened"),
        ("postgresql://u:hunter2@db.example.org/custody", "how to authenticate it"),
        ("mysql://u:hunter2@localhost/custody", "not the URL of a database"),
    ],
)
def test_one_that_cannot_be_used_is_said_without_its_password(
    tmp_path: Path, url: str, sentence: str
) -> None:
    """P49."""
    refused = custody(*BOOTSTRAP, tmp_path / "state", url=url, answer=f"{PASSWORD}\n")
    assert refused.exit_code == Exit.STATE
    assert sentence in refused.output
    assert "hunter2" not in refused.output
    assert "Traceback" not in refused.output
