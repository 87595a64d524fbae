"""Requests for an organisation: an operator decides each once, the number of open ones is limited; and what
their approval creates.
"""

from collections.abc import Sequence
from datetime import timedelta
from math import ceil
from typing import Any, cast

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from custody.schemas import invitations as wire
from custody.schemas.common import ApiNetwork, NullInt64, NullString, NullTime, Unreadable
from custody.schemas.invitations import OnboardingStatus as Status
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller
from custody.server.domain.errors import NotFound, PermissionDenied, RateLimited, StateConflict
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import Template, queue_mail
from custody.server.service.people.people import add_membership
from custody.server.service.people.workspaces import (
    chain_for,
    found_organisation,
    found_workspace,
    record_founding,
)
from custody.server.service.shown import shown
from custody.server.service.stored_vaults import place_of
from custody.server.store.models import OnboardingRequest, User
from custody.server.store.store import Page
from multisig import Network

# One for each network, and one more.
MAX_PENDING_OF_ACCOUNT = 3
REQUESTS_PER_WINDOW = 10
REQUESTS_WINDOW = timedelta(days=1)

TRANSITIONS: dict[tuple[Status, str], Status] = {
    (Status.PENDING, "approve"): Status.APPROVED,
    (Status.PENDING, "reject"): Status.REJECTED,
}


class RequestDecided(StateConflict):
    hint = "Change the organisation itself where it was approved; the requester may send another request."

    def __init__(self, status: Status) -> None:
        super().__init__(f"This request was {status} already.")
        self.status = status


class TooManyRequests(StateConflict):
    hint = "Wait until an operator has decided about one of them."


class NotAnOperator(PermissionDenied):
    hint = "Only operators of the platform review requests; custody admin make-operator makes one."


def next_status(status: Status, decision: str) -> Status:
    """The status after a decision, ``approve`` or ``reject``. Raises RequestDecided."""
    try:
        return TRANSITIONS[status, decision]
    except KeyError:
        raise RequestDecided(status) from None


NO_NOTE = "none was given"


class Onboarding:
    def __init__(self, clock: Clock, audit: AuditLog) -> None:
        self._clock = clock
        self._audit = audit

    def submit(
        self, db: Session, caller: Caller, request: wire.SubmitOnboardingRequest
    ) -> wire.OnboardingRequest:
        """Asks for an organisation. Raises TooManyRequests, RateLimited."""
        self._require_room(db, caller)
        now = self._clock()
        stored = OnboardingRequest(
            **request.model_dump(mode="json"),
            requester_id=caller.user_id,
            status=Status.PENDING.value,
            submitted_at=now,
            updated_at=now,
        )
        db.add(stored)
        db.flush()
        self._record(db, caller, "ONBOARDING_REQUESTED", stored)
        return onboarding_record(db, stored)

    def page(
        self, db: Session, caller: Caller, query: wire.OnboardingQuery
    ) -> Page[wire.OnboardingRequest | Unreadable]:
        """All requests for an operator; for another user, their own."""
        if _is_operator(db, caller):
            return self.page_for_operator(db, query)
        return _page(db, query, OnboardingRequest.requester_id == caller.user_id)

    def page_for_operator(
        self, db: Session, query: wire.OnboardingQuery
    ) -> Page[wire.OnboardingRequest | Unreadable]:
        return _page(db, query)

    def review(
        self, db: Session, caller: Caller, uid: int, request: wire.ReviewOnboardingRequest
    ) -> wire.OnboardingRequest:
        """An operator's decision. Other users get the same error for every id, whether it exists or not.

        Raises as ``decide``, and NotAnOperator.
        """
        if not _is_operator(db, caller):
            raise NotAnOperator("You are not an operator of this platform.")
        return self.decide(db, caller, uid, request)

    def decide(
        self,
        db: Session,
        reviewer: Caller,
        uid: int,
        request: wire.ReviewOnboardingRequest,
        *,
        chain: Network | None = None,
    ) -> wire.OnboardingRequest:
        """A decision is final. An approval creates the organisation and its workspace, with the requester as
        administrator.

        ``chain``: the chain of a network that has no workspace yet. Raises NotFound, RequestDecided,
        NoChainYet, StateConflict (the chain).
        """
        stored = db.get(OnboardingRequest, uid, with_for_update=True)
        if stored is None:
            raise NotFound("There is no such request.")
        status = next_status(Status(stored.status), request.decision)
        stored.review_note = request.review_note or None
        stored.updated_at = self._clock()
        if status is Status.APPROVED:
            # Creating the organisation flushes this row; a constraint allows its id only with the status.
            organisation_id = self._found(db, reviewer, stored, chain)
            stored.created_org_id = organisation_id
            stored.approved_by_email, stored.approved_at = reviewer.name, self._clock()
        stored.status = status.value
        db.flush()
        self._tell(db, stored)
        self._record(db, reviewer, f"ONBOARDING_{status.name}", stored)
        return onboarding_record(db, stored)

    def _found(self, db: Session, reviewer: Caller, stored: OnboardingRequest, chain: Network | None) -> int:
        if chain is not None and chain.api_name != stored.network:
            raise StateConflict(f"The request is for {stored.network}, and {chain} is not.")
        organisation = found_organisation(db, self._clock, stored.org_name)
        founded = found_workspace(
            db,
            self._clock,
            organisation,
            name=stored.workspace_name,
            description="",
            chain=chain or chain_for(db, stored.network),
        )
        add_membership(db, self._clock, stored.requester_id, founded.workspace.id, founded.administrator.id)
        what = f"organisation {organisation.id}, named {organisation.name}, for user {stored.requester_id}"
        self._audit.record(
            db, reviewer, Category.PEOPLE, "ORGANISATION_CREATED", what, organisation_id=organisation.id
        )
        record_founding(db, self._audit, reviewer, place_of(db, founded.workspace.id), founded)
        return organisation.id

    def _tell(self, db: Session, stored: OnboardingRequest) -> None:
        """Mails to the account's address, which is verified; the work address is not."""
        template = {
            Status.APPROVED: Template.ONBOARDING_APPROVED,
            Status.REJECTED: Template.ONBOARDING_REJECTED,
        }[Status(stored.status)]
        values = {"organisation": stored.org_name, "note": stored.review_note or NO_NOTE}
        to = db.get_one(User, stored.requester_id).email
        queue_mail(db, template, to, values, now=self._clock())

    def _require_room(self, db: Session, caller: Caller) -> None:
        own = OnboardingRequest.requester_id == caller.user_id
        pending = select(func.count()).where(own, OnboardingRequest.status == Status.PENDING.value)
        if (db.scalar(pending) or 0) >= MAX_PENDING_OF_ACCOUNT:
            raise TooManyRequests(f"{MAX_PENDING_OF_ACCOUNT} requests of yours wait for a decision.")
        now = self._clock()
        recent = select(func.count(), func.min(OnboardingRequest.submitted_at)).where(
            own, OnboardingRequest.submitted_at > now - REQUESTS_WINDOW
        )
        count, oldest = db.execute(recent).one()
        if count >= REQUESTS_PER_WINDOW:
            wait = oldest + REQUESTS_WINDOW - now
            raise RateLimited("You sent too many requests of late.", retry_after=ceil(wait.total_seconds()))

    def _record(self, db: Session, caller: Caller, action: str, stored: OnboardingRequest) -> None:
        description = f"request {stored.id} of user {stored.requester_id} for {stored.org_name}"
        self._audit.record(db, caller, Category.ONBOARDING, action, description)


