"""A desk that is set up once for each pytest process and copied for each test, in a third of the time."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import make_url

from custody.server.chain.embedded import EmbeddedChain
from multisig import Network
from tests.support.custody import Desk, open_desk
from tests.support.databases import make_sqlite
from tests.support.platform import As, World, open_world
from tests.support.postgresql import TEMPLATE, Server

# What happens at a new desk before a test begins.
Story = Callable[[Desk], object]


@dataclass(frozen=True)
class Prepared:
    """``state``: the folder, with the chain in it. ``desk`` is closed; copies take over its plain values."""

    state: Path
    database: str
    desk: Desk


class Copies:
    """Desks of this process by kind of database and story, each played once.

    ``server`` starts PostgreSQL for the first caller.
    """

    def __init__(self, folder: Path, server: Callable[[], Server]) -> None:
        self._folder = folder
        self._server = server
        self._prepare = cache(self._make)

    @contextmanager
    def desk(self, story: Story, state: Path, url: str, **settings: object) -> Iterator[Desk]:
        """The same desk over a copy of its database, which replaces the one at ``url``. Everybody is still
        signed in, at the same time. ``settings``: new ones of the platform.
        """
        with reopen(self.restore(story, state, url), state, url, **settings) as desk:
            yield desk

    def restore(self, story: Story, state: Path, url: str) -> Prepared:
        """The copies alone, for `reopen`."""
        prepared = self._prepare(make_url(url).get_backend_name(), story)
        self._replace(url, prepared.database)
        shutil.copytree(prepared.state, state)
        return prepared

    def _replace(self, url: str, template: str | None) -> None:
        """``template``: None for an empty database with tables."""
        place = make_url(url)
        assert place.database is not None
        if place.get_backend_name() != "sqlite":
            self._server().replace(place.database, template or TEMPLATE)
        elif template is not None:
            shutil.copy(template, place.database)
        else:
            make_sqlite(Path(place.database))

    def _make(self, kind: str, story: Story) -> Prepared:
        name = f"{kind}_{story.__module__.rpartition('.')[2]}_{story.__qualname__}".lower().replace(".", "_")
        state = self._folder / name
        database = f"{state}.db" if kind == "sqlite" else name
        url = f"sqlite:///{database}" if kind == "sqlite" else self._server().url(name)
        self._replace(url, None)
        with open_desk(state, database_url=url) as desk:
            story(desk)
        return Prepared(state, database, desk)


@contextmanager
def reopen(prepared: Prepared, state: Path, url: str, **settings: object) -> Iterator[Desk]:
    """``state`` and the database at ``url`` are copies already."""
    known = prepared.desk
    with open_world(state, database_url=url, broadcast_wait_seconds=0, **settings) as world:
        world.clock.now = known.world.clock.now
        background = world.platform.background
        chain: Any = Unopened(
            partial(EmbeddedChain, background.settings.chain_folder, clock=lambda: world.clock().timestamp())
        )
        background.backends[chain.network.value] = chain
        try:
            signers = {name: _again(user, world) for name, user in known.signers.items()}
            yield Desk(
                world,
                chain,
                known.workspace_id,
                _again(known.admin, world),
                signers,
                dict(known.user_ids),
                dict(known.devices),
                dict(known.vault),
            )
        finally:
            chain.close()


class Unopened:
    """An embedded chain that opens where it is first asked: its engine takes longer than most tests."""

    network = Network.REGTEST
    # As `isinstance` sees it.
    __class__ = EmbeddedChain  # type: ignore[assignment]

    def __init__(self, opens: Callable[[], EmbeddedChain]) -> None:
        self._opens = opens
        self._opened: EmbeddedChain | None = None
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._opened is None:
                self._opened = self._opens()
        return getattr(self._opened, name)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()


def _again(user: As, world: World) -> As:
    return replace(user, http=world.http)


def nothing(_desk: Desk) -> None:
    """A new desk."""


def three_deposits(desk: Desk) -> None:
    desk.deposit(100_000, 200_000, 400_000)
