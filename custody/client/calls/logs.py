"""The audit log."""

from datetime import date
from typing import Any

from custody.client.errors import BadAnswer
from custody.client.flow import Core, Plan, call, read
from custody.client.method import method
from custody.schemas.logs import MAX_PAGE_SIZE, AuditLogEntry, ExportedLogs, LogsPage

# Some hundred megabytes. An answer that always names a next page would fill any memory.
MOST_ENTRIES = 200_000


class LogCalls:
    @method
    @staticmethod
    def logs(
        core: Core,
        org_uid: int,
        workspace_uid: int,
        *,
        from_day: date | None = None,
        to_day: date | None = None,
        category: str | None = None,
        page: int | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Plan[LogsPage]:
        """``GET /api/v1/get-logs``: one page, the oldest first. Days are inclusive, in UTC."""
        query = _filter(org_uid, workspace_uid, from_day, to_day, category)
        return (yield from _page(core, query | {"page": page, "page_size": page_size, "cursor": cursor}))

    @method
    @staticmethod
    def every_log(
        core: Core,
        org_uid: int,
        workspace_uid: int,
        *,
        from_day: date | None = None,
        to_day: date | None = None,
        category: str | None = None,
    ) -> Plan[list[AuditLogEntry]]:
        """``GET /api/v1/get-logs``, page after page to the end, up to ``MOST_ENTRIES``. All of it is in memory: name days."""
        query = _filter(org_uid, workspace_uid, from_day, to_day, category) | {"page_size": MAX_PAGE_SIZE}
        entries: list[AuditLogEntry] = []
        cursor = None
        while True:
            page = yield from _page(core, query | {"cursor": cursor})
            entries += page.logs
            if page.next_cursor is None:
                return entries
            if not page.logs or page.next_cursor == cursor or len(entries) > MOST_ENTRIES:
                raise BadAnswer(
                    f"get-logs: no end after {len(entries):,} entries; name days where there are more"
                )
            cursor = page.next_cursor

    @method
    @staticmethod
    def export_audit_logs(
        core: Core,
        org_uid: int,
        workspace_uid: int,
        *,
        from_day: date | None = None,
        to_day: date | None = None,
        category: str | None = None,
    ) -> Plan[str]:
        """``GET /api/v1/export-audit-logs``: the CSV. Write it with ``newline=""``, for its lines end in CRLF.

        Not repeated: each export is recorded.
        """
        query = _filter(org_uid, workspace_uid, from_day, to_day, category)
        request = core.build("GET", "/api/v1/export-audit-logs", query=query)
        return read((yield from call(core, request, repeatable=False)), ExportedLogs).csv


def _filter(
    org_uid: int, workspace_uid: int, from_day: date | None, to_day: date | None, category: str | None
) -> dict[str, Any]:
    return {
        "org_uid": org_uid,
        "workspace_uid": workspace_uid,
        "from_day": from_day and from_day.isoformat(),
        "to_day": to_day and to_day.isoformat(),
        "category": category,
    }


def _page(core: Core, query: dict[str, Any]) -> Plan[LogsPage]:
    request = core.build("GET", "/api/v1/get-logs", query=query)
    return read((yield from call(core, request, repeatable=True)), LogsPage)
