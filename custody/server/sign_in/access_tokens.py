"""Whom a token speaks for: the access token of a session, or the secret of a program, whose rights are those
of its maker as far as the account has them; and the end of sessions.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, bindparam, delete, select, update
from sqlalchemy.orm import Session

from custody.schemas.call import PermissionName
from custody.server.audit.log import AuditLog
from custody.server.errors import (
    NoRoleOpens,
    RateLimited,
    TokenExpired,
    Unauthenticated,
)
from custody.server.requests.rates import Throttle, caller_at
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import (
    NEVER_GIVEN,
    Caller,
    ServiceCaller,
    WorkspaceAccess,
    account_of,
    is_inside,
    matches,
    plain_address,
    token_hash,
)
from custody.server.rules.ports import Clock
from custody.server.store import Store
from custody.server.store.models import AccessTokenRow, ServiceAccountRow, SignInSessionRow, UserRow
from custody.server.store.store import keep
from custody.server.vaults.stored import place_of

# From one source. Guessing 256 bits is hopeless: this only bounds what a broken program costs.
WRONG_SECRETS: Final = 60
WRONG_SECRETS_WINDOW: Final = timedelta(minutes=1)
# How often a right secret from a wrong network is recorded: enough for its owner to see it.
STRANGE_USES: Final = 10
STRANGE_USES_WINDOW: Final = timedelta(hours=1)
# "Last used" is as old as this at most, so that reading calls seldom write.
NOTED_EVERY: Final = timedelta(minutes=1)
_NEWEST: Final = "Give the program the account's newest secret; its maker can make another."
STRANGE = Event(
    "SERVICE_ACCOUNT_REFUSED",
    "The secret of a program was used from {address}, and was refused // account {account}",
    Category.ACCESS,
)
HAS_ENDED: Final = "The session has ended or never existed."
ENDED_MEANWHILE: Final = "The session has ended meanwhile."
CONSOLE_ALONE: Final = (
    "An identity provider opened this session, for the console only: for the API, sign in with your own "
    "password, or use a service account."
)


def caller_of(db: Session, token: str, now: datetime, address: str, trace_id: str) -> Caller:
    """The caller behind an access token. Raises Unauthenticated or TokenExpired."""
    row = db.execute(_ACCESS, {"token_hash": token_hash(token)}).one_or_none()
    if row is None:
        raise Unauthenticated(HAS_ENDED)
    own_id, revoked_at, expires_at, user, bound_to = row
    # A page shows the user, and need not read them a second time.
    keep(db, ("user", user.id), user)
    if revoked_at is not None:
        raise Unauthenticated(HAS_ENDED)
    if expires_at <= now:
        raise TokenExpired("The access token has expired.")
    return Caller(user.id, own_id, user.email, trace_id, bound_to=bound_to, address=address)


def require_session(db: Session, caller: Caller) -> None:
    """Raises Unauthenticated where the caller's session was ended after the request was let in. A program has
    none: `People.enter` checks its account.
    """
    if caller.service is None and db.scalar(LIVE_SESSION, {"session_id": caller.session_id}) is None:
        raise Unauthenticated(ENDED_MEANWHILE)


LIVE_SESSION = select(SignInSessionRow.id).where(
    SignInSessionRow.id == bindparam("session_id"), SignInSessionRow.revoked_at.is_(None)
)


def end_sessions(db: Session, user_id: int, now: datetime, reason: str, *, keep: int | None) -> int:
    """Ends an account's sessions, all but ``keep``; their tokens stop working at once. Returns how many
    ended.
    """
    return _end(db, now, reason, SignInSessionRow.user_id == user_id, SignInSessionRow.id != (keep or 0))


def end_bound_sessions(db: Session, organisation_id: int, now: datetime, user_id: int | None = None) -> int:
    """Ends the sessions that the organisation's identity provider opened: of one member, or of all."""
    whose = () if user_id is None else (SignInSessionRow.user_id == user_id,)
    return _end(db, now, "identity provider", SignInSessionRow.bound_to == organisation_id, *whose)


def _end(db: Session, now: datetime, reason: str, *of: ColumnElement[bool]) -> int:
    ended = db.scalars(select(SignInSessionRow.id).where(SignInSessionRow.revoked_at.is_(None), *of)).all()
    revoked = update(SignInSessionRow).where(SignInSessionRow.id.in_(ended))
    db.execute(revoked.values(revoked_at=now, revoked_reason=reason))
    db.execute(delete(AccessTokenRow).where(AccessTokenRow.session_id.in_(ended)))
    return len(ended)


