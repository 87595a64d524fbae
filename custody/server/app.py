"""Builds the platform from its settings, dependencies, store, use cases and web layer."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from custody._version import __version__
from custody.server.background import Background
from custody.server.chain.backend import ChainBackend
from custody.server.chain.configuration import ChainSource
from custody.server.mail.jobs import MailJobs, Template
from custody.server.meters import Meters
from custody.server.metrics import StoredFigures
from custody.server.opening import PlatformDependencies, services_of
from custody.server.services import Services
from custody.server.settings import Settings
from custody.server.sign_in.accounts import new_reset_token
from custody.server.stored import Stored, open_stored
from custody.server.webhooks.delivery import WebhookJobs
from custody.server.webhooks.sending import Sender

if TYPE_CHECKING:
    from fastapi import FastAPI


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
    stored = open_stored(settings, Meters(), world.clock, world.random)
    try:
        return _platform_of(settings, chains, world, stored)
    except BaseException:
        stored.store.close()
        raise


def _platform_of(
    settings: Settings, chains: tuple[ChainSource, ...], world: PlatformDependencies, stored: Stored
) -> Platform:
    store, clock = stored.store, world.clock
    store.meters.registry.register(StoredFigures(store, clock))
    backends = dict[str, ChainBackend]()
    services = services_of(settings, world, stored, backends)
    tools = services.tools
    makers = {Template.PASSWORD_RESET: partial(new_reset_token, store, clock, world.random)}
    sender = Sender(world.resolve, settings.webhook_ca_file)
    background = Background(
        settings=settings,
        store=store,
        tools=tools,
        checkpoints=stored.checkpoints,
        backends=backends,
        sources=chains,
        mail_jobs=MailJobs(tools.mailer, makers, settings.public_url),
        webhook_jobs=WebhookJobs(store, tools, sender),
    )
    return Platform(services, background)
