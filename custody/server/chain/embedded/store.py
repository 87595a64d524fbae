"""The raw blocks and the mempool on disk: what survives a kill and is fed to the engine again at the next
start.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from custody.server.domain.errors import ChainUnavailable

SCHEMA = """
CREATE TABLE IF NOT EXISTS block (
    position INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    raw BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS mempool (
    position INTEGER PRIMARY KEY,
    raw BLOB NOT NULL
) STRICT;
"""


class BlockStore:
    """One SQLite file, open in one program at a time; the caller serialises its calls."""

    def __init__(self, path: Path) -> None:
        try:
            self._db = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            # A block that was announced must be there after a power cut.
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(SCHEMA)
            self._db.execute("BEGIN EXCLUSIVE")
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise ChainUnavailable(
                f"The embedded chain in {path.parent} cannot be opened: {error}."
            ) from error

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing, on disk when the block ends."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def add(self, block_hash: bytes, raw: bytes) -> None:
        """Append a block; its parent was appended before it."""
        self._db.execute("INSERT INTO block (hash, raw) VALUES (?, ?)", (block_hash, raw))

    def raw(self, block_hash: bytes) -> bytes:
        """A stored block by its hash in wire order."""
        row = self._db.execute("SELECT raw FROM block WHERE hash = ?", (block_hash,)).fetchone()
        if row is None:
            raise ChainUnavailable(f"The embedded chain's store lacks the block {block_hash[::-1].hex()}.")
        return bytes(row[0])

    def count(self) -> int:
        """How many blocks were ever stored, those of lost branches included."""
        return int(self._db.execute("SELECT count(*) FROM block").fetchone()[0])

    def blocks(self) -> Iterator[bytes]:
        """Every stored block, parents first."""
        for (raw,) in self._db.execute("SELECT raw FROM block ORDER BY position"):
            yield bytes(raw)

    def mempool(self) -> list[bytes]:
        """The waiting transactions, parents first."""
        return [bytes(raw) for (raw,) in self._db.execute("SELECT raw FROM mempool ORDER BY position")]

    def replace_mempool(self, transactions: Sequence[bytes]) -> None:
        """Store the mempool as it is now."""
        self._db.execute("DELETE FROM mempool")
        self._db.executemany("INSERT INTO mempool (raw) VALUES (?)", [(raw,) for raw in transactions])

    def append_to_mempool(self, raw: bytes) -> None:
        """Store one more waiting transaction."""
        self._db.execute("INSERT INTO mempool (raw) VALUES (?)", (raw,))
