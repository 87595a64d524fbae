"""Making, changing and revoking the accounts of programs, and their secrets."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.common.text import name_key
from custody.schemas import service_accounts as wire
from custody.schemas.common import Listed, WorkspaceQuery
from custody.schemas.service_accounts import ServiceAccountStatus as Status
from custody.server.calls import ChangeApproval, Ctx, serves
from custody.server.errors import Invalid, NotFound, PermissionDenied, StateConflict
from custody.server.mail.jobs import Template, queue_mail
from custody.server.rules.audit import Event
from custody.server.rules.credentials import is_wider, new_secret, require_end, require_givable, token_hash
from custody.server.shown import shape_of, shown
from custody.server.store import models
from custody.server.store.models import MembershipRow, UserRow, WorkspaceRow

MAX_LIVE: Final = 50
MAX_SHOWN: Final = 200
# New secrets of one maker: each sends them a mail.
SECRETS: Final = 20
SECRETS_WINDOW: Final = timedelta(hours=1)
CREATED = Event(
    "SERVICE_ACCOUNT_CREATED",
    "made the program {name} // account {account}, rights {rights}, networks {networks}, end {end}",
)
CHANGED = Event(
    "SERVICE_ACCOUNT_CHANGED",
    "changed the program {name} // account {account}, rights {rights}, networks {networks}, end {end}",
)
_FORMER: Final = "[the one before is good for {hours} hours|no other one is good]"
SECRET_MADE = Event(
    "SERVICE_SECRET_MADE", "made a new secret of the program {name}: " + _FORMER + " // account {account}"
)
REVOKED = Event("SERVICE_ACCOUNT_REVOKED", "revoked the program {name} // account {account}, {user}")


@serves(wire.SERVICE_ACCOUNTS)
def service_accounts(ctx: Ctx, _: WorkspaceQuery) -> Listed[wire.ServiceAccount]:
    query = select(models.ServiceAccountRow).where(
        models.ServiceAccountRow.workspace_id == ctx.access.workspace_id
    )
    # Live ones are all there (`MAX_LIVE`), however many were revoked since.
    live_first = models.ServiceAccountRow.revoked_at.is_not(None)
    rows = ctx.db.scalars(query.order_by(live_first, models.ServiceAccountRow.id.desc()).limit(MAX_SHOWN))
    accounts = sorted(rows, key=lambda account: account.id, reverse=True)
    return shown(accounts, partial(_details, ctx), "service_account_id", lambda account: account.id)


@serves(wire.OWN_SERVICE_ACCOUNT)
def own_service_account(ctx: Ctx, _: None) -> wire.ServiceAccount:
    if ctx.caller.service is None:
        raise NotFound("You are signed in as a person: get-user-info shows your account.")
    return _details(ctx, [ctx.db.get_one(models.ServiceAccountRow, ctx.caller.service.account_id)])[0]


@serves(wire.CREATE_SERVICE_ACCOUNT)
def create_service_account(ctx: Ctx, request: wire.CreateServiceAccountRequest) -> wire.ServiceAccount:
    """Without a secret: the maker requests that, not the member who confirms."""
    now = ctx.now
    require_givable(frozenset(request.rights), ctx.access.permissions)
    require_end(request.expires_at, now)
    if _take_name(ctx, request.name) >= MAX_LIVE:
        raise StateConflict(f"The workspace has {MAX_LIVE} service accounts: revoke some of them.")
    account = models.ServiceAccountRow(
        workspace_id=ctx.access.workspace_id,
        made_by=ctx.caller.user_id,
        name=request.name,
        rights=sorted(set(request.rights)),
        networks=request.networks,
        created_at=now,
        expires_at=request.expires_at,
    )
    ctx.add(account)
    _record(ctx, CREATED, account, **_terms(account))
    return _details(ctx, [account])[0]


def _widens(ctx: Ctx, request: wire.UpdateServiceAccountRequest) -> bool:
    """Whether the program gets more rights, more networks, or a later end."""
    account = _own(ctx, request)
    more_rights = bool(set(request.rights or ()) - set(account.rights))
    longer = request.expires_at is not None and request.expires_at > account.expires_at
    return more_rights or longer or is_wider(account.networks, request.networks or ())


@serves(wire.UPDATE_SERVICE_ACCOUNT, ChangeApproval(_widens))
def update_service_account(ctx: Ctx, request: wire.UpdateServiceAccountRequest) -> wire.ServiceAccount:
    """Only by its maker, whose rights it uses. An update without effect is not recorded."""
    account = _own(ctx, request)
    before = (account.name, _terms(account))
    if request.rights is not None:
        require_givable(frozenset(request.rights), ctx.access.permissions)
        account.rights = sorted(set(request.rights))
    if request.expires_at is not None:
        require_end(request.expires_at, ctx.now)
        account.expires_at = request.expires_at
    if request.name is not None:
        _take_name(ctx, request.name, besides=account.id)
        account.name = request.name
    account.networks = request.networks or account.networks
    ctx.db.flush()
    if before != (account.name, _terms(account)):
        _record(ctx, CHANGED, account, **_terms(account))
    return _details(ctx, [account])[0]


@serves(wire.ISSUE_SERVICE_SECRET)
def issue_service_secret(ctx: Ctx, request: wire.IssueServiceSecretRequest) -> wire.ServiceSecret:
    """Only for the maker. The former one stays valid for ``overlap_hours``; older ones end now."""
    account, now = _own(ctx, request), ctx.now
    ctx.services.service_secrets.take(str(ctx.caller.user_id))
    secret = new_secret(account.id, ctx.tools.random)
    hours = request.overlap_hours if account.secret_hash is not None else 0
    account.former_hash = account.secret_hash if hours else None
    account.former_until = now + timedelta(hours=hours) if hours else None
    account.secret_hash = token_hash(secret)
    ctx.db.flush()
    workspace = ctx.db.get_one(WorkspaceRow, account.workspace_id)
    values = {"name": account.name, "workspace": workspace.name}
    maker = ctx.db.get_one(UserRow, account.made_by)
    queue_mail(ctx.db, Template.SERVICE_SECRET, maker.email, values, now=now)
    _record(ctx, SECRET_MADE, account, hours=hours or None)
    return wire.ServiceSecret(service_account=_details(ctx, [account])[0], secret=secret)


@serves(wire.REVOKE_SERVICE_ACCOUNT)
def revoke_service_account(ctx: Ctx, request: wire.ServiceAccountRequest) -> wire.ServiceAccount:
    """Once and for good; idempotent."""
    account = ctx.find(models.ServiceAccountRow, request.service_account_id, "service account")
    if account.revoked_at is None:
        end_account(account, ctx.now)
        ctx.db.flush()
        _record(ctx, REVOKED, account, user=account.made_by)
    return _details(ctx, [account])[0]


def end_service_accounts(db: Session, user_id: int, workspace_id: int, now: datetime) -> list[int]:
    """Revokes a former member's accounts, which a later membership would activate again. Returns their
    ids.
    """
    query = select(models.ServiceAccountRow).where(
        models.ServiceAccountRow.made_by == user_id,
        models.ServiceAccountRow.workspace_id == workspace_id,
        models.ServiceAccountRow.revoked_at.is_(None),
    )
    ended = list(db.scalars(query.order_by(models.ServiceAccountRow.id)))
    for account in ended:
        end_account(account, now)
    return [account.id for account in ended]


def end_account(account: models.ServiceAccountRow, now: datetime) -> None:
    account.revoked_at = now
    account.secret_hash = account.former_hash = account.former_until = None


def _own(ctx: Ctx, request: wire.ServiceAccountRequest) -> models.ServiceAccountRow:
    """Of the caller, who made it."""
    account = ctx.find(models.ServiceAccountRow, request.service_account_id, "service account")
    if account.made_by != ctx.caller.user_id:
        raise PermissionDenied(
            "It acts in its maker's name, so only its maker may change it. You may revoke it."
        )
    if account.revoked_at is not None:
        raise StateConflict("It was revoked: make another one.")
    return account


def _take_name(ctx: Ctx, name: str, *, besides: int = 0) -> int:
    """Raises Invalid where another live account is called so. Returns how many there are."""
    rows = select(models.ServiceAccountRow.name).where(
        models.ServiceAccountRow.workspace_id == ctx.access.workspace_id,
        models.ServiceAccountRow.revoked_at.is_(None),
        models.ServiceAccountRow.expires_at > ctx.now,
        models.ServiceAccountRow.id != besides,
    )
    names = ctx.db.scalars(rows).all()
    if name_key(name) in map(name_key, names):
        raise Invalid.at("/name", "Another program of this workspace has this name: choose another.")
    return len(names)


def _record(ctx: Ctx, event: Event, account: models.ServiceAccountRow, **facts: Any) -> None:
    ctx.event(event, account=account.id, name=account.name, **facts)


def _details(ctx: Ctx, accounts: Sequence[models.ServiceAccountRow]) -> list[wire.ServiceAccount]:
    """Accounts of one workspace; their makers are read with one statement."""
    if not accounts:
        return []
    place = ctx.db.get_one(WorkspaceRow, accounts[0].workspace_id)
    is_place = (MembershipRow.user_id == UserRow.id) & (MembershipRow.workspace_id == place.id)
    makers = (
        select(UserRow.id, UserRow.email, MembershipRow.id)
        .outerjoin(MembershipRow, is_place)
        .where(UserRow.id.in_({account.made_by for account in accounts}))
    )
    emails, members = {}, set()
    for user_id, email, membership_id in ctx.db.execute(makers):
        emails[user_id] = email
        if membership_id is not None:
            members.add(user_id)
    now = ctx.now
    return [
        shape_of(
            wire.ServiceAccount,
            account,
            service_account_id=account.id,
            org_id=place.organisation_id,
            status=_status(account, now, is_member=account.made_by in members),
            made_by_name=emails[account.made_by],
            former_secret_until=_still(account.former_until, now),
        )
        for account in accounts
    ]


def _status(account: models.ServiceAccountRow, now: datetime, *, is_member: bool) -> Status:
    if account.revoked_at is not None:
        return Status.REVOKED
    if account.expires_at <= now:
        return Status.EXPIRED
    if not is_member:
        return Status.IDLE
    return Status.WAITING if account.secret_hash is None else Status.ACTIVE


def _still(until: datetime | None, now: datetime) -> datetime | None:
    return None if until is None or until <= now else until


def _terms(account: models.ServiceAccountRow) -> dict[str, Any]:
    end = account.expires_at.isoformat(timespec="minutes")
    return {"rights": sorted(account.rights), "networks": list(account.networks), "end": end}
