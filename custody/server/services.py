"""All use cases of one platform, as the web layer gets them."""

from dataclasses import dataclass

from custody.server.audit.log import AuditLog
from custody.server.limits.stored import Policies
from custody.server.mail.mailer import Mailer
from custody.server.network.backends import Market
from custody.server.operations.readiness import Readiness
from custody.server.proposals.lifecycle import Lifecycle
from custody.server.requests.changes import Changes, LongPolls
from custody.server.requests.idempotency import Idempotency
from custody.server.requests.rates import Rates, Throttle
from custody.server.rules.ports import Clock, RandomBytes
from custody.server.rules.selection import RandomSource
from custody.server.secrets import Secrets
from custody.server.sign_in.access_tokens import ServiceSignIn
from custody.server.sign_in.password_hashes import Passwords
from custody.server.sign_in.providers import Providers
from custody.server.store import Store
from custody.server.webhooks.events import WebhookEvents


@dataclass(frozen=True)
class Tools:
    """What any use case may reach beside its transaction (`custody.server.calls`)."""

    clock: Clock
    random: RandomBytes
    # For what is drawn, not secret: coins, places of outputs, lock times.
    rng: RandomSource
    audit: AuditLog
    events: WebhookEvents
    policies: Policies
    changes: Changes
    lifecycle: Lifecycle
    market: Market
    secrets: Secrets
    passwords: Passwords
    providers: Providers
    mailer: Mailer
    # Else an invitation is needed.
    may_anybody_register: bool
    # Where browsers and receivers reach the platform, if it has a public address.
    public_url: str | None
    # Allowed by the operator even at private addresses.
    webhook_hosts: frozenset[str]
    identity_hosts: frozenset[str]


@dataclass(frozen=True)
class Services:
    store: Store
    tools: Tools
    rates: Rates
    idempotency: Idempotency
    service_signin: ServiceSignIn
    # Of calls that need no sign-in, or take a password or a code.
    calls_by_address: Throttle
    following: LongPolls
    readiness: Readiness
    # How many new ones a maker of programs may have.
    service_secrets: Throttle
    # Of the purchase provider: the same bytes with the same signature are a replay (P45). After a restart,
    # or in another process, it is not newer than the stored report and changes nothing.
    deliveries: Throttle
    # How long an approval that met the threshold waits for the broadcast before it answers.
    broadcast_wait_seconds: float
