"""The daemon's memory: SQLite, write-ahead log, full sync; every decision in one transaction with its audit entry."""

from signerd.journal.folder import StateFolder
from signerd.journal.journal import Journal

__all__ = ["Journal", "StateFolder"]