_ACCESS = (
    select(
        SignInSessionRow.id,
        SignInSessionRow.revoked_at,
        AccessTokenRow.expires_at,
        UserRow,
        SignInSessionRow.bound_to,
    )
    .join(SignInSessionRow, AccessTokenRow.session_id == SignInSessionRow.id)
    .join(UserRow, SignInSessionRow.user_id == UserRow.id)
    .where(AccessTokenRow.token_hash == bindparam("token_hash"))
)


class ServiceSignIn:
    def __init__(self, store: Store, clock: Clock, audit: AuditLog) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._wrong = Throttle(clock, limit=WRONG_SECRETS, window=WRONG_SECRETS_WINDOW)
        self._strange = Throttle(clock, limit=STRANGE_USES, window=STRANGE_USES_WINDOW)

    def authenticate(self, secret: str, source: str, trace_id: str) -> Caller:
        """The program behind a secret. ``source``: the address that the call comes from.

        Raises Unauthenticated, RateLimited (too many wrong ones from there), TokenExpired (the account's
        end), PermissionDenied (not from one of its networks).
        """
        address, now, account_id = plain_address(source), self._clock(), account_of(secret)
        with self._store.read() as db:
            account = None if account_id is None else db.get(ServiceAccountRow, account_id)
            used = None if account is None else matches(secret, _live_hashes(account, now))
            if account is None or used is None:
                self._wrong.take(caller_at(address))
                raise Unauthenticated(
                    "No service account has this secret, or it is no longer valid.", hint=_NEWEST
                )
            maker = db.get_one(UserRow, account.made_by).email
        # The maker's name comes first: what a program is called is its maker's choice.
        name = f"{maker}, service account {account.id} ({account.name})"
        service = ServiceCaller(account.id, account.workspace_id, used)
        caller = Caller(account.made_by, 0, name, trace_id, service, address=address)
        if not is_inside(address, account.networks):
            self._record_strange(caller, account, address)
        _require_good(account, address, now)
        if account.last_used_at is None or now - account.last_used_at >= NOTED_EVERY:
            with self._store.write() as db:
                noted = update(ServiceAccountRow).where(ServiceAccountRow.id == account.id)
                db.execute(noted.values(last_used_at=now, last_used_from=address))
        return caller

    def _record_strange(self, caller: Caller, account: ServiceAccountRow, address: str) -> None:
        try:
            self._strange.take(str(account.id))
        except RateLimited:
            return
        with self._store.write() as db:
            place = place_of(db, account.workspace_id)
            self._audit.record(db, caller, STRANGE, place, account=account.id, address=address)


def narrowed(
    db: Session, service: ServiceCaller, address: str, access: WorkspaceAccess, now: datetime
) -> WorkspaceAccess:
    """The program's rights, as far as its maker's role has them now.

    As of this transaction, which may have waited. Raises Unauthenticated where the account was revoked or its
    secret replaced after the request was let in, TokenExpired where it ended, PermissionDenied where it may
    no longer be used from there.
    """
    query = select(ServiceAccountRow).where(ServiceAccountRow.id == service.account_id)
    account = db.scalars(query.execution_options(populate_existing=True)).one()
    if service.secret_hash not in _live_hashes(account, now):
        raise Unauthenticated("The service account's secret is no longer valid.", hint=_NEWEST)
    _require_good(account, address, now)
    rights = frozenset(map(PermissionName, account.rights)) - NEVER_GIVEN
    return replace(access, permissions=access.permissions & rights)


def _live_hashes(account: ServiceAccountRow, now: datetime) -> tuple[bytes | None, bytes | None]:
    is_over = account.former_until is None or account.former_until <= now
    return account.secret_hash, None if is_over else account.former_hash


def _require_good(account: ServiceAccountRow, address: str, now: datetime) -> None:
    """Raises PermissionDenied, TokenExpired."""
    if not is_inside(address, account.networks):
        raise NoRoleOpens(f"This service account may not be used from {address}.")
    if account.expires_at <= now:
        raise TokenExpired(
            "The service account has expired.", hint="Its maker changes the account's end, within a year."
        )
