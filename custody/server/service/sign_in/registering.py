"""Registering: an account that somebody asks for is made by the code that is mailed to its address."""

from datetime import datetime
from hmac import compare_digest

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.auth import RegisterRequest
from custody.server.domain.credentials import (
    OTP_CHALLENGES_PER_WINDOW,
    OTP_LIFETIME,
    OTP_TRIES,
    OTP_TRIES_PER_WINDOW,
    OTP_WINDOW,
    REGISTRATION_LIFETIME,
    REGISTRATIONS,
    REGISTRATIONS_WINDOW,
    check_new_password,
    new_otp,
    new_token,
    otp_hash,
    plain_code,
    token_hash,
)
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import TEXTS, Template, queue_mail
from custody.server.service.requests.rates import AttemptLimit
from custody.server.service.sign_in.accounts import Passwords, add_account, find_user, record_about
from custody.server.service.sign_in.challenges import ClientInfo, CodeAwaited, code_mail, why_over
from custody.server.service.sign_in.passkeys import Assertion
from custody.server.store import Store
from custody.server.store.models import Invitation, Registration, User


class Registrations:
    """What a caller is told, and the work behind it, is the same for an address that has an account, for one
    that has to be invited and is not, and for one that gets an account: no code is right for the former two.
    The mails alone tell (P39).
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        random: RandomBytes,
        audit: AuditLog,
        passwords: Passwords,
        *,
        may_anybody_register: bool,
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._audit = audit
        self._passwords = passwords
        self._may_anybody_register = may_anybody_register
        self._asked = AttemptLimit(
            store, clock, "registration", limit=REGISTRATIONS, window=REGISTRATIONS_WINDOW
        )
        self._codes = AttemptLimit(
            store, clock, "registration-code", limit=OTP_CHALLENGES_PER_WINDOW, window=OTP_WINDOW
        )
        self._tries = AttemptLimit(
            store, clock, "registration-try", limit=OTP_TRIES_PER_WINDOW, window=OTP_WINDOW
        )

    def ask(self, request: RegisterRequest, trace_id: str, *, is_signing_in: bool = False) -> Registration:
        """Keeps what was asked for, and mails the address what is to be done. ``is_signing_in``: ``code``
        follows at once, and its mail is the only one.

        Raises Invalid, and RateLimited, because every call sends a mail to the address.
        """
        password = request.password.get_secret_value()
        check_new_password(password, request.email)
        self._asked.take(request.email)
        hashed, now = self._passwords.hash(password), self._clock()
        registration = Registration(
            email=request.email,
            password_hash=hashed,
            first_name=request.first_name,
            surname=request.surname,
            # Of no code, until ``code`` makes one.
            token_hash=token_hash(new_token(self._random)),
            code_hash=self._no_code(),
            tries=0,
            created_at=now,
            expires_at=now,
        )
        with self._store.write() as db:
            user = find_user(db, request.email)
            outcome = self._outcome(db, user, request.email)
            db.add(registration)
            if not is_signing_in:
                queue_mail(db, outcome, request.email, {}, now=now)
            record_about(self._audit, db, user, _RECORDED[outcome], trace_id)
        return registration

    def newest(self, db: Session, email: str) -> Registration | None:
        """``email`` in lower case. The one whose password may sign in for the first time."""
        since = self._clock() - REGISTRATION_LIFETIME
        query = select(Registration).where(Registration.email == email, Registration.created_at > since)
        return db.scalars(query.order_by(Registration.id.desc()).limit(1)).one_or_none()

    def code(self, db: Session, registration: Registration, client: ClientInfo) -> CodeAwaited:
        """A code in the place of the one before; mail it after the caller's transaction. Raises
        RateLimited.
        """
        email, token = registration.email, new_token(self._random)
        self._codes.take_in(db, email)
        outcome, code = self._outcome(db, find_user(db, email), email), new_otp(self._random)
        is_right = outcome is Template.WELCOME
        registration.token_hash = token_hash(token)
        registration.code_hash = otp_hash(code, token) if is_right else self._no_code()
        registration.tries, registration.closed_at = 0, None
        registration.expires_at = self._clock() + OTP_LIFETIME
        registration.device, registration.location = client.device, client.location
        told = TEXTS[outcome].fill(email, {}, public_url=None)
        mail = code_mail(Template.REGISTRATION_CODE, email, code) if is_right else told
        return CodeAwaited(token, "email", None, mail, "")

    def find(self, db: Session, token_2fa: str) -> Registration | None:
        """The registration that waits for the code of a token."""
        found = stored_registration(db, token_2fa)
        return None if found is None or why_over(found, self._clock()) else found

    def confirm(
        self,
        db: Session,
        registration: Registration,
        token_2fa: str,
        given: str | Assertion,
        trace_id: str,
    ) -> User | None:
        """Counts a try. The account that a right code makes. Raises RateLimited."""
        self._tries.take_in(db, registration.email)
        registration.tries += 1
        is_right = isinstance(given, str) and compare_digest(
            registration.code_hash, otp_hash(plain_code(given), token_2fa)
        )
        # Another registration of the address may have been quicker.
        if is_right and find_user(db, registration.email) is None:
            user = add_account(
                db,
                self._clock,
                registration.email,
                registration.password_hash,
                first_name=registration.first_name,
                surname=registration.surname,
            )
            db.delete(registration)
            record_about(self._audit, db, user, "ACCOUNT_REGISTERED", trace_id)
            return user
        if is_right or registration.tries >= OTP_TRIES:
            registration.closed_at = self._clock()
        # About no account, also where there is one: its password was not known.
        record_about(self._audit, db, None, "OTP_REFUSED", trace_id)
        return None

    def _no_code(self) -> bytes:
        """In the place of a code's hash: no code has it."""
        return token_hash(new_token(self._random))

    def _outcome(self, db: Session, user: User | None, email: str) -> Template:
        # Asked for every address: what is asked of the database must not tell either.
        is_invited = _is_invited(db, email, self._clock())
        if user is not None:
            return Template.ALREADY_REGISTERED
        return Template.WELCOME if self._may_anybody_register or is_invited else Template.NOT_INVITED


_RECORDED = {
    Template.WELCOME: "REGISTRATION_ASKED",
    Template.ALREADY_REGISTERED: "REGISTRATION_REPEATED",
    Template.NOT_INVITED: "REGISTRATION_REFUSED",
}


def stored_registration(db: Session, token_2fa: str) -> Registration | None:
    """With the newest of its codes, open or not."""
    query = select(Registration).where(Registration.token_hash == token_hash(token_2fa))
    return db.scalars(query).one_or_none()


def _is_invited(db: Session, email: str, now: datetime) -> bool:
    """``email`` in lower case, as invitations have it."""
    query = select(Invitation.id).where(
        Invitation.invited_email == email, Invitation.status == "pending", Invitation.expires_at > now
    )
    return db.scalars(query.limit(1)).first() is not None
