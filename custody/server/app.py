"""Builds the platform from its settings, dependencies, store, use cases and web layer."""

import secrets
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from argon2 import PasswordHasher

from custody._version import __version__
from custody.server.background import Background
from custody.server.chain.backend import ChainBackend
from custody.server.chain.configuration import ChainSource
from custody.server.limits.stored import Policies
from custody.server.mail.jobs import MailJobs, Template
from custody.server.mail.mailer import (
    CountedMailer,
    FileMailer,
    Mailer,
    SmtpMailer,
    SmtpServer,
)
from custody.server.metrics import StoredFigures
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
from custody.server.sign_in.accounts import new_reset_token
from custody.server.sign_in.password_hashes import Passwords
from custody.server.sign_in.providers import Providers
from custody.server.stored import Stored, open_stored
from custody.server.webhooks.delivery import WebhookJobs
from custody.server.webhooks.sending import Resolve, Sender, look_up

if TYPE_CHECKING:
    from fastapi import FastAPI


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


@dataclass(frozen=True)
class Platform:
    """A platform over its state folder. Close it when done."""

    services: Services
    background: Background

    def close(self) -> None:
        self.services.store.close()

    @cached_property
    def asgi(self) -> "FastAPI":
        """Built when first used: commands do not need it."""
        from custody.server.console.application import console_routes
        from custody.server.web.asgi import build_asgi

        random, lifespan = self.services.tools.random, self.background.lifespan
        made = build_asgi(self.services, random, version=__version__, lifespan=lifespan)
        made.router.routes.extend(console_routes(made.state))
        return made


def open_platform(settings: Settings, outside: PlatformDependencies | None = None) -> Platform:
    """Creates the state folder (0700) where it is missing, and migrates the database.
    The chain is open and the workers run during the ASGI application's lifespan.
    """
    world, chains = outside or PlatformDependencies(), settings.chains
    stored = open_stored(settings, world.clock, world.random)
    try:
        return _platform_of(settings, chains, world, stored)
    except BaseException:
        stored.store.close()
        raise


def _platform_of(
    settings: Settings, chains: tuple[ChainSource, ...], world: PlatformDependencies, stored: Stored
) -> Platform:
    store, audit, clock, random = stored.store, stored.audit, world.clock, world.random
    store.meters.registry.register(StoredFigures(store, clock))
    changes, backends = Changes(store.meters), dict[str, ChainBackend]()
    identity_sender = Sender(world.resolve, settings.identity_ca_file)
    tools = Tools(
        clock,
        random,
        world.rng,
        audit,
        world.policies,
        changes,
        Lifecycle(clock, changes, audit.events),
        Market(backends, clock, store.meters),
        stored.secrets,
        Passwords(world.hasher),
        Providers(clock, identity_sender, settings.identity_hosts),
        CountedMailer(world.mailer or _mailer(settings, world), store.meters),
        settings.registration == "open",
        settings.public_url,
        settings.webhook_hosts,
        settings.identity_hosts,
    )
    services = Services(
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
    makers = {Template.PASSWORD_RESET: partial(new_reset_token, store, clock, random)}
    sender = Sender(world.resolve, settings.webhook_ca_file)
    background = Background(
        settings=settings,
        store=store,
        tools=tools,
        checkpoints=stored.checkpoints,
        backends=backends,
        sources=chains,
        mail_jobs=MailJobs(tools.mailer, makers, settings.public_url),
        webhook_jobs=WebhookJobs(store, clock, audit, stored.secrets, sender, settings.webhook_hosts),
    )
    return Platform(services, background)


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
