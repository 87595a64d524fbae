"""The audit log: filtered, in pages, whether its rows follow one another, and exported."""

from itertools import pairwise
from typing import Any

from starlette.responses import Response

from custody.pages.headers import HEADERS
from custody.schemas.logs import AuditLogEntry, LogsPage
from custody.server.console.table import Row
from custody.server.console.visit import Visit
from custody.server.domain.audit import Category

PAGE = 50
CATEGORIES = {category: category.value.replace("_", " ").capitalize() for category in Category}


def audit(visit: Visit) -> Response:
    wanted = _wanted(visit, visit.query)
    total = _page(visit, wanted, 1, 1).total
    last = max(1, -(-total // PAGE))
    text = visit.query("page")
    number = min(int(text), last) if text.isascii() and text.isdecimal() and 0 < len(text) < 8 else last
    number = max(number, 1)
    rows = _page(visit, wanted, number, PAGE).logs
    return visit.page(
        "audit/audit.html",
        here="audit",
        rows=rows[::-1],
        total=total,
        page=number,
        last=last,
        category=visit.query("category"),
        from_day=visit.query("from_day"),
        to_day=visit.query("to_day"),
        categories=CATEGORIES,
        filters={name: str(value) for name, value in wanted.items() if name not in _IDS},
        is_chained=None if len(wanted) > len(_IDS) else _follow_one_another(rows),
    )


_IDS = frozenset({"org_uid", "workspace_uid"})


def _wanted(visit: Visit, read: object) -> dict[str, Any]:
    """The filter as the platform takes it."""
    assert callable(read)
    given = {name: read(name) for name in ("category", "from_day", "to_day")}
    ids = {"org_uid": visit.here.organisation.org_id, "workspace_uid": visit.here.id}
    return {**ids, **{name: value for name, value in given.items() if value}}


def _page(visit: Visit, wanted: dict[str, Any], number: int, size: int) -> LogsPage:
    found: LogsPage = visit.get("get-logs", **wanted, page=number, page_size=size)
    return found


def _follow_one_another(rows: list[AuditLogEntry]) -> bool:
    """Whether each row names the hash of the one before. `custody audit verify` reads the whole chain."""
    return all(after.prev_hash == before.event_hash for before, after in pairwise(rows))


def export(visit: Visit) -> Response:
    """The platform's own CSV, which `custody audit verify-export` reads."""
    wanted = _wanted(visit, visit.form.one)
    exported = visit.get("export-audit-logs", **wanted)
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="audit-{visit.here.id}.csv"'}
    return Response(exported.csv, headers=headers, media_type="text/csv; charset=utf-8")


_HERE = "/w/{workspace_id:int}/audit"
ROWS = (
    Row("GET", _HERE, audit),
    Row("POST", _HERE + "/export", export, again=audit),
)
