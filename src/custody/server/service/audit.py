"""Appends to the audit chains, and reads them back to check them."""

from collections.abc import Generator
from contextlib import closing

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.common import format_time
from custody.server.domain.audit import (
    GENESIS,
    AuditRow,
    Category,
    ChainedRow,
    ChainFault,
    chain_of,
    event_hash,
    find_fault,
)
from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.tokens import new_id
from custody.server.store import Store
from custody.server.store.models import AuditEvent, AuditHead


class AuditLog:
    def __init__(self, clock: Clock, random: RandomBytes) -> None:
        self._clock = clock
        self._random = random

    def record(
        self,
        db: Session,
        caller: Caller,
        category: Category,
        action: str,
        description: str,
        *,
        access: WorkspaceAccess | None = None,
        organisation_id: int | None = None,
    ) -> None:
        """Appends one event in the caller's transaction; call it last, for it locks the chain's head.

        The event goes to the chain of ``access``'s workspace, else of the organisation, else of the platform.
        """
        org_id = access.organisation_id if access else organisation_id
        org_uid = "" if org_id is None else str(org_id)
        workspace_uid = str(access.workspace_id) if access else ""
        chain_id = chain_of(org_uid, workspace_uid)
        head = _locked_head(db, chain_id)
        # Milliseconds, as the row is hashed: what is stored must give the same text again.
        moment = self._clock()
        moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        row = AuditRow(
            event_uid=new_id(self._random),
            chain_id=chain_id,
            position=head.size + 1,
            org_uid=org_uid,
            workspace_uid=workspace_uid,
            timestamp=format_time(moment),
            category=category,
            action=action,
            description=description,
            user_uuid=caller.user_id,
            user_name=caller.name,
            role_uid=str(access.role_id) if access else "",
            trace_id=caller.trace_id,
        )
        hashed = event_hash(head.head_hash, row)
        values = {**vars(row), "timestamp": moment, "category": str(category)}
        db.add(AuditEvent(**values, prev_hash=head.head_hash, event_hash=hashed))
        head.size, head.head_hash = row.position, hashed


def _locked_head(db: Session, chain_id: str) -> AuditHead:
    head = db.get(AuditHead, chain_id, with_for_update=True)
    if head is None:
        head = AuditHead(chain_id=chain_id, size=0, head_hash=GENESIS)
        db.add(head)
    return head


def verify(store: Store) -> tuple[ChainFault, ...]:
    """The first fault of every chain that has one, the chains in order of name."""
    with store.read() as db:
        heads = {head.chain_id: head for head in db.scalars(select(AuditHead))}
        chains = sorted({*heads, *db.scalars(select(AuditEvent.chain_id).distinct())})
        faults = [_verify_chain(db, chain_id, heads.get(chain_id)) for chain_id in chains]
    return tuple(fault for fault in faults if fault is not None)


def _verify_chain(db: Session, chain_id: str, head: AuditHead | None) -> ChainFault | None:
    if head is None:
        return ChainFault(chain_id, 1, "the chain has rows but no head")
    # A fault ends the reading early: the database's cursor must not outlive it.
    with closing(_rows(db, chain_id)) as rows:
        return find_fault(chain_id, rows, head.size, head.head_hash)


def _rows(db: Session, chain_id: str) -> Generator[ChainedRow, None, None]:
    query = select(AuditEvent).where(AuditEvent.chain_id == chain_id).order_by(AuditEvent.position)
    with db.scalars(query.execution_options(yield_per=1_000)) as events:
        for event in events:
            yield ChainedRow(_row(event), event.prev_hash, event.event_hash)


def _row(event: AuditEvent) -> AuditRow:
    return AuditRow(
        event_uid=event.event_uid,
        chain_id=event.chain_id,
        position=event.position,
        org_uid=event.org_uid,
        workspace_uid=event.workspace_uid,
        timestamp=format_time(event.timestamp),
        category=event.category,
        action=event.action,
        description=event.description,
        user_uuid=event.user_uuid,
        user_name=event.user_name,
        role_uid=event.role_uid,
        trace_id=event.trace_id,
    )
