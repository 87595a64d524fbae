"""Sessions: signing in opens one, with the password, then the second factor of the account, a mailed code or
an authenticator's; access tokens and families of refresh tokens; and their owner, who lists and ends them.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, select

from custody.schemas import auth as wire
from custody.schemas.common import Done, Listed
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.errors import NotFound, SignInOver, Unauthenticated
from custody.server.people.people import user_record
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import (
    ACCESS_LIFETIME,
    BOUND_LIFETIME,
    REFRESH_LIFETIME,
    new_token,
    session_id,
    token_hash,
)
from custody.server.shown import shape_of, shown
from custody.server.sign_in import challenges
from custody.server.sign_in.access_tokens import CONSOLE_ALONE, HAS_ENDED, end_sessions
from custody.server.sign_in.accounts import about, count_guess, find_credential, forget_guesses
from custody.server.sign_in.passkeys import Assertion
from custody.server.store.models import (
    AccessTokenRow,
    CredentialRow,
    RefreshTokenRow,
    SignInSessionRow,
    UserRow,
)

SIGNED_IN = Event("SIGNED_IN", "// {proof}", Category.SIGN_IN)
REFUSED = Event("SIGN_IN_REFUSED", "", Category.SIGN_IN)
OTP_REFUSED = Event("OTP_REFUSED", "", Category.SIGN_IN)
REUSED = Event("REFRESH_TOKEN_REUSED", "// session {session} revoked", Category.SIGN_IN)
SIGNED_OUT = Event("SIGNED_OUT", "// session {session}", Category.SIGN_IN)
ENDED = Event("SESSION_ENDED", "// session {session}", Category.SIGN_IN)
OTHERS_ENDED = Event("OTHER_SESSIONS_ENDED", "// {ended} sessions", Category.SIGN_IN)


def open_session(
    ctx: Ctx,
    user: UserRow,
    device: str | None,
    location: str | None,
    bound_to: int | None = None,
    *,
    is_proven: bool = False,
) -> wire.RefreshResponse:
    """``bound_to``: the organisation whose provider signs in. ``is_proven``: the second factor was given,
    which counts as a proof (ADR 30).
    """
    now = ctx.now
    session = SignInSessionRow(
        sid=new_token(ctx.tools.random),
        user_id=user.id,
        device=device,
        location=location,
        used_generation=0,
        created_at=now,
        last_used_at=now,
        bound_to=bound_to,
        stepped_up_at=now if is_proven else None,
    )
    ctx.add(session)
    user.last_login_at = now
    return _issue(ctx, session, generation=1)


@serves_in_parts(wire.REFRESH, first=In.NOTHING)
def refresh(ctx: Ctx, request: wire.RefreshRequest) -> Steps[wire.RefreshResponse]:
    if not ctx.cookie:
        raise Unauthenticated("The request carries no refresh cookie.")
    return (yield from renew_session(request.sid, ctx.cookie))


def renew_session(
    sid: str, token: str, idle: timedelta = REFRESH_LIFETIME, *, at_console: bool = False
) -> Steps[wire.RefreshResponse]:
    """The next tokens of the family. Raises Unauthenticated, also where it was unused for longer than
    ``idle``, or where an identity provider opened it and it is not ``at_console``; the use of a copied token
    ends the family first (P40).
    """
    ctx = yield In.WRITE
    query = (
        select(RefreshTokenRow, SignInSessionRow)
        .join(SignInSessionRow, RefreshTokenRow.session_id == SignInSessionRow.id)
        .where(RefreshTokenRow.token_hash == token_hash(token), SignInSessionRow.sid == sid)
    )
    stored = ctx.db.execute(query).one_or_none()
    if stored is None or not _is_live(stored[0], stored[1], ctx.now, idle):
        raise Unauthenticated(HAS_ENDED)
    row, session = stored
    if session.bound_to is not None and not at_console:
        raise Unauthenticated(CONSOLE_ALONE)
    # The newest generation, or one whose successor was never used: its answer was probably lost.
    is_next = row.generation == session.used_generation + 1
    if is_next or (row.generation == session.used_generation and row.first_used_at is not None):
        if is_next:
            session.used_generation, row.first_used_at = row.generation, ctx.now
        session.last_used_at = ctx.now
        # Expired tokens are refused anyway. Live ones stay, so that a replay is recognised.
        for table in (AccessTokenRow, RefreshTokenRow):
            ctx.db.execute(delete(table).where(table.session_id == session.id, table.expires_at <= ctx.now))
        return _issue(ctx, session, generation=row.generation + 1)
    _revoke(ctx, session, "refresh token reused")
    about(ctx, ctx.db.get_one(UserRow, session.user_id)).event(REUSED, session=session.id)
    yield In.NOTHING
    raise Unauthenticated("This refresh token was used before; the session was ended for safety.")


@serves(wire.LOGOUT)
def logout(ctx: Ctx, _: None) -> Done:
    _revoke(ctx, ctx.db.get_one(SignInSessionRow, ctx.caller.session_id), "signed out")
    ctx.event(SIGNED_OUT, session=ctx.caller.session_id)
    return Done()


@serves(wire.SESSIONS)
def sessions(ctx: Ctx, _: None) -> Listed[wire.SessionRecord]:
    live = sorted(_live(ctx), key=lambda each: each.id, reverse=True)

    def records(some: Sequence[SignInSessionRow]) -> list[wire.SessionRecord]:
        return [
            shape_of(
                wire.SessionRecord,
                each,
                session_id=session_id(each.sid),
                current=each.id == ctx.caller.session_id,
            )
            for each in some
        ]

    return shown(live, records, "session_id", lambda each: session_id(each.sid))


@serves(wire.REVOKE_SESSIONS)
def revoke_sessions(ctx: Ctx, request: wire.RevokeSessionsRequest) -> wire.RevokeSessionsResponse:
    """Raises NotFound."""
    caller = ctx.caller
    if request.session_id is None:
        ended = end_sessions(ctx.db, caller.user_id, ctx.now, "ended by its owner", keep=caller.session_id)
        ctx.event(OTHERS_ENDED, ended=ended)
        return wire.RevokeSessionsResponse(ended=ended)
    session = next((each for each in _live(ctx) if session_id(each.sid) == request.session_id), None)
    if session is None:
        raise NotFound("You have no such session.")
    _revoke(ctx, session, "ended by its owner")
    ctx.event(ENDED, session=session.id)
    return wire.RevokeSessionsResponse(ended=1)


def _live(ctx: Ctx) -> list[SignInSessionRow]:
    """The caller's sessions that can still be renewed: a refresh token expires after thirty days without
    use.
    """
    query = select(SignInSessionRow).where(
        SignInSessionRow.user_id == ctx.caller.user_id,
        SignInSessionRow.revoked_at.is_(None),
        SignInSessionRow.last_used_at > ctx.now - REFRESH_LIFETIME,
    )
    return list(ctx.db.scalars(query))


def _is_live(row: RefreshTokenRow, session: SignInSessionRow, now: datetime, idle: timedelta) -> bool:
    if session.bound_to is not None and session.created_at <= now - BOUND_LIFETIME:
        return False
    return session.revoked_at is None and row.expires_at > now and session.last_used_at > now - idle


def _issue(ctx: Ctx, session: SignInSessionRow, *, generation: int) -> wire.RefreshResponse:
    now, random = ctx.now, ctx.tools.random
    tokens = wire.RefreshResponse(
        token=new_token(random),
        sid=session.sid,
        expires_in=int(ACCESS_LIFETIME.total_seconds()),
        refresh_token=new_token(random),
    )
    ctx.db.add(
        AccessTokenRow(
            token_hash=token_hash(tokens.token), session_id=session.id, expires_at=now + ACCESS_LIFETIME
        )
    )
    ctx.db.add(
        RefreshTokenRow(
            token_hash=token_hash(tokens.refresh_token),
            session_id=session.id,
            generation=generation,
            expires_at=now + REFRESH_LIFETIME,
        )
    )
    return tokens


def _revoke(ctx: Ctx, session: SignInSessionRow, reason: str) -> None:
    session.revoked_at = ctx.now
    session.revoked_reason = reason
    ctx.db.execute(delete(AccessTokenRow).where(AccessTokenRow.session_id == session.id))


@serves_in_parts(wire.LOGIN, first=In.WRITE)
def login(ctx: Ctx, request: wire.LoginRequest) -> Steps[wire.LoginResponse]:
    """Raises Unauthenticated, with one text for a wrong password and an unknown account; RateLimited;
    MailUnavailable, MailRefused.
    """
    is_guessed_at = count_guess(ctx, request.email)
    known = find_credential(ctx.db, request.email)
    stored = known[1].password_hash if known else None
    ctx = yield In.NOTHING
    passwords, password = ctx.tools.passwords, request.password.get_secret_value()
    if not passwords.matches(stored, password) or known is None or stored is None:
        # Recorded for an unknown account too, so that both take the same time, and without the text that was
        # typed: it may be a password.
        ctx = yield In.WRITE
        about(ctx, known[0] if known else None).event(REFUSED)
        yield In.NOTHING
        raise _refused()
    current = passwords.hash(password) if passwords.is_outdated(stored) else stored
    ctx = yield In.WRITE
    user, credential = ctx.db.get_one(UserRow, known[0].id), ctx.db.get_one(CredentialRow, known[0].id)
    # Hashing takes time: a password that was changed during it is a wrong one.
    if credential.password_hash != stored:
        raise _refused()
    credential.password_hash = current
    forget_guesses(ctx, request.email, anywhere=not is_guessed_at)
    device, location = request.device, request.location
    if credential.second_factor == "none" and not is_guessed_at:
        return (yield from _signed_in(ctx, user, "with the password alone", device, location))
    awaited = yield from challenges.ask_for_code(ctx, user.id, device, location)
    return wire.LoginResponse(
        requires_2fa=True, token="", token_2fa=awaited.token_2fa, sid="", two_factor_method=awaited.method
    )


@serves_in_parts(wire.OTP_VALIDATE, first=In.NOTHING)
def otp_validate(_ctx: Ctx, request: wire.OtpValidateRequest) -> Steps[wire.LoginResponse]:
    return finish_sign_in(request.token_2fa, request.otp)


def finish_sign_in(token_2fa: str, given: str | Assertion) -> Steps[wire.LoginResponse]:
    """Finishes a sign-in. ``given``: a code, or a passkey's answer. Each try counts (P38).

    Raises OtpInvalid, with one text for a wrong code, one of another sign-in and an unknown token;
    SignInOver from the try on that ends the sign-in; RateLimited.
    """
    ctx = yield In.WRITE
    challenge = challenges.find_challenge(ctx, token_2fa)
    if challenge is not None:
        user = ctx.db.get_one(UserRow, challenge.user_id)
        proof = challenges.judge_code(ctx, challenge, token_2fa, given)
        if proof is not None:
            device, location = challenge.device, challenge.location
            return (yield from _signed_in(ctx, user, proof, device, location, is_proven=True))
        about(ctx, user).event(OTP_REFUSED)
    refused = challenges.refusal_of(ctx, token_2fa)
    yield In.NOTHING
    raise refused


def another_code(token_2fa: str) -> Steps[challenges.CodeAwaited]:
    """Another code for a sign-in whose password was right; the one before stays valid for its time. Raises
    SignInOver where no such sign-in waits, RateLimited, MailUnavailable, MailRefused.
    """
    ctx = yield In.WRITE
    waiting = challenges.find_challenge(ctx, token_2fa)
    if waiting is None:
        raise SignInOver("This sign-in is over: no other code is mailed for it.")
    return (yield from challenges.ask_for_code(ctx, waiting.user_id, waiting.device, waiting.location))


def _signed_in(
    ctx: Ctx, user: UserRow, proof: str, device: str | None, location: str | None, *, is_proven: bool = False
) -> Steps[wire.LoginResponse]:
    tokens = open_session(ctx, user, device, location, is_proven=is_proven)
    about(ctx, user).event(SIGNED_IN, proof=proof)
    user_id = user.id
    ctx = yield In.SNAPSHOT
    others = {"requires_2fa": False, "token_2fa": "", "user_info": user_record(ctx.db, user_id)}
    return shape_of(wire.LoginResponse, tokens, **others)


def _refused() -> Unauthenticated:
    return Unauthenticated("The e-mail address or the password is wrong.")
