"""The daemon's memory: SQLite, write-ahead log, full sync; every decision in one transaction with its audit
entry.
"""

from signerd.journal.journal import Journal
from signerd.journal.storage import StateFolder

__all__ = ["Journal", "StateFolder"]
