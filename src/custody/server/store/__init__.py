"""What the platform remembers: the tables, the migrations, and the two ways to reach them."""

from custody.server.store.store import Store

__all__ = ["Store"]
