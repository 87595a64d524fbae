"""Signing in: password, then the mailed code; accounts and their second factor."""

from dataclasses import dataclass, field
from hmac import compare_digest

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas.auth import LoginRequest, RegisterRequest
from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller
from custody.server.domain.errors import Fault, Invalid, OtpInvalid, RateLimited, Unauthenticated
from custody.server.domain.passwords import check_new_password
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.signin import (
    CALLS_PER_ADDRESS,
    CALLS_PER_ADDRESS_WINDOW,
    LOGIN_FAILURES,
    LOGIN_FAILURES_WINDOW,
    OTP_LIFETIME,
    OTP_MAILS_PER_WINDOW,
    OTP_TRIES,
    OTP_TRIES_PER_WINDOW,
    OTP_WINDOW,
)
from custody.server.domain.tokens import new_otp, new_token, otp_hash, token_hash
from custody.server.service.audit import AuditLog
from custody.server.service.mail import Mail, Mailer
from custody.server.service.passwords import Passwords
from custody.server.service.sessions import Sessions, Tokens
from custody.server.service.throttle import Throttle
from custody.server.store import Store
from custody.server.store.models import Credential, OtpChallenge, User


@dataclass(frozen=True)
class CodeSent:
    """The password was right; the mailed code must follow, with ``token_2fa``."""

    token_2fa: str = field(repr=False)


@dataclass(frozen=True)
class SignedIn:
    user_id: int
    tokens: Tokens


class SignIn:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        random: RandomBytes,
        audit: AuditLog,
        sessions: Sessions,
        passwords: Passwords,
        mailer: Mailer,
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._audit = audit
        self._sessions = sessions
        self._passwords = passwords
        self._mailer = mailer
        self._failures = Throttle(clock, limit=LOGIN_FAILURES, window=LOGIN_FAILURES_WINDOW)
        self._calls = Throttle(clock, limit=CALLS_PER_ADDRESS, window=CALLS_PER_ADDRESS_WINDOW)

    def admit(self, address: str) -> None:
        """Counts a sign-in call from an address. Raises RateLimited."""
        self._calls.take(address)

    def register(self, request: RegisterRequest, trace_id: str) -> None:
        """A new account without any organisation. The answer does not tell whether there was one already (P39)."""
        password = request.password.get_secret_value()
        check_new_password(password, request.email)
        hashed = self._passwords.hash(password)
        with self._store.write() as db:
            user = find_user(db, request.email)
            is_new = user is None
            if user is None:
                user = add_account(
                    db,
                    self._clock,
                    request.email,
                    hashed,
                    first_name=request.first_name,
                    surname=request.surname,
                )
            # Written either way: a commit that reaches the disk takes longer than one that changed nothing.
            self._record(db, user, "ACCOUNT_REGISTERED" if is_new else "REGISTRATION_REPEATED", trace_id)
        self._mailer.send(_welcome(request.email) if is_new else _already_registered(request.email))

    def login(self, request: LoginRequest, trace_id: str) -> SignedIn | CodeSent:
        """Raises Unauthenticated, alike for a wrong password and an unknown account; RateLimited."""
        self._failures.take(request.email)
        password = request.password.get_secret_value()
        with self._store.read() as db:
            found = _credential(db, request.email)
        if not self._passwords.matches(found[1].password_hash if found else None, password) or found is None:
            self._record_failure(found[0] if found else None, trace_id)
            raise Unauthenticated("The e-mail address or the password is wrong.")
        self._failures.clear(request.email)
        user, credential = found
        self._renew_hash(credential, password)
        if credential.second_factor == "email":
            return self._send_code(user, request.device, request.location)
        with self._store.write() as db:
            return self._finish(db, user.id, request.device, request.location, trace_id)

    def validate_code(self, token_2fa: str, code: str, trace_id: str) -> SignedIn:
        """Raises OtpInvalid, alike for a wrong, used, expired or foreign code; each try counts (P38). RateLimited."""
        with self._store.write() as db:
            challenge = self._open_challenge(db, token_2fa)
            if challenge is not None:
                # Challenges gathered before the first try must not bring tries of their own.
                self._check_tries_left(db, challenge.user_id)
                challenge.tries += 1
                is_right = compare_digest(challenge.code_hash or b"", otp_hash(code, token_2fa))
                if is_right or challenge.tries >= OTP_TRIES:
                    challenge.closed_at = self._clock()
                if is_right:
                    return self._finish(db, challenge.user_id, challenge.device, challenge.location, trace_id)
                self._record(db, db.get_one(User, challenge.user_id), "OTP_REFUSED", trace_id)
        raise OtpInvalid("The code is wrong, was used, or has expired.")

    def set_two_factor(self, caller: Caller, password: str, *, enabled: bool) -> None:
        """Asks for the password again: a session left open must not be enough. Raises Invalid, RateLimited."""
        self._failures.take(caller.name)
        with self._store.read() as db:
            stored = db.get_one(Credential, caller.user_id).password_hash
        if not self._passwords.matches(stored, password):
            sentence = "The password is wrong."
            raise Invalid(sentence, faults=(Fault("/password", sentence),))
        self._failures.clear(caller.name)
        with self._store.write() as db:
            credential = db.get_one(Credential, caller.user_id)
            credential.second_factor = "email" if enabled else "none"
            credential.updated_at = self._clock()
            action = "TWO_FACTOR_ENABLED" if enabled else "TWO_FACTOR_DISABLED"
            self._audit.record(db, caller, Category.SIGN_IN, action, "e-mailed codes")

    def _send_code(self, user: User, device: str | None, location: str | None) -> CodeSent:
        token, code, now = new_token(self._random), new_otp(self._random), self._clock()
        with self._store.write() as db:
            self._check_code_budget(db, user.id)
            db.add(
                OtpChallenge(
                    user_id=user.id,
                    token_hash=token_hash(token),
                    code_hash=otp_hash(code, token),
                    tries=0,
                    device=device,
                    location=location,
                    created_at=now,
                    expires_at=now + OTP_LIFETIME,
                )
            )
        self._mailer.send(_code_mail(user.email, code))
        return CodeSent(token)

    def _check_code_budget(self, db: Session, user_id: int) -> None:
        mails, _ = self._codes_of(db, user_id)
        if mails >= OTP_MAILS_PER_WINDOW:
            raise _too_many_codes()
        self._check_tries_left(db, user_id)

    def _check_tries_left(self, db: Session, user_id: int) -> None:
        _, tries = self._codes_of(db, user_id)
        if tries >= OTP_TRIES_PER_WINDOW:
            raise _too_many_codes()

    def _codes_of(self, db: Session, user_id: int) -> tuple[int, int]:
        """How many codes an account was sent in the window, and how many tries they took."""
        query = select(func.count(), func.coalesce(func.sum(OtpChallenge.tries), 0)).where(
            OtpChallenge.user_id == user_id, OtpChallenge.created_at > self._clock() - OTP_WINDOW
        )
        mails, tries = db.execute(query).one()
        return int(mails), int(tries)

    def _open_challenge(self, db: Session, token_2fa: str) -> OtpChallenge | None:
        return db.scalars(
            select(OtpChallenge).where(
                OtpChallenge.token_hash == token_hash(token_2fa),
                OtpChallenge.closed_at.is_(None),
                OtpChallenge.expires_at > self._clock(),
            )
        ).one_or_none()

    def _finish(
        self, db: Session, user_id: int, device: str | None, location: str | None, trace_id: str
    ) -> SignedIn:
        user = db.get_one(User, user_id)
        tokens = self._sessions.open(db, user, device, location)
        self._record(db, user, "SIGNED_IN", trace_id)
        return SignedIn(user.id, tokens)

    def _renew_hash(self, credential: Credential, password: str) -> None:
        if not self._passwords.is_outdated(credential.password_hash):
            return
        hashed = self._passwords.hash(password)
        with self._store.write() as db:
            db.get_one(Credential, credential.user_id).password_hash = hashed

    def _record_failure(self, user: User | None, trace_id: str) -> None:
        """Written for an unknown account too, for it takes time; without what was typed, which may be a password."""
        with self._store.write() as db:
            self._record(db, user, "SIGN_IN_REFUSED", trace_id)

    def _record(self, db: Session, user: User | None, action: str, trace_id: str) -> None:
        caller = Caller(user.id if user else 0, 0, user.email if user else "", trace_id)
        self._audit.record(db, caller, Category.SIGN_IN, action, "")


