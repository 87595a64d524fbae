"""The audit log and purchases."""

import re
from dataclasses import dataclass
from datetime import date
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from pydantic import TypeAdapter

from custody.client.errors import BadAnswer
from custody.client.flow import Core, call, next_page, read, read_list
from custody.exchange import Plan, Reply, method
from custody.schemas.common import LATER, Few
from custody.schemas.logs import MAX_PAGE_SIZE, AuditLogEntry, ExportedLogs, LogsPage
from custody.schemas.purchases import MAX_PURCHASES, PurchaseTransaction

# Some hundred megabytes: bounds the memory where a faulty platform always names a next page.
MOST_ENTRIES = 200_000
# Python refuses to parse numbers of thousands of digits.
_COUNT = re.compile(r"[0-9]{1,18}")
_PURCHASES = TypeAdapter(Few[PurchaseTransaction], config=LATER)
# The same bound for purchases.
MOST_LISTED = 50_000
Item = TypeVar("Item")


@dataclass(frozen=True)
class Page(Generic[Item]):
    """One page of a list. ``total`` counts all; ``has_more``: ask again with ``after`` as the last id."""

    items: tuple[Item, ...]
    total: int
    has_more: bool


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


class PurchaseCalls:
    @method
    @staticmethod
    def purchases(
        core: Core, *, after: str | None = None, limit: int | None = None
    ) -> Plan[Page[PurchaseTransaction]]:
        """``GET /api/v1/purchases``: one page, the newest first."""
        return (yield from _purchases(core, after, limit))

    @method
    @staticmethod
    def every_purchase(core: Core) -> Plan[list[PurchaseTransaction]]:
        """``GET /api/v1/purchases``, page after page to the end, up to ``MOST_LISTED``."""
        found: list[PurchaseTransaction] = []
        while True:
            after = found[-1].id if found else None
            page = yield from _purchases(core, after, MAX_PURCHASES)
            found += page.items
            if not page.has_more:
                return found
            if not page.items or found[-1].id == after or len(found) > MOST_LISTED:
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


def _purchases(core: Core, after: str | None, limit: int | None) -> Plan[Page[PurchaseTransaction]]:
    request = core.build("GET", "/api/v1/purchases", query={"after": after, "limit": limit})
    return _counted(core, (yield from call(core, request, repeatable=True)), _PURCHASES)


def _counted(core: Core, reply: Reply, items: TypeAdapter[list[Item]]) -> Page[Item]:
    read_items = read_list(core, reply, items)
    total = reply.headers.get("x-total-count", "")
    return Page(
        tuple(read_items),
        int(total) if _COUNT.fullmatch(total) else len(read_items),
        next_page(reply) is not None,
    )
