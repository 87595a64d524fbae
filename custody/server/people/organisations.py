"""Organisations and their workspaces: requests for one, which an operator decides once; founding one, and its
name. A workspace is on a chain, with its first roles.

The command line, an organisation's administrators, and the approval of a request found them, each in a
transaction of its own.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from custody.common.text import name_key
from custody.schemas import onboarding as wire
from custody.schemas import users
from custody.schemas.call import ANY_MEMBER, Page
from custody.schemas.common import NullInt64, Unreadable
from custody.schemas.onboarding import OnboardingStatus as Status
from custody.server.calls import Ctx, serves
from custody.server.errors import NotFound, PermissionDenied, StateConflict
from custody.server.keys.profiles import chain_on, watch_profiles
from custody.server.mail.jobs import Template, queue_mail
from custody.server.people.people import add_membership, enter, workspace_info
from custody.server.people.staff import role_shapes, store_role
from custody.server.requests.rates import require_few
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.rules.roles import ADMINISTRATOR, SIGNER
from custody.server.shown import shape_of, shown
from custody.server.store import models
from custody.server.store.models import OrganisationRow, RoleRow, UserRow, WorkspaceRow
from custody.server.vaults.stored import place_of
from multisig import Network

# One for each network, and one more.
MAX_PENDING_OF_ACCOUNT = 3
REQUESTS_PER_WINDOW = 10
REQUESTS_WINDOW = timedelta(days=1)
HINT_DECIDED = "Change the organisation itself where it was approved; the requester may send another request."
NO_NOTE = "none was given"
REQUEST = "// request {request} of {user} for {name}"
REQUESTED = Event("ONBOARDING_REQUESTED", REQUEST, Category.ONBOARDING)
DECIDED = {
    status: Event(f"ONBOARDING_{status.name}", REQUEST, Category.ONBOARDING)
    for status in (Status.APPROVED, Status.REJECTED)
}
# A sign-in reads all of a member's workspaces.
MAX_WORKSPACES = 100
ORGANISATION_CREATED = Event(
    "ORGANISATION_CREATED", "// organisation {organisation}, named {name}[, for {user}]"
)
CREATED = Event("WORKSPACE_CREATED", "made the workspace {name} // workspace {workspace}, network {network}")
RENAMED = Event("WORKSPACE_UPDATED", "renamed the workspace {name} to {new_name}")
DESCRIBED = Event("WORKSPACE_UPDATED", "changed the workspace's description")
CHECKS = Event("KEY_CHECKS_CHANGED", "asks every signer's device to sign once in {months} months")
NO_CHECKS = Event("KEY_CHECKS_CHANGED", "asks no signer's device to sign once in some months")


def found_organisation(ctx: Ctx, name: str, *, user_id: int | None = None) -> OrganisationRow:
    """Records the first event of the organisation's chain. ``user_id``: who had asked for it."""
    organisation = OrganisationRow(name=name, created_at=ctx.now)
    ctx.add(organisation)
    facts = {"organisation": organisation.id, "name": organisation.name, "user": user_id}
    ctx.tools.audit.record(ctx.db, ctx.caller, ORGANISATION_CREATED, None, None, organisation.id, **facts)
    return organisation


def found_workspace(
    ctx: Ctx, organisation_id: int, *, name: str, description: str, chain: Network
) -> tuple[WorkspaceRow, RoleRow]:
    """A workspace with the first roles, of which the administrator's is returned, and no member: add one, and
    `record_founding`.

    Raises StateConflict where the organisation has a workspace with this name, or the platform's network is
    on another chain: ``testnet`` means one chain on one platform, because profile addresses name no
    workspace.
    """
    db, network = ctx.db, chain.api_name
    known = chain_on(db, network)
    if known not in {None, chain}:
        raise StateConflict(
            f"On this platform, {network} always means {known}. "
            f"Create it on {known}, or start another platform."
        )
    _require_free_name(db, organisation_id, name)
    workspace = WorkspaceRow(
        organisation_id=organisation_id,
        name=name,
        description=description,
        network=network,
        chain=chain.value,
        created_at=ctx.now,
    )
    ctx.add(workspace)
    if known is None:
        watch_profiles(db, network, chain.value)
    administrator = store_role(db, ctx.now, workspace.id, ADMINISTRATOR)
    store_role(db, ctx.now, workspace.id, SIGNER)
    return workspace, administrator


def record_founding(ctx: Ctx, access: WorkspaceAccess, workspace: WorkspaceRow) -> None:
    """The first event of the workspace's chain. ``access``: the founder's, or `place_of`."""
    facts = {"workspace": workspace.id, "name": workspace.name, "network": workspace.network}
    ctx.tools.audit.record(ctx.db, ctx.caller, CREATED, access, **facts)


def chain_for(db: Session, network: str) -> Network:
    """The chain of a new workspace on an API network: that of the platform's other workspaces. Raises
    StateConflict.
    """
    if network == Network.MAINNET.api_name:
        return Network.MAINNET
    chain = chain_on(db, network)
    if chain is None:
        # The first workspace of a network decides its chain; only the operator can create it.
        raise StateConflict(
            f"No workspace of this platform is on {network} yet.",
            hint="Ask the platform's operator, who opens a network with custody admin bootstrap --chain.",
        )
    return chain


