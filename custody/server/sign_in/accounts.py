"""Accounts: finding and creating them, registering, which makes one without an organisation, and events about
one whose owner is not signed in.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.auth import REGISTER, RegisterRequest
from custody.schemas.common import Done
from custody.server.calls import Ctx, In, Steps, serves_in_parts
from custody.server.mail.jobs import Template, queue_mail
from custody.server.requests.rates import AttemptLimit
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import check_new_password
from custody.server.store.models import CredentialRow, InvitationRow, UserRow

# Each one sends a mail, perhaps to a person who did not ask for it.
_TRIES = AttemptLimit("registration", 5, timedelta(hours=1))
# By the mail that the owner gets.
_EVENTS = {
    Template.WELCOME: Event("ACCOUNT_REGISTERED", "", category=Category.SIGN_IN),
    Template.ALREADY_REGISTERED: Event("REGISTRATION_REPEATED", "", category=Category.SIGN_IN),
    Template.NOT_INVITED: Event("REGISTRATION_REFUSED", "", category=Category.SIGN_IN),
}


@serves_in_parts(REGISTER, first=In.NOTHING)
def register(_ctx: Ctx, request: RegisterRequest) -> Steps[Done]:
    return register_account(request)


def register_account(request: RegisterRequest, *, is_signing_in: bool = False) -> Steps[Done]:
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
    query = select(InvitationRow.id).where(
        InvitationRow.invited_email == email,
        InvitationRow.status == "pending",
        InvitationRow.expires_at > now,
    )
    return db.scalars(query.limit(1)).first() is not None


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
