"""The use cases of sign-in, wired together: they share one count of failures and one check of the password."""

from collections.abc import Mapping
from dataclasses import dataclass

from custody.server.domain.credentials import LOGIN_FAILURES, LOGIN_FAILURES_WINDOW
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import Maker
from custody.server.service.mail.mailer import Mailer
from custody.server.service.mail.texts import Template
from custody.server.service.secrets import Secrets
from custody.server.service.sign_in.accounts import Accounts
from custody.server.service.sign_in.challenges import Challenges
from custody.server.service.sign_in.password_changes import PasswordChanges
from custody.server.service.sign_in.password_check import PasswordCheck
from custody.server.service.sign_in.passwords import Passwords
from custody.server.service.sign_in.rotation import Rotation
from custody.server.service.sign_in.sessions import Sessions
from custody.server.service.sign_in.signin import SignIn
from custody.server.service.sign_in.throttle import AttemptLimit
from custody.server.service.sign_in.totp import Authenticators
from custody.server.service.sign_in.totp_secrets import TotpSecrets
from custody.server.service.sign_in.two_factor import TwoFactor
from custody.server.service.webhooks.secrets import WebhookSecrets
from custody.server.store import Store


@dataclass(frozen=True)
class SignInServices:
    passwords: Passwords
    sessions: Sessions
    signin: SignIn
    accounts: Accounts
    password_changes: PasswordChanges
    authenticators: Authenticators
    two_factor: TwoFactor
    rotation: Rotation

    @property
    def mail_makers(self) -> Mapping[Template, Maker]:
        """The secrets that mails carry are made by who knows what they open."""
        return {Template.PASSWORD_RESET: self.password_changes.make_token}


def wire_sign_in(
    store: Store,
    clock: Clock,
    random: RandomBytes,
    audit: AuditLog,
    passwords: Passwords,
    mailer: Mailer,
    secrets: Secrets,
) -> SignInServices:
    failures = AttemptLimit(store, clock, "password", limit=LOGIN_FAILURES, window=LOGIN_FAILURES_WINDOW)
    check = PasswordCheck(store, passwords, failures)
    totp_secrets = TotpSecrets(secrets)
    authenticators = Authenticators(store, clock, random, audit, check, totp_secrets)
    challenges = Challenges(store, clock, random, mailer, authenticators)
    sessions = Sessions(store, clock, random, audit)
    return SignInServices(
        passwords=passwords,
        sessions=sessions,
        signin=SignIn(store, clock, audit, sessions, passwords, failures, challenges),
        accounts=Accounts(store, clock, audit, passwords),
        password_changes=PasswordChanges(store, clock, random, audit, passwords, check, failures),
        authenticators=authenticators,
        two_factor=TwoFactor(store, clock, audit, check),
        rotation=Rotation(store, audit, secrets, totp_secrets, WebhookSecrets(secrets)),
    )
