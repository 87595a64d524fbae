"""Brings a database up to this version's tables."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

MIGRATIONS = Path(__file__).with_name("migrations")


def upgrade(connection: Connection) -> None:
    """Runs what is missing, in the caller's transaction: a migration that fails leaves nothing behind."""
    command.upgrade(_config(connection), "head")


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
