"""Requests for an organisation: an operator decides each once, the number of open ones is limited; and what
their approval creates.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from custody.schemas.call import Page
from custody.schemas.common import NullInt64, Unreadable
from custody.schemas.onboarding import (
    ONBOARDING_REQUESTS,
    REVIEW_ONBOARDING_REQUEST,
    SUBMIT_ONBOARDING_REQUEST,
    OnboardingQuery,
    OnboardingRequest,
    ReviewOnboardingRequest,
    SubmitOnboardingRequest,
)
from custody.schemas.onboarding import OnboardingStatus as Status
from custody.server.calls import Ctx, serves
from custody.server.errors import NotFound, PermissionDenied, StateConflict
from custody.server.mail.jobs import Template, queue_mail
from custody.server.people.people import add_membership
from custody.server.people.workspaces import (
    chain_for,
    found_organisation,
    found_workspace,
    record_founding,
)
from custody.server.requests.rates import require_few
from custody.server.rules.audit import Category, Event
from custody.server.shown import shape_of, shown
from custody.server.store import models
from custody.server.store.models import UserRow
from custody.server.vaults.stored import place_of
from multisig import Network

# One for each network, and one more.
MAX_PENDING_OF_ACCOUNT = 3
REQUESTS_PER_WINDOW = 10
REQUESTS_WINDOW = timedelta(days=1)


HINT_DECIDED = "Change the organisation itself where it was approved; the requester may send another request."
NO_NOTE = "none was given"
REQUEST = "request {request} of user {user} for {name}"


REQUESTED = Event("ONBOARDING_REQUESTED", REQUEST, category=Category.ONBOARDING)
DECIDED = {
    status: Event(f"ONBOARDING_{status.name}", REQUEST, category=Category.ONBOARDING)
    for status in (Status.APPROVED, Status.REJECTED)
}


@serves(SUBMIT_ONBOARDING_REQUEST)
def submit_onboarding_request(ctx: Ctx, request: SubmitOnboardingRequest) -> OnboardingRequest:
    _require_room(ctx)
    now = ctx.now
    stored = models.OnboardingRequestRow(
        **request.model_dump(mode="json"),
        requester_id=ctx.caller.user_id,
        status=Status.PENDING.value,
        submitted_at=now,
        updated_at=now,
    )
    ctx.db.add(stored)
    ctx.db.flush()
    _record(ctx, REQUESTED, stored)
    return _details(ctx.db, stored)


@serves(ONBOARDING_REQUESTS)
def onboarding_requests(ctx: Ctx, query: OnboardingQuery) -> Page[OnboardingRequest | Unreadable]:
    own = models.OnboardingRequestRow.requester_id == ctx.caller.user_id
    return page(ctx.db, query) if _is_operator(ctx) else page(ctx.db, query, own)


@serves(REVIEW_ONBOARDING_REQUEST)
def review_onboarding_request(ctx: Ctx, request: ReviewOnboardingRequest) -> OnboardingRequest:
    """Other users get the same error for every id, whether it exists or not."""
    if not _is_operator(ctx):
        raise PermissionDenied(
            "You are not an operator of this platform.",
            hint="Only operators of the platform review requests; custody admin make-operator makes one.",
        )
    return decide(ctx, ctx.ids["uid"], request)


def decide(
    ctx: Ctx, uid: int, request: ReviewOnboardingRequest, *, chain: Network | None = None
) -> OnboardingRequest:
    """A decision is final. An approval creates the organisation and its workspace, with the requester as
    administrator.

    ``chain``: the chain of a network that has no workspace yet. Raises NotFound, StateConflict (it is
    decided; the chain).
    """
    stored = ctx.db.get(models.OnboardingRequestRow, uid, with_for_update=True)
    if stored is None:
        raise NotFound("There is no such request.")
    if stored.status != Status.PENDING.value:
        raise StateConflict(f"This request was {stored.status} already.", hint=HINT_DECIDED)
    status = Status.APPROVED if request.decision == "approve" else Status.REJECTED
    stored.review_note = request.review_note or None
    stored.updated_at = ctx.now
    if status is Status.APPROVED:
        # Creating the organisation flushes this row; a constraint allows its id only with the status.
        organisation_id = _found(ctx, stored, chain)
        stored.created_org_id = organisation_id
        stored.approved_by_email, stored.approved_at = ctx.caller.name, ctx.now
    stored.status = status.value
    ctx.db.flush()
    # To the account's address, which is verified; the work address is not.
    email = ctx.db.get_one(UserRow, stored.requester_id).email
    is_approved = status is Status.APPROVED
    template = Template.ONBOARDING_APPROVED if is_approved else Template.ONBOARDING_REJECTED
    values = {"organisation": stored.org_name, "note": stored.review_note or NO_NOTE}
    queue_mail(ctx.db, template, email, values, now=ctx.now)
    _record(ctx, DECIDED[status], stored)
    return _details(ctx.db, stored)


def _found(ctx: Ctx, stored: models.OnboardingRequestRow, chain: Network | None) -> int:
    if chain is not None and chain.api_name != stored.network:
        raise StateConflict(f"The request is for {stored.network}, and {chain} is not.")
    organisation = found_organisation(ctx, stored.org_name, user_id=stored.requester_id)
    workspace, administrator = found_workspace(
        ctx,
        organisation.id,
        name=stored.workspace_name,
        description="",
        chain=chain or chain_for(ctx.db, stored.network),
    )
    add_membership(ctx.db, ctx.now, stored.requester_id, workspace.id, administrator.id)
    record_founding(ctx, place_of(ctx.db, workspace.id), workspace)
    return organisation.id


def _require_room(ctx: Ctx) -> None:
    own = models.OnboardingRequestRow.requester_id == ctx.caller.user_id
    pending = select(func.count()).where(own, models.OnboardingRequestRow.status == Status.PENDING.value)
    if (ctx.db.scalar(pending) or 0) >= MAX_PENDING_OF_ACCOUNT:
        raise StateConflict(
            f"{MAX_PENDING_OF_ACCOUNT} requests of yours wait for a decision.",
            hint="Wait until an operator has decided about one of them.",
        )
    at, sentence = models.OnboardingRequestRow.submitted_at, "You sent too many requests of late."
    require_few(ctx.db, at, [own], REQUESTS_PER_WINDOW, REQUESTS_WINDOW, ctx.now, sentence)


def _record(ctx: Ctx, event: Event, stored: models.OnboardingRequestRow) -> None:
    ctx.event(event, request=stored.id, user=stored.requester_id, name=stored.org_name)


def page(
    db: Session, query: OnboardingQuery, *of: ColumnElement[bool]
) -> Page[OnboardingRequest | Unreadable]:
    by_status = () if query.status is None else (models.OnboardingRequestRow.status == query.status.value,)
    wanted = (*of, *by_status)
    total = db.scalar(select(func.count()).select_from(models.OnboardingRequestRow).where(*wanted)) or 0
    rest = (*wanted, models.OnboardingRequestRow.id > (query.after or 0))
    found = _rows(db, rest, query.limit + 1)
    items = shown(found[: query.limit], _shapes, "uid", lambda row: int(row[0].id))
    return Page(items, total, len(found) > query.limit)


def _is_operator(ctx: Ctx) -> bool:
    return ctx.db.get_one(UserRow, ctx.caller.user_id).is_operator


def _rows(db: Session, wanted: Sequence[ColumnElement[bool]], limit: int) -> Sequence[Any]:
    """At most ``limit`` rows that ``wanted`` selects, the oldest first."""
    query = (
        select(models.OnboardingRequestRow, UserRow.email)
        .join(UserRow, UserRow.id == models.OnboardingRequestRow.requester_id)
        .where(*wanted)
        .order_by(models.OnboardingRequestRow.id)
        .limit(limit)
    )
    return db.execute(query).all()


def _details(db: Session, stored: models.OnboardingRequestRow) -> OnboardingRequest:
    return _shapes(_rows(db, [models.OnboardingRequestRow.id == stored.id], 1))[0]


def _shapes(rows: Sequence[Any]) -> list[OnboardingRequest]:
    return [
        shape_of(
            OnboardingRequest,
            stored,
            uid=stored.id,
            requester_uuid=stored.requester_id,
            requester_email=email,
            was_created=stored.created_org_id is not None,
            created_org_uid=NullInt64.of(stored.created_org_id),
        )
        for stored, email in rows
    ]
