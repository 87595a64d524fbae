"""Sending a call again that stalled before it reached the network (P15)."""

from sqlalchemy.orm import Session

from custody.schemas.asset_tokens import CallStatus, ResubmitCallResponse
from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.domain.errors import CallNotStalled
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.outbox import enqueue
from custody.server.service.proposals.finalising import BROADCAST
from custody.server.service.token_status import standings
from custody.server.service.tokens.call_records import call_in


class Resubmitting:
    """Nothing is signed and nothing is built: the final transaction that is stored is offered once more, by its txid."""

    def __init__(self, clock: Clock, audit: AuditLog) -> None:
        self._clock = clock
        self._audit = audit

    def resubmit(
        self, db: Session, caller: Caller, access: WorkspaceAccess, call_uid: int
    ) -> ResubmitCallResponse:
        """Asked twice, it is due once. Raises NotFound, CallNotStalled."""
        call = call_in(db, access, call_uid)
        standing = standings(db, access.chain, [call.family_id])[call.family_id]
        if standing.status is not CallStatus.STALLED:
            raise CallNotStalled(f"The call is {standing.status}: only a stalled one is sent again.")
        enqueue(db, BROADCAST, standing.best.id, self._clock())
        self._audit.record(
            db,
            caller,
            Category.TOKENS,
            "CALL_RESUBMITTED",
            f"call {call.uid}, proposal {standing.best.id}, tx {standing.best.txid_expected}",
            access=access,
        )
        return ResubmitCallResponse(txid=standing.best.txid_expected, status=standing.status)

    def status(self, db: Session, access: WorkspaceAccess, call_uid: int) -> CallStatus:
        """As of now. Raises NotFound."""
        call = call_in(db, access, call_uid)
        return standings(db, access.chain, [call.family_id])[call.family_id].status
