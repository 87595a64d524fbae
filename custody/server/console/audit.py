"""The audit log: filtered, paged, the chain of each logs checked, and exported."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from custody.common.pages.serving import attachment
from custody.schemas.logs import EXPORT_AUDIT_LOGS, LOGS, AuditLogEntry, LogsPage
from custody.server.audit.calls import facts_in
from custody.server.console.audit_words import recipient_words, row_words
from custody.server.console.context import PageContext
from custody.server.console.members import members_of
from custody.server.console.proposals import labels_of
from custody.server.console.rendering import CSV, member_words
from custody.server.console.table import Row
from custody.server.console.typed import require_days_in_order
from custody.server.errors import Invalid
from custody.server.rules.audit import Category

PAGE = 50
# Sign-ins belong to no workspace: they are in the platform's own log.
CATEGORIES = {
    category: category.value.replace("_", " ").capitalize()
    for category in Category
    if category is not Category.SIGN_IN
}


def audit(page: PageContext) -> Response:
    wanted, before = _wanted(page, page.query), page.cursor("before")
    cursor = None if before is None else str(before)
    logs = LogsPage(logs=[], page=1, page_size=PAGE, total=0, next_cursor=None)
    try:
        require_days_in_order(page)
        logs = page.read(LOGS, **wanted, cursor=cursor, order="newest", page_size=PAGE)
    except Invalid as error:
        page.problem = error
    recipients = _recipients(page, logs)
    with page.reading() as ctx:
        facts = facts_in(ctx, logs.logs)
    return page.render(
        "audit/audit.html",
        logs=logs,
        rows=[
            (each, row_words(each, facts[each.event_uid], logs.names, recipients).sentence)
            for each in logs.logs
        ],
        people=_people(page, logs),
        person_id=page.query("user_uuid"),
        is_first=before is None,
        category=page.query("category"),
        from_day=page.query("from_day"),
        to_day=page.query("to_day"),
        categories=CATEGORIES,
        filters={name: str(value) for name, value in wanted.items() if name not in _IDS},
        is_chained=None if len(wanted) > len(_IDS) else _are_chained(logs.logs),
    )


def _recipients(page: PageContext, logs: LogsPage) -> dict[str, Markup]:
    """By a payment's id: the first recipient's current name in the address book, and its address, short."""
    labels = labels_of(page, sorted({each.address for each in logs.recipients.values()}))
    return {
        psbt_id: recipient_words(each.address, labels.get(each.address), each.others)
        for psbt_id, each in logs.recipients.items()
    }


def _people(page: PageContext, logs: LogsPage) -> list[tuple[str, str]]:
    """The filter's choices: the members, for a person who may see them, and each actor on this logs."""
    found = {"0": "The platform"}
    if page.workspace.may("MANAGE_USERS"):
        found |= {str(member.uuid): member_words(member) for member in members_of(page)}
    for entry in logs.logs:
        if str(entry.user_uuid) not in found and " " not in entry.user_name:
            found[str(entry.user_uuid)] = entry.user_name
    wanted = page.query("user_uuid")
    if wanted and wanted not in found:
        found[wanted] = logs.names.get(f"user {wanted}", f"member {wanted}")
    return sorted(found.items(), key=lambda each: each[1].casefold())


_IDS = frozenset({"org_uid", "workspace_uid"})


def _wanted(page: PageContext, read: Callable[[str], str]) -> dict[str, Any]:
    """The filter as `get-logs` takes it."""
    given = {name: read(name) for name in ("category", "user_uuid", "from_day", "to_day")}
    ids = {"org_uid": page.workspace.organisation.org_id, "workspace_uid": page.workspace.id}
    return {**ids, **{name: value for name, value in given.items() if value}}


def _are_chained(rows: list[AuditLogEntry]) -> bool:
    """Whether each row names the hash of the one before, the newest first. `custody audit verify` reads the
    whole chain.
    """
    return all(after.prev_hash == before.event_hash for after, before in pairwise(rows))


def export(page: PageContext) -> Response:
    """The platform's own CSV, which `custody audit verify-export` reads."""
    wanted = _wanted(page, page.form.one)
    exported = page.act(EXPORT_AUDIT_LOGS, **wanted)
    headers = attachment(f"audit-{page.workspace.id}.csv")
    return Response(exported.csv, headers=headers, media_type=CSV)


_HERE = "/w/{workspace_id:int}/audit"
ROWS = (
    Row("GET", _HERE, audit),
    Row("POST", _HERE + "/export", export, again=audit, acts=(EXPORT_AUDIT_LOGS,)),
)
