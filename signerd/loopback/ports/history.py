"""The port for the chain of decisions as a person reads it: page by page, the newest first, or onwards from a place."""

from typing import Protocol

from signerd.shapes import AuditPage


class HistoryPort(Protocol):
    async def entries(self, *, search: str, limit: int, after: int | None, before: int | None) -> AuditPage:
        """``after``: in the chain's order from there; else the newest first, from below ``before`` where given."""
        ...
