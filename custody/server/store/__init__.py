"""What the platform remembers: the tables, the migrations, and the two ways to reach them."""

from custody.server.store.database import CannotOpen
from custody.server.store.opening import sqlite_url
from custody.server.store.store import Store

__all__ = ["CannotOpen", "Store", "sqlite_url"]
