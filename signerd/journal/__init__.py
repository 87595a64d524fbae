"""The daemon's journal: SQLite in WAL mode with full sync; every decision and its audit entry are one
transaction.
"""

from signerd.journal.journal import Journal
from signerd.journal.storage import held

__all__ = ["Journal", "held"]
