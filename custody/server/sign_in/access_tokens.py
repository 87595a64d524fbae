"""Whom an access token speaks for, and the end of sessions."""

from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, bindparam, delete, select, update
from sqlalchemy.orm import Session

from custody.server.errors import TokenExpired, Unauthenticated
from custody.server.rules.credentials import Caller, token_hash
from custody.server.store.models import AccessTokenRow, SignInSessionRow, UserRow
from custody.server.store.store import keep

HAS_ENDED: Final = "The session has ended or never existed."
ENDED_MEANWHILE: Final = "The session has ended meanwhile."
CONSOLE_ALONE: Final = (
    "An identity provider opened this session, for the console only: for the API, sign in with your own "
    "password, or use a service account."
)


def caller_of(db: Session, token: str, now: datetime, address: str, trace_id: str) -> Caller:
    """The caller behind an access token. Raises Unauthenticated or TokenExpired."""
    found = db.execute(_ACCESS, {"token_hash": token_hash(token)}).one_or_none()
    if found is None:
        raise Unauthenticated(HAS_ENDED)
    own_id, revoked_at, expires_at, user, bound_to = found
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
