"""Sessions: access tokens, families of refresh tokens, and who a token speaks for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, bindparam, delete, select, update
from sqlalchemy.orm import Session

from custody.schemas.auth import SessionRecord
from custody.schemas.common import Listed, NullString
from custody.server.domain.audit import Category
from custody.server.domain.credentials import (
    ACCESS_LIFETIME,
    BOUND_LIFETIME,
    REFRESH_LIFETIME,
    Caller,
    PresentedToken,
    Verdict,
    judge,
    new_token,
    session_id,
    token_hash,
)
from custody.server.domain.errors import NotFound, TokenExpired, Unauthenticated
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit.log import AuditLog
from custody.server.service.shown import shown
from custody.server.store import Store
from custody.server.store.models import AccessToken, RefreshToken, SignInSession, User

_ENDED = "The session has ended or never existed."
CONSOLE_ALONE: Final = (
    "An identity provider opened this session, for the console only: for the API, sign in with your own "
    "password, or use a service account."
)


@dataclass(frozen=True)
class Tokens:
    """What a sign-in or a refresh returns, once. ``expires_in``: seconds, of the access token."""

    sid: str
    access: str = field(repr=False)
    refresh: str = field(repr=False)
    expires_in: int


class Sessions:
    def __init__(self, store: Store, clock: Clock, random: RandomBytes, audit: AuditLog) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._audit = audit

    def open(
        self,
        db: Session,
        user: User,
        device: str | None,
        location: str | None,
        bound_to: int | None = None,
        *,
        is_proven: bool = False,
    ) -> Tokens:
        """A new session in the caller's transaction. ``bound_to``: the organisation whose provider signs
        in. ``is_proven``: the second factor was given, which counts as a proof (ADR 30).
        """
        now = self._clock()
        session = SignInSession(
            sid=new_token(self._random),
            user_id=user.id,
            device=device,
            location=location,
            used_generation=0,
            created_at=now,
            last_used_at=now,
            bound_to=bound_to,
            stepped_up_at=now if is_proven else None,
        )
        db.add(session)
        db.flush()
        user.last_login_at = now
        return self._issue(db, session, generation=1)

    def authenticate(self, token: str, trace_id: str) -> Caller:
        """The caller behind an access token. Raises Unauthenticated or TokenExpired."""
        with self._store.read() as db:
            return self.caller_of(db, token, trace_id)

    def caller_of(self, db: Session, token: str, trace_id: str) -> Caller:
        """`authenticate` in a transaction that is open."""
        found = db.execute(_ACCESS, {"token_hash": token_hash(token)}).one_or_none()
        if found is None:
            raise Unauthenticated(_ENDED)
        own_id, revoked_at, expires_at, user_id, email, bound_to = found
        if revoked_at is not None:
            raise Unauthenticated(_ENDED)
        if expires_at <= self._clock():
            raise TokenExpired("The access token has expired.")
        return Caller(user_id=user_id, session_id=own_id, name=email, trace_id=trace_id, bound_to=bound_to)

    def refresh(
        self,
        sid: str,
        token: str,
        trace_id: str,
        idle: timedelta = REFRESH_LIFETIME,
        *,
        at_console: bool = False,
    ) -> Tokens:
        """The next tokens of the family. Raises Unauthenticated, also where it was unused for longer than
        ``idle``, or where an identity provider opened it and it is not ``at_console``; the use of a copied
        token ends the family first (P40).
        """
        with self._store.write() as db:
            found = _refresh_token(db, sid, token)
            if found is None or not self._is_live(*found, idle):
                raise Unauthenticated(_ENDED)
            row, session = found
            if session.bound_to is not None and not at_console:
                raise Unauthenticated(CONSOLE_ALONE)
            verdict = judge(
                PresentedToken(row.generation, was_used=row.first_used_at is not None),
                session.used_generation,
            )
            if verdict is not Verdict.REUSE:
                return self._rotate(db, row, session, verdict)
            self._revoke(db, session, "refresh token reused")
            caller = _caller_of(db, session, trace_id)
            self._audit.record(
                db, caller, Category.SIGN_IN, "REFRESH_TOKEN_REUSED", f"session {session.id} revoked"
            )
        raise Unauthenticated("This refresh token was used before; the session was ended for safety.")

    def close(self, caller: Caller) -> None:
        with self._store.write() as db:
            self._revoke(db, db.get_one(SignInSession, caller.session_id), "signed out")
            self._audit.record(db, caller, Category.SIGN_IN, "SIGNED_OUT", f"session {caller.session_id}")

    def listed(self, db: Session, caller: Caller) -> Listed[SessionRecord]:
        """The caller's live sessions, the newest first."""
        sessions = sorted(self._live(db, caller.user_id), key=lambda each: each.id, reverse=True)

        def records(some: Sequence[SignInSession]) -> list[SessionRecord]:
            return [_record(each, current=each.id == caller.session_id) for each in some]

        return shown(sessions, records, "session_id", lambda each: session_id(each.sid))

    def end_one(self, db: Session, caller: Caller, name: str) -> int:
        """Ends one of the caller's own; its tokens stop working at once. Raises NotFound."""
        live = self._live(db, caller.user_id)
        session = next((each for each in live if session_id(each.sid) == name), None)
        if session is None:
            raise NotFound("You have no such session.")
        self._revoke(db, session, "ended by its owner")
        self._audit.record(db, caller, Category.SIGN_IN, "SESSION_ENDED", f"session {session.id}")
        return 1

    def end_others(self, db: Session, caller: Caller) -> int:
        """Ends all of the caller's own but this one. Returns how many ended."""
        now = self._clock()
        ended = end_sessions(db, caller.user_id, now, "ended by its owner", keep=caller.session_id)
        self._audit.record(db, caller, Category.SIGN_IN, "OTHER_SESSIONS_ENDED", f"{ended} sessions")
        return ended

    def _live(self, db: Session, user_id: int) -> list[SignInSession]:
        """Sessions that can still be renewed: a refresh token expires after thirty days without use."""
        query = select(SignInSession).where(
            SignInSession.user_id == user_id,
            SignInSession.revoked_at.is_(None),
            SignInSession.last_used_at > self._clock() - REFRESH_LIFETIME,
        )
        return list(db.scalars(query))

    def _is_live(self, row: RefreshToken, session: SignInSession, idle: timedelta) -> bool:
        now = self._clock()
        if session.bound_to is not None and session.created_at <= now - BOUND_LIFETIME:
            return False
        return session.revoked_at is None and row.expires_at > now and session.last_used_at > now - idle

    def _rotate(self, db: Session, row: RefreshToken, session: SignInSession, verdict: Verdict) -> Tokens:
        now = self._clock()
        if verdict is Verdict.FIRST_USE:
            session.used_generation = row.generation
            row.first_used_at = now
        session.last_used_at = now
        _forget_expired(db, session.id, now)
        return self._issue(db, session, generation=row.generation + 1)

    def _issue(self, db: Session, session: SignInSession, *, generation: int) -> Tokens:
        now = self._clock()
        tokens = Tokens(
            session.sid,
            new_token(self._random),
            new_token(self._random),
            int(ACCESS_LIFETIME.total_seconds()),
        )
        db.add(
            AccessToken(
                token_hash=token_hash(tokens.access), session_id=session.id, expires_at=now + ACCESS_LIFETIME
            )
        )
        db.add(
            RefreshToken(
                token_hash=token_hash(tokens.refresh),
                session_id=session.id,
                generation=generation,
                expires_at=now + REFRESH_LIFETIME,
            )
        )
        return tokens

    def _revoke(self, db: Session, session: SignInSession, reason: str) -> None:
        session.revoked_at = self._clock()
        session.revoked_reason = reason
        db.execute(delete(AccessToken).where(AccessToken.session_id == session.id))


