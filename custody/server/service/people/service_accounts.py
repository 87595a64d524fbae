"""Making, changing and revoking the accounts of programs, and their secrets."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas import service_accounts as wire
from custody.schemas.common import Listed
from custody.schemas.permissions import PermissionName
from custody.schemas.service_accounts import ServiceAccountStatus as Status
from custody.server.domain.audit import Category
from custody.server.domain.credentials import (
    Caller,
    WorkspaceAccess,
    is_wider,
    new_secret,
    require_end,
    require_givable,
    token_hash,
)
from custody.server.domain.errors import NotFound, PermissionDenied, StateConflict
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.roles import in_words
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import Template, queue_mail
from custody.server.service.requests.rates import Throttle
from custody.server.service.shown import shown
from custody.server.store.models import Membership, ServiceAccount, User, Workspace

MAX_LIVE: Final = 50
# Per maker: every new secret sends them a mail.
SECRETS: Final = 20
SECRETS_WINDOW: Final = timedelta(hours=1)
MAX_SHOWN: Final = 200


class ServiceAccounts:
    def __init__(self, clock: Clock, random: RandomBytes, audit: AuditLog) -> None:
        self._clock = clock
        self._random = random
        self._audit = audit
        self._secrets = Throttle(clock, limit=SECRETS, window=SECRETS_WINDOW)

    def listed(self, db: Session, access: WorkspaceAccess) -> Listed[wire.ServiceAccount]:
        """The newest first."""
        query = select(ServiceAccount).where(ServiceAccount.workspace_id == access.workspace_id)
        found = db.scalars(query.order_by(ServiceAccount.id.desc()).limit(MAX_SHOWN)).all()
        return shown(
            found, lambda some: self._all_shown(db, some), "service_account_id", lambda account: account.id
        )

    def own(self, db: Session, caller: Caller) -> wire.ServiceAccount:
        """The calling program's. Raises NotFound for a person."""
        if caller.service is None:
            raise NotFound("You are signed in as a person: get-user-info shows your account.")
        return self._shown(db, db.get_one(ServiceAccount, caller.service.account_id))

    def create(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: wire.CreateServiceAccountRequest,
    ) -> wire.ServiceAccount:
        """Creates an account without a secret: the maker requests that, not the member who confirms. Raises
        Invalid, PermissionDenied, StateConflict.
        """
        now = self._clock()
        require_givable(frozenset(request.rights), access.permissions)
        require_end(request.expires_at, now)
        live = select(func.count()).where(
            ServiceAccount.workspace_id == access.workspace_id,
            ServiceAccount.revoked_at.is_(None),
            ServiceAccount.expires_at > now,
        )
        if (db.scalar(live) or 0) >= MAX_LIVE:
            raise StateConflict(f"The workspace has {MAX_LIVE} service accounts: revoke some of them.")
        account = ServiceAccount(
            workspace_id=access.workspace_id,
            made_by=caller.user_id,
            name=request.name,
            rights=sorted(set(request.rights)),
            networks=request.networks,
            created_at=now,
            expires_at=request.expires_at,
        )
        db.add(account)
        db.flush()
        self._record(db, caller, access, account, "SERVICE_ACCOUNT_CREATED", _terms(account))
        return self._shown(db, account)

    def update(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: wire.UpdateServiceAccountRequest,
    ) -> wire.ServiceAccount:
        """Only by its maker, whose rights it uses. An update without effect is not recorded. Raises as
        `create`, and NotFound.
        """
        account = self._own_of_maker(db, caller, access, request)
        before = (account.name, _terms(account))
        if request.rights is not None:
            require_givable(frozenset(request.rights), access.permissions)
            account.rights = sorted(set(request.rights))
        if request.expires_at is not None:
            require_end(request.expires_at, self._clock())
            account.expires_at = request.expires_at
        account.name = request.name or account.name
        account.networks = request.networks or account.networks
        db.flush()
        if before != (account.name, _terms(account)):
            self._record(db, caller, access, account, "SERVICE_ACCOUNT_CHANGED", _terms(account))
        return self._shown(db, account)

    def issue_secret(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.IssueServiceSecretRequest
    ) -> wire.ServiceSecret:
        """A new secret, only for the maker. The former one stays valid for ``overlap_hours``; older ones end
        now. Raises NotFound, PermissionDenied, StateConflict, RateLimited.
        """
        account, now = self._own_of_maker(db, caller, access, request), self._clock()
        self._secrets.take(str(caller.user_id))
        secret = new_secret(account.id, self._random)
        hours = request.overlap_hours if account.secret_hash is not None else 0
        overlap = hours > 0
        account.former_hash = account.secret_hash if overlap else None
        account.former_until = now + timedelta(hours=hours) if overlap else None
        account.secret_hash = token_hash(secret)
        db.flush()
        values = {"name": account.name, "workspace": db.get_one(Workspace, account.workspace_id).name}
        queue_mail(db, Template.SERVICE_SECRET, db.get_one(User, account.made_by).email, values, now=now)
        said = f"the one before is good for {hours} hours" if overlap else "no other one is good"
        self._record(db, caller, access, account, "SERVICE_SECRET_MADE", said)
        return wire.ServiceSecret(service_account=self._shown(db, account), secret=secret)

    def revoke(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.ServiceAccountRequest
    ) -> wire.ServiceAccount:
        """Takes effect at once and is final. Idempotent. Raises NotFound."""
        account = _find(db, access, request.service_account_id)
        if account.revoked_at is None:
            _end(account, self._clock())
            db.flush()
            self._record(db, caller, access, account, "SERVICE_ACCOUNT_REVOKED", f"of user {account.made_by}")
        return self._shown(db, account)

    def _own_of_maker(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.ServiceAccountRequest
    ) -> ServiceAccount:
        account = _find(db, access, request.service_account_id)
        if account.made_by != caller.user_id:
            raise PermissionDenied(
                "It acts in its maker's name, so only its maker may change it. You may revoke it."
            )
        if account.revoked_at is not None:
            raise StateConflict("It was revoked: make another one.")
        return account

    def _shown(self, db: Session, account: ServiceAccount) -> wire.ServiceAccount:
        return self._all_shown(db, [account])[0]

    def _all_shown(self, db: Session, accounts: Sequence[ServiceAccount]) -> list[wire.ServiceAccount]:
        """Accounts of one workspace; their makers are read with one statement."""
        if not accounts:
            return []
        place = db.get_one(Workspace, accounts[0].workspace_id)
        is_place = (Membership.user_id == User.id) & (Membership.workspace_id == place.id)
        makers = (
            select(User.id, User.email, Membership.id)
            .outerjoin(Membership, is_place)
            .where(User.id.in_({account.made_by for account in accounts}))
        )
        emails, members = {}, set()
        for user_id, email, membership_id in db.execute(makers):
            emails[user_id] = email
            if membership_id is not None:
                members.add(user_id)
        now = self._clock()
        return [
            wire.ServiceAccount(
                service_account_id=account.id,
                workspace_id=place.id,
                org_id=place.organisation_id,
                name=account.name,
                rights=[PermissionName(name) for name in account.rights],
                networks=account.networks,
                status=_status(account, now, is_member=account.made_by in members),
                expires_at=account.expires_at,
                made_by=str(account.made_by),
                made_by_name=emails[account.made_by],
                created_at=account.created_at,
                former_secret_until=_still(account.former_until, now),
                last_used_at=account.last_used_at,
                last_used_from=account.last_used_from,
                revoked_at=account.revoked_at,
            )
            for account in accounts
        ]

    def _record(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        account: ServiceAccount,
        action: str,
        said: str,
    ) -> None:
        what = f"service account {account.id} ({account.name}), {said}"
        self._audit.record(db, caller, Category.PEOPLE, action, what, access=access)


