"""The platform's database: its tables, migrations, and units of work on SQLite or PostgreSQL."""

from custody.server.store.database import CannotOpen
from custody.server.store.store import Store, sqlite_url

__all__ = ["CannotOpen", "Store", "sqlite_url"]