def require_session(db: Session, caller: Caller) -> None:
    """Raises Unauthenticated where the caller's session was ended after the request was let in. A program has
    none: `People.enter` checks its account.
    """
    if caller.service is None and db.scalar(_LIVE, {"session_id": caller.session_id}) is None:
        raise Unauthenticated("The session has ended meanwhile.")


_LIVE = select(SignInSession.id).where(
    SignInSession.id == bindparam("session_id"), SignInSession.revoked_at.is_(None)
)


def end_sessions(db: Session, user_id: int, now: datetime, reason: str, *, keep: int | None) -> int:
    """Ends an account's sessions, all but ``keep``; their tokens stop working at once. Returns how many
    ended.
    """
    return _end(db, now, reason, SignInSession.user_id == user_id, SignInSession.id != (keep or 0))


def end_bound_sessions(db: Session, organisation_id: int, now: datetime, user_id: int | None = None) -> int:
    """Ends the sessions that the organisation's identity provider opened: of one member, or of all."""
    whose = () if user_id is None else (SignInSession.user_id == user_id,)
    return _end(db, now, "identity provider", SignInSession.bound_to == organisation_id, *whose)


def _end(db: Session, now: datetime, reason: str, *of: ColumnElement[bool]) -> int:
    ended = db.scalars(select(SignInSession.id).where(SignInSession.revoked_at.is_(None), *of)).all()
    revoked = update(SignInSession).where(SignInSession.id.in_(ended))
    db.execute(revoked.values(revoked_at=now, revoked_reason=reason))
    db.execute(delete(AccessToken).where(AccessToken.session_id.in_(ended)))
    return len(ended)


_ACCESS = (
    select(
        SignInSession.id,
        SignInSession.revoked_at,
        AccessToken.expires_at,
        User.id,
        User.email,
        SignInSession.bound_to,
    )
    .join(SignInSession, AccessToken.session_id == SignInSession.id)
    .join(User, SignInSession.user_id == User.id)
    .where(AccessToken.token_hash == bindparam("token_hash"))
)


def _refresh_token(db: Session, sid: str, token: str) -> tuple[RefreshToken, SignInSession] | None:
    query = (
        select(RefreshToken, SignInSession)
        .join(SignInSession, RefreshToken.session_id == SignInSession.id)
        .where(RefreshToken.token_hash == token_hash(token), SignInSession.sid == sid)
    )
    row = db.execute(query).one_or_none()
    return None if row is None else (row[0], row[1])


def _caller_of(db: Session, session: SignInSession, trace_id: str) -> Caller:
    user = db.get_one(User, session.user_id)
    return Caller(user.id, session.id, user.email, trace_id, bound_to=session.bound_to)


def _record(session: SignInSession, *, current: bool) -> SessionRecord:
    return SessionRecord(
        session_id=session_id(session.sid),
        device=NullString.of(session.device),
        location=NullString.of(session.location),
        created_at=session.created_at,
        last_used_at=session.last_used_at,
        current=current,
    )


def _forget_expired(db: Session, session_id: int, now: datetime) -> None:
    """Deletes expired tokens, which are refused anyway. Live ones stay, so that a replay is recognised."""
    for table in (AccessToken, RefreshToken):
        db.execute(delete(table).where(table.session_id == session_id, table.expires_at <= now))
