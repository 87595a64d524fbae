"""Wires the platform: settings, the outside world, the store, the use cases, the web."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from argon2 import PasswordHasher
from fastapi import FastAPI
from pydantic_settings import BaseSettings, SettingsConfigDict

from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit import AuditLog
from custody.server.service.idempotency import Idempotency
from custody.server.service.keys import Keys
from custody.server.service.mail import FileMailer, Mailer
from custody.server.service.passwords import Passwords
from custody.server.service.people import People
from custody.server.service.services import Services
from custody.server.service.sessions import Sessions
from custody.server.service.setup import Setup
from custody.server.service.signin import SignIn
from custody.server.store import Store
from custody.server.web.asgi import build_asgi
from multisig._version import __version__


class Settings(BaseSettings):
    """From the environment (``CUSTODY_…``) or the command line."""

    model_config = SettingsConfigDict(env_prefix="CUSTODY_")

    state: Path
    # Registering a key without proving its possession is for an operator who checks by other means.
    require_key_proof: bool = True

    @property
    def database(self) -> Path:
        return self.state / "custody.db"

    @property
    def mail_folder(self) -> Path:
        return self.state / "mail"


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Outside:
    """What the platform is given instead of taking it. The default hasher is RFC 9106's second option."""

    clock: Clock = utc_now
    random: RandomBytes = secrets.token_bytes
    hasher: PasswordHasher = field(default_factory=PasswordHasher)
    mailer: Mailer | None = None


@dataclass(frozen=True)
class Platform:
    """A platform over its state folder. Close it when done."""

    services: Services
    setup: Setup
    asgi: FastAPI
    close: Callable[[], None]


def open_platform(settings: Settings, outside: Outside | None = None) -> Platform:
    """Creates the state folder (0700) where it is missing, and brings the database up to date."""
    world = outside or Outside()
    settings.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = Store.open(settings.database)
    services, setup = _wire(settings, world, store)
    asgi = build_asgi(services, world.random, version=__version__)
    return Platform(services, setup, asgi, store.close)


def _wire(settings: Settings, world: Outside, store: Store) -> tuple[Services, Setup]:
    clock, random = world.clock, world.random
    mailer = world.mailer or FileMailer(settings.mail_folder, clock, random)
    audit = AuditLog(clock, random)
    passwords = Passwords(world.hasher)
    sessions = Sessions(store, clock, random, audit)
    services = Services(
        store=store,
        audit=audit,
        idempotency=Idempotency(clock),
        sessions=sessions,
        signin=SignIn(store, clock, random, audit, sessions, passwords, mailer),
        people=People(clock, audit),
        keys=Keys(clock, random, audit, requires_proof=settings.require_key_proof),
    )
    return services, Setup(store, clock, audit, passwords)