def end_service_accounts(db: Session, user_id: int, workspace_id: int, now: datetime) -> list[int]:
    """Revokes a former member's accounts, which a later membership would activate again. Returns their
    ids.
    """
    query = select(ServiceAccount).where(
        ServiceAccount.made_by == user_id,
        ServiceAccount.workspace_id == workspace_id,
        ServiceAccount.revoked_at.is_(None),
    )
    ended = list(db.scalars(query.order_by(ServiceAccount.id)))
    for account in ended:
        _end(account, now)
    return [account.id for account in ended]


def widens(db: Session, request: wire.UpdateServiceAccountRequest) -> bool:
    """Whether the program gets more rights, more networks, or a later end."""
    account = db.get(ServiceAccount, request.service_account_id)
    if account is None:
        return True
    more_rights = bool(set(request.rights or ()) - set(account.rights))
    longer = request.expires_at is not None and request.expires_at > account.expires_at
    return more_rights or longer or is_wider(account.networks, request.networks or ())


def _end(account: ServiceAccount, now: datetime) -> None:
    account.revoked_at = now
    account.secret_hash = account.former_hash = account.former_until = None


def _find(db: Session, access: WorkspaceAccess, account_id: int) -> ServiceAccount:
    account = db.get(ServiceAccount, account_id)
    if account is None or account.workspace_id != access.workspace_id:
        raise NotFound("There is no such service account in this workspace.")
    return account


def _status(account: ServiceAccount, now: datetime, *, is_member: bool) -> Status:
    if account.revoked_at is not None:
        return Status.REVOKED
    if account.expires_at <= now:
        return Status.EXPIRED
    if not is_member:
        return Status.IDLE
    return Status.WAITING if account.secret_hash is None else Status.ACTIVE


def _still(until: datetime | None, now: datetime) -> datetime | None:
    return None if until is None or until <= now else until


def _terms(account: ServiceAccount) -> str:
    rights = in_words(map(PermissionName, account.rights))
    until = account.expires_at.isoformat(timespec="minutes")
    return f"may {rights} from {', '.join(account.networks)} until {until}"
