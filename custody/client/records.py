"""The audit log and purchases."""

from datetime import date
from typing import Any, TypedDict, Unpack

from custody.client.calls import PurchaseCalls
from custody.client.errors import BadAnswer
from custody.client.flow import Core, call, read, read_list
from custody.exchange import Plan, method
from custody.schemas.logs import MAX_PAGE_SIZE, AuditLogEntry, ExportedLogs, LogsPage
from custody.schemas.purchases import MAX_PURCHASES, PurchaseTransaction

# Some hundred megabytes: bounds the memory where a faulty platform always names a next page.
MOST_ENTRIES = 200_000
# The same bound for purchases.
MOST_LISTED = 50_000


class LogDays(TypedDict, total=False):
    """Days are inclusive, in UTC; ``user_uuid``: events of that person."""

    from_day: date | None
    to_day: date | None
    category: str | None
    user_uuid: int | None


class LogCalls:
    @method
    @staticmethod
    def logs(
        core: Core,
        org_uid: int,
        workspace_uid: int,
        *,
        page: int | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
        **days: Unpack[LogDays],
    ) -> Plan[LogsPage]:
        """``GET /api/v1/get-logs``: one page, the oldest first. Days are inclusive, in UTC."""
        query = _filter(org_uid, workspace_uid, days)
        return (yield from _page(core, query | {"page": page, "page_size": page_size, "cursor": cursor}))

    @method
    @staticmethod
    def every_log(
        core: Core, org_uid: int, workspace_uid: int, **days: Unpack[LogDays]
    ) -> Plan[list[AuditLogEntry]]:
        """``GET /api/v1/get-logs``, page after page to the end, up to ``MOST_ENTRIES``. All of it is in
        memory: name days.
        """
        query = _filter(org_uid, workspace_uid, days) | {"page_size": MAX_PAGE_SIZE}
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
    def export_audit_logs(core: Core, org_uid: int, workspace_uid: int, **days: Unpack[LogDays]) -> Plan[str]:
        """``GET /api/v1/export-audit-logs``: the CSV. Write it with ``newline=""``, for its lines end in
        CRLF.

        Not repeated: each export is recorded.
        """
        query = _filter(org_uid, workspace_uid, days)
        request = core.build("GET", "/api/v1/export-audit-logs", query=query)
        return read((yield from call(core, request, repeatable=False)), ExportedLogs).csv


class EveryPurchaseCalls:
    @method
    @staticmethod
    def every_purchase(core: Core) -> Plan[list[PurchaseTransaction]]:
        """``GET /api/v1/purchases``, page after page to the end, up to ``MOST_LISTED``."""
        found: list[PurchaseTransaction] = []
        while True:
            left_out, after = len(core.unreadable), found[-1].id if found else None
            page = yield from PurchaseCalls.purchases.plan(core, after=after, limit=MAX_PURCHASES)
            found += page
            if len(page) + len(core.unreadable) - left_out < MAX_PURCHASES:
                return found
            if not page or found[-1].id == after or len(found) > MOST_LISTED:
                raise BadAnswer(f"purchases: no end after {len(found):,} of them")


def _filter(org_uid: int, workspace_uid: int, days: LogDays) -> dict[str, Any]:
    return {
        "org_uid": org_uid,
        "workspace_uid": workspace_uid,
        "from_day": days.get("from_day"),
        "to_day": days.get("to_day"),
        "category": days.get("category"),
        "user_uuid": days.get("user_uuid"),
    }


def _page(core: Core, query: dict[str, Any]) -> Plan[LogsPage]:
    request = core.build("GET", "/api/v1/get-logs", query=query)
    return read_list(core, (yield from call(core, request, repeatable=True)), LogsPage)