def find_user(db: Session, email: str) -> User | None:
    """``email`` in lower case."""
    return db.scalars(select(User).where(User.email == email)).one_or_none()


def add_account(
    db: Session,
    clock: Clock,
    email: str,
    password_hash: str,
    *,
    first_name: str | None = None,
    surname: str | None = None,
    two_factor: bool = True,
) -> User:
    """An account with its password; mailed codes are on unless somebody turns them off."""
    now = clock()
    user = User(email=email, first_name=first_name, surname=surname, created_at=now)
    db.add(user)
    db.flush()
    factor = "email" if two_factor else "none"
    db.add(Credential(user_id=user.id, password_hash=password_hash, second_factor=factor, updated_at=now))
    return user


def _credential(db: Session, email: str) -> tuple[User, Credential] | None:
    query = (
        select(User, Credential).join(Credential, Credential.user_id == User.id).where(User.email == email)
    )
    row = db.execute(query).one_or_none()
    return None if row is None else (row[0], row[1])


def _too_many_codes() -> RateLimited:
    return RateLimited("Too many codes were asked for or tried.", retry_after=int(OTP_WINDOW.total_seconds()))


def _code_mail(email: str, code: str) -> Mail:
    minutes = int(OTP_LIFETIME.total_seconds() // 60)
    text = (
        f"Your sign-in code is {code}\n\n"
        f"It is good for {minutes} minutes and for one sign-in. If you are not signing in, change your password:\n"
        "somebody knows it.\n"
    )
    return Mail(email, "Your sign-in code", text)


def _welcome(email: str) -> Mail:
    text = "Your account is ready. An administrator can now add you to a workspace.\n"
    return Mail(email, "Your custody account", text)


def _already_registered(email: str) -> Mail:
    text = "Somebody tried to register an account with this address. You have one already; nothing was changed.\n"
    return Mail(email, "You already have an account", text)
