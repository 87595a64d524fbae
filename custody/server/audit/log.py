"""Appends to the audit chains, and reads them back."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ColumnElement, bindparam, insert, select, update
from sqlalchemy.orm import Session

from custody.schemas.common import format_time
from custody.server.rules import audit
from custody.server.rules.credentials import Caller, WorkspaceAccess, new_id
from custody.server.rules.ports import Clock, RandomBytes
from custody.server.store.models.base import table_of
from custody.server.store.models.bookkeeping import AuditEventRow, AuditHeadRow
from custody.server.store.store import gather
from multisig.canonical_json import canonical_json

if TYPE_CHECKING:
    from custody.server.webhooks.events import WebhookEvents

# Rows in memory at a time.
BATCH: Final = 1_000


class AuditLog:
    """``events``: what tells the webhooks; None where nothing of a workspace is recorded."""

    def __init__(self, clock: Clock, random: RandomBytes, events: "WebhookEvents | None" = None) -> None:
        self._clock = clock
        self._random = random
        self._events = events

    def record(
        self,
        db: Session,
        caller: Caller,
        event: audit.Event,
        access: WorkspaceAccess | None,
        payload: Mapping[str, Any] | None = None,
        organisation_id: int | None = None,
        /,
        **facts: Any,
    ) -> None:
        """Appends one event at the end of the caller's transaction.

        The event goes to the chain of ``access``'s workspace, else of the organisation, else of the platform.
        ``payload``: the data of the webhook event, for actions that have one.
        """
        assert facts.keys() == event.names, f"{event.action} has the facts {', '.join(sorted(event.names))}"
        if access is not None:
            assert self._events is not None, f"{event.action} is of a workspace, whose webhooks are told"
            self._events.tell_action(db, access, event.action, payload)
        org_id = access.organisation_id if access else organisation_id
        org_uid = "" if org_id is None else str(org_id)
        workspace_uid = str(access.workspace_id) if access else ""
        chain_id = audit.chain_of(org_uid, workspace_uid)
        row = audit.AuditRow(
            event_uid=new_id(self._random),
            chain_id=chain_id,
            # Counted where it is appended.
            position=0,
            org_uid=org_uid,
            workspace_uid=workspace_uid,
            timestamp=format_time(self._clock()),
            category=event.category,
            action=event.action,
            description=event.describe(facts),
            facts=canonical_json(facts).decode(),
            user_uuid=caller.user_id,
            user_name=caller.name,
            role_uid=str(access.role_id) if access else "",
            trace_id=caller.trace_id,
        )
        gather(db, _RECORDED, row, partial(_append, db))


_RECORDED: Final = "audit events of this transaction"
_HEADS = table_of(AuditHeadRow)
_HEAD = (
    select(AuditHeadRow.size, AuditHeadRow.head_hash)
    .where(AuditHeadRow.chain_id == bindparam("chain_id"))
    .with_for_update()
)
# Core statements, not entities: no session reads the rows that it recorded.
_NEW_HEAD = insert(_HEADS)
_MOVE_HEAD = update(_HEADS).where(_HEADS.c.chain_id == bindparam("moved_chain"))
_APPEND = insert(table_of(AuditEventRow))


def _append(db: Session, recorded: Sequence[audit.AuditRow]) -> None:
    """Chains the events in their order. One writer at a time (ADR 13): nobody else appends meanwhile."""
    heads: dict[str, tuple[int, bytes]] = {}
    rows = []
    for one in recorded:
        size, head_hash = heads.get(one.chain_id) or _locked_head(db, one.chain_id)
        row = replace(one, position=size + 1)
        hashed = audit.event_hash(head_hash, row)
        rows.append(
            {**vars(row), "category": str(row.category), "prev_hash": head_hash, "event_hash": hashed}
        )
        heads[row.chain_id] = row.position, hashed
    db.execute(_APPEND, rows)
    for chain_id, (size, head_hash) in heads.items():
        db.execute(_MOVE_HEAD, {"moved_chain": chain_id, "size": size, "head_hash": head_hash})


def _locked_head(db: Session, chain_id: str) -> tuple[int, bytes]:
    head = db.execute(_HEAD, {"chain_id": chain_id}).one_or_none()
    if head is not None:
        return head.size, head.head_hash
    db.execute(_NEW_HEAD, {"chain_id": chain_id, "size": 0, "head_hash": audit.GENESIS})
    return 0, audit.GENESIS


def chained_rows(
    db: Session,
    *conditions: ColumnElement[bool],
    newest_first: bool = False,
) -> Generator[audit.ChainedRow, None, None]:
    """The rows of one chain in order, a thousand in memory at a time. Close it unless you read it to its
    end.
    """
    order = AuditEventRow.position.desc() if newest_first else AuditEventRow.position
    query = select(*_COLUMNS).where(*conditions).order_by(order)
    with db.execute(query.execution_options(yield_per=BATCH)) as events:
        for event in events:
            values = event._asdict()
            hashes = values.pop("prev_hash"), values.pop("event_hash")
            yield audit.ChainedRow(audit.AuditRow(**values), *hashes)


# Columns, not entities: a verification reads everything, and a session would keep track of each row.
_COLUMNS = tuple(AuditEventRow.__table__.columns)
