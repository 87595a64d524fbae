"""The schema's version. Migrations begin with the version after the first one that is released."""

import sqlite3
from importlib.resources import files

from signerd.errors import JournalTooNew

VERSION = 1


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the journal to this version: make its tables, atomically, where it is new.

    Raises:
        JournalTooNew: a later signerd wrote it.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise JournalTooNew(f"the journal is of version {version}; this signerd knows up to {VERSION}")
    if version == VERSION:
        return
    tables = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
    # executescript() commits an open transaction, so the script has its own.
    try:
        connection.executescript(f"BEGIN IMMEDIATE;\n{tables}\nPRAGMA user_version = {VERSION};\nCOMMIT;")
    except sqlite3.Error:
        connection.rollback()
        raise
