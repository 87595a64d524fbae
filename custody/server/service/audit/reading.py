"""Reading a workspace's audit log in pages, and exporting it."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from custody.schemas import logs as wire
from custody.server.domain.audit import Category, ChainedRow, chain_of
from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.domain.errors import Invalid, NotFound, NotOrgMember
from custody.server.domain.export import write_csv
from custody.server.service.audit.log import AuditLog, chained_rows
from custody.server.service.audit.names import names_in, recipients_in
from custody.server.store.models import AuditEvent, Membership, Workspace
from custody.server.store.store import within_days

# An export is one response: this many rows are some fifteen megabytes and take one or two seconds.
MAX_EXPORT_ROWS: Final = 50_000


@dataclass(frozen=True)
class Export:
    """The response, and the description for its audit record."""

    shown: wire.ExportedLogs
    description: str


class Logs:
    """Tests set a smaller ``max_export_rows``."""

    def __init__(self, audit: AuditLog, *, max_export_rows: int = MAX_EXPORT_ROWS) -> None:
        self._audit = audit
        self._max_export_rows = max_export_rows

    def page(
        self, db: Session, caller: Caller, access: WorkspaceAccess, query: wire.LogsQuery
    ) -> wire.LogsPage:
        """Raises NotOrgMember, NotFound, Invalid (an unknown category)."""
        wanted = conditions = _conditions(db, caller, access, query)
        is_newest = query.order == "newest"
        if query.cursor is not None:
            last = int(query.cursor)
            wanted += (AuditEvent.position < last if is_newest else AuditEvent.position > last,)
        offset = (query.page - 1) * query.page_size
        asked = query.page_size + 1
        # The positions first, from an index alone: SQLite would otherwise sort all rows of some days.
        order = AuditEvent.position.desc() if is_newest else AuditEvent.position
        places = db.scalars(
            select(AuditEvent.position).where(*wanted).order_by(order).limit(asked).offset(offset)
        ).all()
        chain, *_ = conditions
        rows = list(chained_rows(db, chain, AuditEvent.position.in_(places), newest_first=is_newest))
        shown = rows[: query.page_size]
        return wire.LogsPage(
            logs=[_entry(chained) for chained in shown],
            names=names_in(db, access, [chained.row for chained in shown]),
            recipients=recipients_in(db, access, [chained.row for chained in shown]),
            page=query.page,
            page_size=query.page_size,
            total=_count(db, conditions),
            next_cursor=str(shown[-1].row.position) if len(rows) > len(shown) else None,
        )

    def export(
        self, db: Session, caller: Caller, access: WorkspaceAccess, query: wire.ExportLogsQuery
    ) -> Export:
        """All matching rows. Return them only after ``record_export`` is committed: the two are separate
        because reading takes a second or two, and writers should not wait for it.

        Raises as ``page``, and Invalid where more rows match than one response holds.
        """
        conditions = _conditions(db, caller, access, query)
        count = _count(db, conditions)
        if count > self._max_export_rows:
            raise _too_many(count, self._max_export_rows)
        text = "".join(write_csv(chained_rows(db, *conditions)))
        return Export(wire.ExportedLogs(csv=text), f"{count} rows{_described(query)}")

    def record_export(self, db: Session, caller: Caller, access: WorkspaceAccess, export: Export) -> None:
        self._audit.record(db, caller, Category.AUDIT, "EXPORTED", export.description, access=access)


def _conditions(
    db: Session, caller: Caller, access: WorkspaceAccess, query: wire.LogFilter
) -> tuple[ColumnElement[bool], ...]:
    _check_organisation(db, caller, access, query.org_uid)
    found = [AuditEvent.chain_id == chain_of(str(access.organisation_id), str(access.workspace_id))]
    found += within_days(AuditEvent.timestamp, query.from_day, query.to_day)
    if query.category is not None:
        found.append(AuditEvent.category == _category(query.category).value)
    if query.user_uuid is not None:
        found.append(AuditEvent.user_uuid == query.user_uuid)
    return tuple(found)


def _check_organisation(db: Session, caller: Caller, access: WorkspaceAccess, org_uid: int) -> None:
    """The request names the organisation too, and the specification wants the caller to belong to it."""
    if org_uid == access.organisation_id:
        return
    member = (
        select(Membership.id)
        .join(Workspace, Workspace.id == Membership.workspace_id)
        .where(Membership.user_id == caller.user_id, Workspace.organisation_id == org_uid)
    )
    if db.scalars(member.limit(1)).first() is None:
        raise NotOrgMember("You are not a member of the organisation that the request names.")
    raise NotFound("There is no such workspace in this organisation.")


def _category(text: str) -> Category:
    try:
        return Category(text.upper())
    except ValueError:
        sentence = f"There is no category {text}; there are {', '.join(Category)}."
        raise Invalid.at("/category", sentence) from None


def _count(db: Session, conditions: tuple[ColumnElement[bool], ...]) -> int:
    return db.scalar(select(func.count()).select_from(AuditEvent).where(*conditions)) or 0


def _too_many(count: int, limit: int) -> Invalid:
    sentence = (
        f"{count} rows match, and one export holds at most {limit}: "
        "name fewer days with from_day and to_day, or one category."
    )
    return Invalid.at("/from_day", sentence, "too-many")


def _described(query: wire.LogFilter) -> str:
    named = (
        ("from", query.from_day),
        ("to", query.to_day),
        ("category", query.category),
        ("user", query.user_uuid),
    )
    return "".join(f", {word} {value}" for word, value in named if value is not None)


def _entry(chained: ChainedRow) -> wire.AuditLogEntry:
    return wire.AuditLogEntry.model_validate(
        {
            **vars(chained.row),
            "prev_hash": b64encode(chained.prev_hash).decode(),
            "event_hash": b64encode(chained.event_hash).decode(),
        }
    )