def _page(
    db: Session, query: wire.OnboardingQuery, *of: ColumnElement[bool]
) -> Page[wire.OnboardingRequest | Unreadable]:
    by_status = () if query.status is None else (OnboardingRequest.status == query.status.value,)
    wanted = (*of, *by_status)
    total = db.scalar(select(func.count()).select_from(OnboardingRequest).where(*wanted)) or 0
    rest = (*wanted, OnboardingRequest.id > (query.after or 0))
    found = _rows(db, rest, query.limit + 1)
    items = shown(
        found[: query.limit], lambda some: [_shape(*row) for row in some], "uid", lambda row: int(row[0].id)
    )
    return Page(items, total, len(found) > query.limit)


def _is_operator(db: Session, caller: Caller) -> bool:
    return db.get_one(User, caller.user_id).is_operator


def _rows(db: Session, wanted: Sequence[ColumnElement[bool]], limit: int) -> Sequence[Any]:
    """At most ``limit`` rows that ``wanted`` selects, the oldest first."""
    query = (
        select(OnboardingRequest, User.email)
        .join(User, User.id == OnboardingRequest.requester_id)
        .where(*wanted)
        .order_by(OnboardingRequest.id)
        .limit(limit)
    )
    return db.execute(query).all()


def onboarding_record(db: Session, stored: OnboardingRequest) -> wire.OnboardingRequest:
    (found,) = _rows(db, [OnboardingRequest.id == stored.id], 1)
    return _shape(*found)


def _shape(stored: OnboardingRequest, email: str) -> wire.OnboardingRequest:
    return wire.OnboardingRequest(
        uid=stored.id,
        requester_uuid=stored.requester_id,
        requester_email=email,
        first_name=stored.first_name,
        last_name=stored.last_name,
        work_email=stored.work_email,
        messaging_platform=stored.messaging_platform,
        messaging_handle=stored.messaging_handle,
        monthly_volume=stored.monthly_volume,
        referral_source=stored.referral_source,
        referral_source_detail=NullString.of(stored.referral_source_detail),
        org_name=stored.org_name,
        workspace_name=stored.workspace_name,
        network=cast("ApiNetwork", stored.network),
        status=wire.OnboardingStatus(stored.status),
        review_note=NullString.of(stored.review_note),
        approved_by_email=NullString.of(stored.approved_by_email),
        approved_at=NullTime.of(stored.approved_at),
        was_created=stored.created_org_id is not None,
        created_org_uid=NullInt64.of(stored.created_org_id),
        submitted_at=stored.submitted_at,
        updated_at=stored.updated_at,
    )
