"""Reading a workspace's audit log in pages, with the present names of the things that its rows name by id,
and exporting it. The rows themselves do not change.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session

from custody.schemas import logs as wire
from custody.schemas.proposals import PROPOSAL_READERS
from custody.server.audit.log import chained_rows
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.errors import Invalid, NotFound, NotOrgMember
from custody.server.people.names import shown_name
from custody.server.people.people import is_colleague
from custody.server.rules import audit
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.shown import apart, shown
from custody.server.store.models import (
    AuditEventRow,
    ContractRow,
    MembershipRow,
    ProposalRow,
    RoleRow,
    UserRow,
    VaultRow,
)
from custody.server.store.store import going_on

# An export is one response: this many rows are some fifteen megabytes and take one or two seconds.
MAX_EXPORT_ROWS: Final = 50_000


_WHAT: Final = "{rows} rows[, from {from_day}][, to {to_day}][, category {category}][, of {user}]"
EXPORTED = audit.Event("EXPORTED", "exported the audit log: " + _WHAT, audit.Category.AUDIT)


@serves(wire.LOGS)
def logs(ctx: Ctx, query: wire.LogsQuery) -> wire.LogsPage:
    conditions, is_newest = _conditions(ctx, query), query.order == "newest"
    after = None if query.cursor is None else (int(query.cursor),)
    offset = (query.page - 1) * query.page_size
    # The positions first, from an index alone: SQLite would otherwise sort all rows of some days.
    wanted = select(AuditEventRow.position).where(*conditions)
    listed = going_on(wanted, (AuditEventRow.position,), after, newest=is_newest)
    positions = ctx.db.scalars(listed.limit(query.page_size + 1).offset(offset)).all()
    chain, *_ = conditions
    rows = list(chained_rows(ctx.db, chain, AuditEventRow.position.in_(positions), newest_first=is_newest))
    page = rows[: query.page_size]
    entries, unreadable = apart(shown(page, _entries, "position", lambda each: each.row.position))
    return wire.LogsPage(
        logs=entries,
        unreadable=unreadable,
        names=names_in(ctx.db, ctx.access, [chained.row for chained in page]),
        recipients=recipients_in(ctx.db, ctx.access, [chained.row for chained in page]),
        page=query.page,
        page_size=query.page_size,
        total=_count(ctx.db, conditions),
        next_cursor=str(page[-1].row.position) if len(rows) > len(page) else None,
    )


@serves_in_parts(wire.EXPORT_AUDIT_LOGS)
def export_audit_logs(ctx: Ctx, query: wire.ExportLogsQuery) -> Steps[wire.ExportedLogs]:
    """Read in a snapshot, because it takes a second or two, and writers should not wait for it. A caller who
    has lost the permission meanwhile gets nothing (P23).
    """
    with ctx.services.rates.export(ctx.caller.counted_as):
        conditions = _conditions(ctx, query)
        count = _count(ctx.db, conditions)
        if count > MAX_EXPORT_ROWS:
            sentence = (
                f"{count} rows match, and one export holds at most {MAX_EXPORT_ROWS}: "
                "name fewer days with from_day and to_day, or one category."
            )
            raise Invalid.at("/from_day", sentence, "too-many")
        text = "".join(audit.write_csv(chained_rows(ctx.db, *conditions)))
        ctx = yield In.WRITE
        ctx.event(EXPORTED, rows=count, **_wanted(query))
    return wire.ExportedLogs(csv=text)


def _conditions(ctx: Ctx, query: wire.LogFilter) -> tuple[ColumnElement[bool], ...]:
    """Raises NotOrgMember, NotFound, Invalid (an unknown category)."""
    # The request names the organisation too, and the specification wants the caller to belong to it.
    if query.org_uid != ctx.access.organisation_id:
        if not is_colleague(ctx.db, ctx.caller.user_id, query.org_uid):
            raise NotOrgMember("You are not a member of the organisation that the request names.")
        raise NotFound("There is no such workspace in this organisation.")
    conditions = [
        AuditEventRow.chain_id
        == audit.chain_of(str(ctx.access.organisation_id), str(ctx.access.workspace_id))
    ]
    if query.from_day is not None:
        conditions.append(AuditEventRow.timestamp >= f"{query.from_day}T00:00:00.000Z")
    if query.to_day is not None:
        conditions.append(AuditEventRow.timestamp <= f"{query.to_day}T23:59:59.999Z")
    if query.category is not None:
        if query.category.upper() not in set(audit.Category):
            sentence = f"There is no category {query.category}; there are {', '.join(audit.Category)}."
            raise Invalid.at("/category", sentence)
        conditions.append(AuditEventRow.category == query.category.upper())
    if query.user_uuid is not None:
        conditions.append(AuditEventRow.user_uuid == query.user_uuid)
    return tuple(conditions)


def _count(db: Session, conditions: tuple[ColumnElement[bool], ...]) -> int:
    return db.scalar(select(func.count()).select_from(AuditEventRow).where(*conditions)) or 0


def _wanted(query: wire.LogFilter) -> dict[str, str | None]:
    wanted = {
        "from_day": query.from_day,
        "to_day": query.to_day,
        "category": query.category,
        "user": query.user_uuid,
    }
    return {name: None if value is None else str(value) for name, value in wanted.items()}


def _entries(rows: Sequence[audit.ChainedRow]) -> list[wire.AuditLogEntry]:
    return [wire.AuditLogEntry.model_validate(each.values) for each in rows]


# By the kind of a fact, which is an id: the table, its key and its name.
_NAMED: Final[Mapping[str, tuple[Any, Any, Any]]] = {
    "vault": (VaultRow, VaultRow.id, VaultRow.name),
    "role": (RoleRow, RoleRow.id, RoleRow.name),
    "proposal": (ProposalRow, ProposalRow.id, ProposalRow.description),
    "contract": (ContractRow, ContractRow.uid, ContractRow.ticker),
}
_LONG_ID, _NUMBER = re.compile("[0-9a-f]{32}"), re.compile("[1-9][0-9]{0,17}")
_ID: Final = {"vault": _LONG_ID, "proposal": _LONG_ID, "user": _NUMBER, "role": _NUMBER, "contract": _NUMBER}


def facts_in(ctx: Ctx, entries: Iterable[wire.AuditLogEntry]) -> dict[str, audit.Facts]:
    """The facts of rows that the caller was shown, by ``event_uid``."""
    rows = select(AuditEventRow.event_uid, AuditEventRow.facts).where(
        AuditEventRow.event_uid.in_([each.event_uid for each in entries])
    )
    return {uid: audit.stored_facts(text) for uid, text in ctx.db.execute(rows)}


def names_in(db: Session, access: WorkspaceAccess, rows: Sequence[audit.AuditRow]) -> dict[str, str]:
    """The names of what the rows' facts name by id, such as ``vault 1f…`` or ``user 7``; the rows' actors
    too. Only of this workspace, and only what the reader may see. What has no name or was deleted is left
    out.

    At most `MAX_NAMES`, actors first: a row that was altered may contain any number of ids.
    """
    named = [("user", str(row.user_uuid)) for row in rows]
    named += [each for row in rows for each in _ids_in(audit.stored_facts(row.facts))]
    ids: dict[str, set[str]] = {}
    for kind, value in islice(dict.fromkeys(named), wire.MAX_NAMES):
        ids.setdefault(kind, set()).add(value)
    if not access.holds_any(PROPOSAL_READERS):
        ids.pop("proposal", None)
    people = {int(each) for each in ids.pop("user", ())}
    names = {f"user {number}": name for number, name in _people(db, access, people).items()}
    for kind, wanted in ids.items():
        model, key, name = _NAMED[kind]
        typed = [int(each) if kind in {"role", "contract"} else each for each in wanted]
        # By id alone: with the workspace in the condition SQLite would scan all of its rows.
        for value, text, workspace_id in db.execute(
            select(key, name, model.workspace_id).where(key.in_(typed))
        ):
            if text and workspace_id == access.workspace_id:
                names[f"{kind} {value}"] = text
    return names


def _ids_in(facts: audit.Facts) -> Iterator[tuple[str, str]]:
    """Each with its kind. Whatever stands in the place of an id in a row that was altered is left out."""
    for name, fact in facts.items():
        kind = audit.kind_of(name).removesuffix("s")
        for value in map(str, fact if isinstance(fact, list) else [fact]):
            if kind in _ID and _ID[kind].fullmatch(value):
                yield kind, value


def recipients_in(
    db: Session, access: WorkspaceAccess, rows: Sequence[audit.AuditRow]
) -> dict[str, wire.LogRecipient]:
    """Of the payments that the rows say were proposed, by id, where the reader may read them."""
    created = [audit.stored_facts(row.facts) for row in rows if row.action == "PROPOSAL_CREATED"]
    wanted = {value for facts in created for _, value in _ids_in(facts) if value == audit.paid_by(facts)}
    if not wanted or not access.holds_any(PROPOSAL_READERS):
        return {}
    query = select(ProposalRow.id, ProposalRow.recipients, ProposalRow.workspace_id).where(
        ProposalRow.id.in_(wanted)
    )
    paid: list[Any] = [
        row for row in db.execute(query) if row.workspace_id == access.workspace_id and row.recipients
    ]
    return dict(apart(shown(paid, _recipients, "psbt_id", lambda row: str(row.id)))[0])


def _recipients(rows: Sequence[Any]) -> list[tuple[str, wire.LogRecipient]]:
    return [
        (row.id, wire.LogRecipient(address=row.recipients[0], others=len(set(row.recipients)) - 1))
        for row in rows
    ]


def _people(db: Session, access: WorkspaceAccess, wanted: Iterable[int]) -> dict[int, str]:
    """Members, and users who acted in this log; the latter by their e-mail address for every reader."""
    chain = audit.chain_of(str(access.organisation_id), str(access.workspace_id))
    is_member = exists().where(
        MembershipRow.user_id == UserRow.id, MembershipRow.workspace_id == access.workspace_id
    )
    has_acted = exists().where(AuditEventRow.chain_id == chain, AuditEventRow.user_uuid == UserRow.id)
    query = select(UserRow, is_member, has_acted).where(UserRow.id.in_(wanted))
    rows = [(user, acted) for user, member, acted in db.execute(query) if member or acted]
    named = {
        user.id: shown_name(access, user.first_name, user.surname, user.email) or (acted and user.email)
        for user, acted in rows
    }
    return {number: name for number, name in named.items() if name}
