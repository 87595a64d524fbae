"""Builds the use cases over the database: what an operator's command needs of the platform."""

import secrets
from dataclasses import dataclass, field

from argon2 import PasswordHasher

from custody.server.audit.log import AuditLog
from custody.server.chain.backend import ChainBackend
from custody.server.limits.stored import Policies
from custody.server.mail.mailer import CountedMailer, FileMailer, Mailer, SmtpMailer, SmtpServer
from custody.server.network.backends import Market
from custody.server.operations.readiness import Readiness
from custody.server.people.service_accounts import SECRETS, SECRETS_WINDOW
from custody.server.proposals.lifecycle import Lifecycle
from custody.server.purchases import TOLERANCE
from custody.server.requests.changes import Changes, LongPolls
from custody.server.requests.idempotency import Idempotency
from custody.server.requests.rates import Rates, Throttle
from custody.server.rules.credentials import CALLS_PER_ADDRESS, CALLS_PER_ADDRESS_WINDOW
from custody.server.rules.ports import Clock, RandomBytes
from custody.server.rules.selection import RandomSource
from custody.server.services import Services, Tools
from custody.server.settings import Settings, utc_now
from custody.server.sign_in.access_tokens import ServiceSignIn
from custody.server.sign_in.password_hashes import Passwords
from custody.server.sign_in.providers import Providers
from custody.server.stored import Stored
from custody.server.webhooks.events import WebhookEvents
from custody.server.webhooks.sending import Resolve, Sender, look_up


@dataclass(frozen=True)
class PlatformDependencies:
    """The platform's dependencies, which callers pass in. The default hasher is RFC 9106's second option."""

    clock: Clock = utc_now
    random: RandomBytes = secrets.token_bytes
    hasher: PasswordHasher = field(default_factory=PasswordHasher)
    mailer: Mailer | None = None
    policies: Policies = field(default_factory=Policies)
    # Coin selection, the position of change and the lock time are random, so that the chain reveals less.
    rng: RandomSource = field(default_factory=secrets.SystemRandom)
    # Resolves the host of a webhook.
    resolve: Resolve = look_up


def services_of(
    settings: Settings, world: PlatformDependencies, stored: Stored, backends: dict[str, ChainBackend]
) -> Services:
    """``backends`` is filled where a chain is opened."""
    store, clock, random = stored.store, world.clock, world.random
    events = WebhookEvents(clock, random)
    audit, changes = AuditLog(clock, random, events), Changes(store.meters)
    tools = Tools(
        clock,
        random,
        world.rng,
        audit,
        events,
        world.policies,
        changes,
        Lifecycle(clock, changes, events),
        Market(backends, clock, store.meters),
        stored.secrets,
        Passwords(world.hasher),
        Providers(clock, Sender(world.resolve, settings.identity_ca_file), settings.identity_hosts),
        CountedMailer(world.mailer or _mailer(settings, world), store.meters),
        settings.registration == "open",
        settings.public_url,
        settings.webhook_hosts,
        settings.identity_hosts,
    )
    return Services(
        store=store,
        tools=tools,
        rates=Rates(clock, calls=settings.calls_per_minute, writes=settings.writes_per_minute),
        idempotency=Idempotency(clock),
        service_signin=ServiceSignIn(store, clock, audit),
        calls_by_address=Throttle(clock, limit=CALLS_PER_ADDRESS, window=CALLS_PER_ADDRESS_WINDOW),
        following=LongPolls(store, changes),
        readiness=Readiness(store, changes),
        service_secrets=Throttle(clock, limit=SECRETS, window=SECRETS_WINDOW),
        # A delivery with a time in the near future is valid for twice the tolerance.
        deliveries=Throttle(clock, limit=1, window=2 * TOLERANCE),
        broadcast_wait_seconds=settings.broadcast_wait_seconds,
    )


def _mailer(settings: Settings, world: PlatformDependencies) -> Mailer:
    bears = settings.mail_from, world.clock, world.random
    if settings.smtp_host is None:
        return FileMailer(settings.state / "mail", *bears)
    server = SmtpServer(
        settings.smtp_host,
        settings.smtp_tls,
        settings.smtp_port,
        settings.smtp_username,
        settings.smtp_password,
        settings.smtp_ca_file,
    )
    return SmtpMailer(server, *bears)
