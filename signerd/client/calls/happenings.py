"""What happened. What happens is a stream, and each shell's own: ``follow`` and ``events``."""

from signerd import shapes
from signerd.client.flow import Asked
from signerd.client.method import row


class HappeningCalls:
    @row("GET", "/audit", shapes.AuditReport)
    @staticmethod
    def verify_audit() -> Asked:
        return Asked()

    @row("GET", "/audit/entries", shapes.AuditPage)
    @staticmethod
    def audit_entries(
        after: int | None = None,
        before: int | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> Asked:
        """The newest first, from below ``before`` where given; with ``after`` in the chain's order from there."""
        return Asked(query={"after": after, "before": before, "search": search, "limit": limit})
