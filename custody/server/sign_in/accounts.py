"""Accounts and their passwords: finding and creating them, registering, which makes one without an
organisation; limits on guesses, the check before a sensitive change, a change by the owner, and a reset by
mail; and events about an account whose owner is not signed in.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from custody.schemas import auth as wire
from custody.schemas.common import Done
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.errors import Invalid, RateLimited, Unauthenticated
from custody.server.mail.jobs import Template, queue_mail
from custody.server.people.staff import waiting_for_answer
from custody.server.requests.rates import AttemptLimit, caller_at
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import (
    check_new_password,
    new_token,
    token_hash,
)
from custody.server.rules.ports import Clock, RandomBytes
from custody.server.sign_in.access_tokens import end_sessions
from custody.server.store import Store
from custody.server.store.models import (
    CredentialRow,
    InvitationRow,
    OtpChallengeRow,
    PasswordResetRow,
    UserRow,
)

CHANGED = Event("PASSWORD_CHANGED", "// {ended} other sessions ended", Category.SIGN_IN)
RESET_REQUESTED = Event("PASSWORD_RESET_REQUESTED", "", Category.SIGN_IN)
RESET = Event("PASSWORD_RESET", "// {ended} sessions ended", Category.SIGN_IN)
# Wrong passwords at sign-in. They are counted for each account and client address, so that a stranger cannot
# lock the owner out; beyond a hundred from anywhere (NIST SP 800-63B, 5.2.2) the account asks for a second
# factor, whether it has one or not.
LOGIN_FAILURES = 10
LOGIN_FAILURES_ANYWHERE = 100
LOGIN_FAILURES_WINDOW = timedelta(minutes=15)
GUESSES_HERE = AttemptLimit("sign-in", LOGIN_FAILURES, LOGIN_FAILURES_WINDOW)
GUESSES_ANYWHERE = AttemptLimit("sign-in-anywhere", LOGIN_FAILURES_ANYWHERE, LOGIN_FAILURES_WINDOW)
# Wrong passwords in a session have a limit of their own, which a stranger cannot use up. So have those in
# sessions that an organisation's identity provider opened.
_FAILURES = AttemptLimit("password", LOGIN_FAILURES, LOGIN_FAILURES_WINDOW)
# A mailed link to a new password: once, for an hour (OWASP, Forgot Password Cheat Sheet), five of them.
RESET_LIFETIME = timedelta(hours=1)
_RESETS = AttemptLimit("password-reset", 5, timedelta(hours=1))
_NEW = "new_password"
# Each one sends a mail, perhaps to a person who did not ask for it.
_TRIES = AttemptLimit("registration", 5, timedelta(hours=1))
# By the mail that the owner gets.
_EVENTS = {
    Template.WELCOME: Event("ACCOUNT_REGISTERED", "", Category.SIGN_IN),
    Template.ALREADY_REGISTERED: Event("REGISTRATION_REPEATED", "", Category.SIGN_IN),
    Template.NOT_INVITED: Event("REGISTRATION_REFUSED", "", Category.SIGN_IN),
}


@serves_in_parts(wire.REGISTER, first=In.NOTHING)
def register(_ctx: Ctx, request: wire.RegisterRequest) -> Steps[Done]:
    return register_account(request)


def register_account(request: wire.RegisterRequest, *, is_signing_in: bool = False) -> Steps[Done]:
    """Creates an account without an organisation. The answer does not tell whether one existed already, or
    whether the address is invited where it has to be: its owner learns that by mail (P39).
    ``is_signing_in``: the mail with the code of their first sign-in is the only one that the owner gets.

    Raises Invalid, and RateLimited, because every call sends a mail to the address.
    """
    password = request.password.get_secret_value()
    check_new_password(password, request.email)
    ctx = yield In.WRITE
    _TRIES.take(ctx.db, request.email, ctx.now)
    ctx = yield In.NOTHING
    hashed = ctx.tools.passwords.hash(password)
    ctx = yield In.WRITE
    user = find_user(ctx.db, request.email)
    outcome = Template.ALREADY_REGISTERED
    if user is None:
        may_register = ctx.tools.may_anybody_register or _is_invited(ctx.db, request.email, ctx.now)
        outcome = Template.WELCOME if may_register else Template.NOT_INVITED
    if outcome is Template.WELCOME:
        user = add_account(
            ctx.db,
            ctx.now,
            request.email,
            hashed,
            first_name=request.first_name,
            surname=request.surname,
        )
    if not (is_signing_in and outcome is Template.WELCOME):
        queue_mail(ctx.db, outcome, request.email, {}, now=ctx.now)
    # Recorded for each outcome: a commit that writes takes longer than one that does not.
    about(ctx, user).event(_EVENTS[outcome])
    return Done()


def _is_invited(db: Session, email: str, now: datetime) -> bool:
    """``email`` in lower case, as invitations have it."""
    invited = waiting_for_answer(InvitationRow.invited_email == email, now)
    return db.scalars(select(InvitationRow.id).where(*invited).limit(1)).first() is not None


def about(ctx: Ctx, user: UserRow | None) -> Ctx:
    """For an event about an account whose owner is not signed in; None where no such account exists, which is
    recorded, too (P39).
    """
    if user is None:
        return ctx
    return replace(ctx, caller=replace(ctx.caller, user_id=user.id, name=user.email))


def find_user(db: Session, email: str) -> UserRow | None:
    """``email`` in lower case."""
    return db.scalars(select(UserRow).where(UserRow.email == email)).one_or_none()


def find_credential(db: Session, email: str) -> tuple[UserRow, CredentialRow] | None:
    query = (
        select(UserRow, CredentialRow)
        .join(CredentialRow, CredentialRow.user_id == UserRow.id)
        .where(UserRow.email == email)
    )
    row = db.execute(query).one_or_none()
    return None if row is None else (row[0], row[1])


def add_account(
    db: Session,
    now: datetime,
    email: str,
    password_hash: str,
    *,
    first_name: str | None = None,
    surname: str | None = None,
    two_factor: bool = True,
) -> UserRow:
    """An account with its password. Mailed codes are on by default."""
    user = UserRow(email=email, first_name=first_name, surname=surname, created_at=now)
    db.add(user)
    db.flush()
    factor = "email" if two_factor else "none"
    db.add(CredentialRow(user_id=user.id, password_hash=password_hash, second_factor=factor, updated_at=now))
    return user


def count_guess(ctx: Ctx, email: str) -> bool:
    """Counts a try before its outcome is known. Returns whether the account is being guessed at. Raises
    RateLimited.
    """
    GUESSES_HERE.take(ctx.db, _from_here(ctx, email), ctx.now)
    try:
        GUESSES_ANYWHERE.take(ctx.db, email, ctx.now)
    except RateLimited:
        return True
    return False


def forget_guesses(ctx: Ctx, email: str, *, anywhere: bool) -> None:
    """Called after a right password. ``anywhere``: also the count of all addresses."""
    GUESSES_HERE.forget(ctx.db, _from_here(ctx, email))
    if anywhere:
        GUESSES_ANYWHERE.forget(ctx.db, email)


def _from_here(ctx: Ctx, email: str) -> str:
    # No address of a mailbox or of a machine has a space.
    return f"{caller_at(ctx.caller.address)} {email}"


def require_password(password: str) -> Steps[str]:
    """The hash of the caller's password, for `require_still` in the transaction of the change.

    Raises Invalid, RateLimited.
    """
    ctx = yield In.WRITE
    caller = ctx.caller
    subject = caller.name if caller.bound_to is None else f"{caller.bound_to} {caller.name}"
    _FAILURES.take(ctx.db, subject, ctx.now)
    stored = ctx.db.get_one(CredentialRow, caller.user_id).password_hash
    ctx = yield In.NOTHING
    if not ctx.tools.passwords.matches(stored, password):
        sentence = "The password is wrong."
        raise Invalid.at("/password", sentence)
    ctx = yield In.WRITE
    _FAILURES.forget(ctx.db, subject)
    return stored


def require_still(ctx: Ctx, password_hash: str) -> None:
    """Hashing takes time: an owner who changes the password during it must win, as one who ends the session
    does (`custody.server.calls`). Raises Unauthenticated.
    """
    if ctx.db.get_one(CredentialRow, ctx.caller.user_id).password_hash != password_hash:
        raise Unauthenticated("The password was changed meanwhile.")


@serves_in_parts(wire.CHANGE_PASSWORD, first=In.NOTHING)
def change_password(ctx: Ctx, request: wire.ChangePasswordRequest) -> Steps[Done]:
    """Raises Invalid, RateLimited, Unauthenticated."""
    new = request.new_password.get_secret_value()
    check_new_password(new, ctx.caller.name, _NEW)
    known = yield from require_password(request.password.get_secret_value())
    ctx = yield In.NOTHING
    hashed = ctx.tools.passwords.hash(new)
    ctx = yield In.WRITE
    require_still(ctx, known)
    user = ctx.db.get_one(UserRow, ctx.caller.user_id)
    ctx.event(CHANGED, ended=_set(ctx, user, hashed, keep_session=ctx.caller.session_id))
    return Done()


@serves(wire.REQUEST_PASSWORD_RESET)
def request_password_reset(ctx: Ctx, request: wire.PasswordResetRequest) -> Done:
    """Does the same work for an account that does not exist: a worker looks it up later, out of the caller's
    sight (P39). Raises RateLimited.
    """
    _RESETS.take(ctx.db, request.email, ctx.now)
    queue_mail(ctx.db, Template.PASSWORD_RESET, request.email, {}, now=ctx.now)
    about(ctx, find_user(ctx.db, request.email)).event(RESET_REQUESTED)
    return Done()


@serves_in_parts(wire.RESET_PASSWORD)
def reset_password(ctx: Ctx, request: wire.ResetPasswordRequest) -> Steps[Done]:
    """The caller may sign in at once from this address. Raises Invalid."""
    new = request.new_password.get_secret_value()
    email = _owner(ctx.db, request.token, ctx.now).email
    ctx = yield In.NOTHING
    check_new_password(new, email, _NEW)
    hashed = ctx.tools.passwords.hash(new)
    ctx = yield In.WRITE
    user = _owner(ctx.db, request.token, ctx.now)
    ended = _set(ctx, user, hashed, keep_session=None)
    forget_guesses(ctx, user.email, anywhere=False)
    about(ctx, user).event(RESET, ended=ended)
    return Done()


def _set(ctx: Ctx, user: UserRow, hashed: str, *, keep_session: int | None) -> int:
    """Stores the new password, and ends what the old one opened. Returns how many sessions ended."""
    db, now = ctx.db, ctx.now
    credential = db.get_one(CredentialRow, user.id)
    credential.password_hash, credential.updated_at = hashed, now
    _drop_reset_tokens(db, user.id)
    close_challenges(db, user.id, now)
    _FAILURES.forget(db, user.email)
    queue_mail(db, Template.PASSWORD_CHANGED, user.email, {}, now=now)
    return end_sessions(db, user.id, now, "password changed", keep=keep_session)


def _owner(db: Session, token: str, now: datetime) -> UserRow:
    """The user of a token. Raises Invalid, with one text for a token that was used, replaced, expired or
    never made.
    """
    user = db.scalars(
        select(UserRow)
        .join(PasswordResetRow, PasswordResetRow.user_id == UserRow.id)
        .where(
            PasswordResetRow.token_hash == token_hash(token),
            PasswordResetRow.used_at.is_(None),
            PasswordResetRow.expires_at > now,
        )
    ).one_or_none()
    if user is None:
        sentence = "This token was used, was replaced by a newer one, or has expired; ask for another."
        raise Invalid.at("/token", sentence)
    return user


def close_challenges(db: Session, user_id: int, now: datetime) -> None:
    """Closes sign-ins that wait for a second factor, after the password or the factor has changed."""
    waiting = (OtpChallengeRow.user_id == user_id, OtpChallengeRow.closed_at.is_(None))
    db.execute(update(OtpChallengeRow).where(*waiting).values(closed_at=now))


def _drop_reset_tokens(db: Session, user_id: int) -> None:
    """At most one token works: the newest."""
    db.execute(delete(PasswordResetRow).where(PasswordResetRow.user_id == user_id))


def new_reset_token(store: Store, clock: Clock, random: RandomBytes, email: str) -> Mapping[str, str] | None:
    """The values of the mail, made when it is sent. An older token stops working. None where there is no such
    account.
    """
    token, now = new_token(random), clock()
    with store.write() as db:
        user = find_user(db, email)
        if user is None:
            return None
        _drop_reset_tokens(db, user.id)
        db.add(
            PasswordResetRow(
                token_hash=token_hash(token),
                user_id=user.id,
                created_at=now,
                expires_at=now + RESET_LIFETIME,
            )
        )
    return {"token": token, "minutes": str(int(RESET_LIFETIME.total_seconds() // 60))}
