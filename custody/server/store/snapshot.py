"""One view of the database that several readings share."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from sqlalchemy.orm import Session

from custody.server.store.store import Store


class PageSnapshot:
    """A page's one view of the database, from when it is first read until the page is made, or until
    something opens a transaction of its own: a request holds one connection at a time.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._opened = ExitStack()
        self._db: Session | None = None
        self._is_made = False

    @contextmanager
    def reading(self) -> Iterator[Session]:
        if self._db is None:
            self._db = self._opened.enter_context(self._store.read())
        try:
            yield self._db
        except BaseException:
            self._db = None
            # Through the store, which names a database in trouble.
            self._opened.__exit__(*sys.exc_info())
            raise
        if self._is_made:
            self.end()

    @contextmanager
    def last_reading(self) -> Iterator[Session]:
        """`reading`, and its end."""
        try:
            with self.reading() as db:
                yield db
        finally:
            self.end()

    def close(self) -> None:
        """The page is made. Where it is sent in parts, each is read by itself."""
        self._is_made = True
        self.end()

    def end(self) -> None:
        self._db = None
        self._opened.close()