@serves(users.CREATE_WORKSPACE)
def create_workspace(ctx: Ctx, request: users.CreateWorkspaceRequest) -> users.WorkspaceEntry:
    organisation_id = ctx.access.organisation_id
    if request.org_id != organisation_id:
        raise NotFound("The workspace and the organisation named do not belong together.")
    present = select(func.count()).where(WorkspaceRow.organisation_id == organisation_id)
    if (ctx.db.scalar(present) or 0) >= MAX_WORKSPACES:
        raise StateConflict(
            f"The organisation has {MAX_WORKSPACES} workspaces, the most that it can have.",
            hint="Rename a workspace that is no longer needed, and use that one.",
        )
    workspace, role = found_workspace(
        ctx,
        organisation_id,
        name=request.name,
        description=request.description,
        chain=chain_for(ctx.db, request.network),
    )
    add_membership(ctx.db, ctx.now, ctx.caller.user_id, workspace.id, role.id)
    record_founding(ctx, enter(ctx.db, ctx.caller, workspace.id, ANY_MEMBER, ctx.now), workspace)
    shape = role_shapes(ctx.db, [role])[role.id]
    return users.WorkspaceEntry(workspace_info=workspace_info(workspace), role=shape)


@serves(users.UPDATE_WORKSPACE)
def update_workspace(ctx: Ctx, request: users.UpdateWorkspaceRequest) -> users.WorkspaceInfo:
    workspace = ctx.db.get_one(WorkspaceRow, ctx.access.workspace_id)
    before = workspace.name
    name = before if request.name is None else request.name
    description = workspace.description if request.description is None else request.description
    if name != before:
        _require_free_name(ctx.db, workspace.organisation_id, name, besides=workspace.id)
    months_before, months = workspace.key_check_months, request.key_check_months
    is_described = description != workspace.description
    workspace.name, workspace.description = name, description
    workspace.key_check_months = months_before if months is None else months
    ctx.db.flush()
    if name != before:
        ctx.event(RENAMED, name=before, new_name=name)
    elif is_described:
        ctx.event(DESCRIBED)
    if workspace.key_check_months != months_before:
        ctx.event(CHECKS if months else NO_CHECKS, **{"months": months} if months else {})
    return workspace_info(workspace)


def _require_free_name(db: Session, organisation_id: int, name: str, *, besides: int = 0) -> None:
    """Names that look the same count as equal. Raises StateConflict."""
    others = WorkspaceRow.organisation_id == organisation_id, WorkspaceRow.id != besides
    for taken in db.scalars(select(WorkspaceRow.name).where(*others)):
        if name_key(taken) == name_key(name):
            raise StateConflict(f"The organisation has a workspace called {taken} already.")


@serves(wire.SUBMIT_ONBOARDING_REQUEST)
def submit_onboarding_request(ctx: Ctx, request: wire.SubmitOnboardingRequest) -> wire.OnboardingRequest:
    _require_room(ctx)
    now = ctx.now
    stored = models.OnboardingRequestRow(
        **request.model_dump(mode="json"),
        requester_id=ctx.caller.user_id,
        status=Status.PENDING.value,
        submitted_at=now,
        updated_at=now,
    )
    ctx.add(stored)
    _record(ctx, REQUESTED, stored)
    return _details(ctx.db, stored)


@serves(wire.ONBOARDING_REQUESTS)
def onboarding_requests(ctx: Ctx, query: wire.OnboardingQuery) -> Page[wire.OnboardingRequest | Unreadable]:
    own = models.OnboardingRequestRow.requester_id == ctx.caller.user_id
    return page(ctx.db, query) if _is_operator(ctx) else page(ctx.db, query, own)


@serves(wire.REVIEW_ONBOARDING_REQUEST)
def review_onboarding_request(ctx: Ctx, request: wire.ReviewOnboardingRequest) -> wire.OnboardingRequest:
    """Other users get the same error for every id, whether it exists or not."""
    if not _is_operator(ctx):
        raise PermissionDenied(
            "You are not an operator of this platform.",
            hint="Only operators of the platform review requests; custody admin make-operator makes one.",
        )
    return decide(ctx, ctx.ids["uid"], request)


def decide(
    ctx: Ctx, uid: int, request: wire.ReviewOnboardingRequest, *, chain: Network | None = None
) -> wire.OnboardingRequest:
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
    db: Session, query: wire.OnboardingQuery, *of: ColumnElement[bool]
) -> Page[wire.OnboardingRequest | Unreadable]:
    by_status = () if query.status is None else (models.OnboardingRequestRow.status == query.status.value,)
    wanted = (*of, *by_status)
    total = db.scalar(select(func.count()).select_from(models.OnboardingRequestRow).where(*wanted)) or 0
    rest = (*wanted, models.OnboardingRequestRow.id > (query.after or 0))
    rows = _rows(db, rest, query.limit + 1)
    items = shown(rows[: query.limit], _shapes, "uid", lambda row: int(row[0].id))
    return Page(items, total, len(rows) > query.limit)


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


def _details(db: Session, stored: models.OnboardingRequestRow) -> wire.OnboardingRequest:
    return _shapes(_rows(db, [models.OnboardingRequestRow.id == stored.id], 1))[0]


def _shapes(rows: Sequence[Any]) -> list[wire.OnboardingRequest]:
    return [
        shape_of(
            wire.OnboardingRequest,
            stored,
            uid=stored.id,
            requester_uuid=stored.requester_id,
            requester_email=email,
            was_created=stored.created_org_id is not None,
            created_org_uid=NullInt64.of(stored.created_org_id),
        )
        for stored, email in rows
    ]
