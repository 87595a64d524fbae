"""Brings a database up to this version's tables, and knows one that a newer version has."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

MIGRATIONS = Path(__file__).with_name("migrations")


class Newer(Exception):
    """The database has tables of a version that this program does not know."""


def upgrade(connection: Connection) -> None:
    """Runs what is missing, in the caller's transaction: a migration that fails leaves nothing behind. Raises Newer."""
    found = MigrationContext.configure(connection).get_current_revision()
    if found is not None and found not in _known():
        raise Newer(found)
    if found != newest():
        command.upgrade(_config(connection), "head")


@cache
def newest() -> str:
    """The revision of this program's tables."""
    head = _scripts().get_current_head()
    assert head is not None, "the migrations are part of the package"
    return head


@cache
def _known() -> frozenset[str]:
    return frozenset(each.revision for each in _scripts().walk_revisions())


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(MIGRATIONS))


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
