"""All use cases of one platform, as the web layer gets them."""

from collections.abc import Mapping
from dataclasses import dataclass

from custody.server.domain.credentials import LOGIN_FAILURES, LOGIN_FAILURES_WINDOW
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.selection import RandomSource
from custody.server.service.audit.log import AuditLog
from custody.server.service.backends import Market
from custody.server.service.lifecycle import Lifecycle
from custody.server.service.limits.limits import Limits, PolicyStore
from custody.server.service.mail.jobs import Maker, Template
from custody.server.service.mail.mailer import Mailer
from custody.server.service.operations.readiness import Readiness
from custody.server.service.people.purchases import Purchases
from custody.server.service.people.second_person import SecondPerson
from custody.server.service.proposals.drafting import Drafter
from custody.server.service.requests.changes import Changes, Following
from custody.server.service.requests.idempotency import Idempotency
from custody.server.service.requests.rates import AttemptLimit, Rates, Throttle
from custody.server.service.secrets import ClientSecrets, Secrets, TotpSecrets
from custody.server.service.sign_in.accounts import Accounts, Passwords
from custody.server.service.sign_in.identity import IdentitySignIn
from custody.server.service.sign_in.passkeys import Passkeys
from custody.server.service.sign_in.passwords import Guesses, PasswordChanges, PasswordCheck
from custody.server.service.sign_in.providers import Providers
from custody.server.service.sign_in.rotation import Rotation
from custody.server.service.sign_in.second_factor import Authenticators, TwoFactor
from custody.server.service.sign_in.service_accounts import ServiceSignIn
from custody.server.service.sign_in.sessions import Sessions
from custody.server.service.sign_in.signin import Challenges, SignIn
from custody.server.service.sign_in.step_up import PasskeyEnrolment, StepUp
from custody.server.service.tokens.calling import Calling, Resubmitting
from custody.server.service.tokens.creating import TokenCreating
from custody.server.store import Store


@dataclass(frozen=True)
class SignInServices:
    passwords: Passwords
    sessions: Sessions
    service_signin: ServiceSignIn
    signin: SignIn
    accounts: Accounts
    password_changes: PasswordChanges
    authenticators: Authenticators
    two_factor: TwoFactor
    passkeys: Passkeys
    passkey_enrolment: PasskeyEnrolment
    step_up: StepUp
    identity: IdentitySignIn
    rotation: Rotation

    @property
    def mail_makers(self) -> Mapping[Template, Maker]:
        """By template, the functions that create the secrets in a mail."""
        return {Template.PASSWORD_RESET: self.password_changes.make_token}


@dataclass(frozen=True)
class Tools:
    """What any use case may reach beside its transaction (`custody.server.calls`)."""

    clock: Clock
    random: RandomBytes
    # For what is drawn, not secret: coins, places of outputs, lock times.
    rng: RandomSource
    audit: AuditLog
    policies: PolicyStore
    limits: Limits
    changes: Changes
    lifecycle: Lifecycle
    market: Market
    secrets: Secrets
    # Where browsers and receivers reach the platform, if it has a public address.
    public_url: str | None
    # Allowed by the operator even at private addresses.
    webhook_hosts: frozenset[str]
    identity_hosts: frozenset[str]


@dataclass(frozen=True)
class Services:
    store: Store
    tools: Tools
    audit: AuditLog
    rates: Rates
    idempotency: Idempotency
    sessions: Sessions
    service_signin: ServiceSignIn
    signin: SignIn
    account: SignInServices
    following: Following
    readiness: Readiness
    second_person: SecondPerson
    # How many new ones a maker of programs may have.
    service_secrets: Throttle
    drafter: Drafter
    resubmitting: Resubmitting
    token_creating: TokenCreating
    calling: Calling
    purchases: Purchases
    # How long an approval that met the threshold waits for the broadcast before it answers.
    broadcast_wait_seconds: float


def wire_sign_in(
    store: Store,
    clock: Clock,
    random: RandomBytes,
    audit: AuditLog,
    passwords: Passwords,
    mailer: Mailer,
    secrets: Secrets,
    providers: Providers,
    *,
    may_anybody_register: bool = True,
    public_url: str | None = None,
) -> SignInServices:
    failures = AttemptLimit(store, clock, "password", limit=LOGIN_FAILURES, window=LOGIN_FAILURES_WINDOW)
    check, guesses = PasswordCheck(store, passwords, failures), Guesses(store, clock)
    authenticators = Authenticators(store, clock, random, audit, check, TotpSecrets(secrets))
    passkeys = Passkeys(clock, public_url)
    challenges = Challenges(store, clock, random, mailer, authenticators, passkeys)
    step_up = StepUp(store, clock, audit, check, challenges)
    sessions = Sessions(store, clock, random, audit)
    return SignInServices(
        passwords=passwords,
        sessions=sessions,
        service_signin=ServiceSignIn(store, clock, audit),
        signin=SignIn(store, clock, audit, sessions, passwords, guesses, challenges),
        accounts=Accounts(store, clock, audit, passwords, may_anybody_register=may_anybody_register),
        password_changes=PasswordChanges(store, clock, random, audit, passwords, check, failures, guesses),
        authenticators=authenticators,
        two_factor=TwoFactor(store, clock, audit, check),
        passkeys=passkeys,
        passkey_enrolment=PasskeyEnrolment(store, clock, audit, passkeys, challenges, step_up),
        step_up=step_up,
        identity=IdentitySignIn(
            store,
            clock,
            random,
            audit,
            sessions,
            ClientSecrets(secrets),
            providers,
            public_url,
        ),
        rotation=Rotation(store, audit, secrets),
    )
