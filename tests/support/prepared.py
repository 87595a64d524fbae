"""A desk that is set up once for each process of a test run, and copied for each test: a third of a second becomes a tenth."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.custody import Desk, open_desk
from tests.support.platform import As, World, open_world


@dataclass(frozen=True)
class Prepared:
    """``state``: the folder, with the chain in it. ``desk`` is closed: what of it is plain, the copies take over."""

    state: Path
    desk: Desk


def prepare(state: Path, url: str, deposits: Sequence[int]) -> Prepared:
    """Writes the database at ``url``, which has its tables and nothing else."""
    with open_desk(state, database_url=url) as desk:
        if deposits:
            desk.deposit(*deposits)
        return Prepared(state, desk)


@contextmanager
def reopen(prepared: Prepared, state: Path, url: str) -> Iterator[Desk]:
    """The same desk over a copy of its database at ``url``. Everybody is still signed in: the clock stands where it stood."""
    shutil.copytree(prepared.state, state)
    with open_world(state, database_url=url, broadcast_wait_seconds=0) as world:
        chain = world.platform.background.open_chain()
        try:
            known = prepared.desk
            signers = {name: _again(user, world) for name, user in known.signers.items()}
            desk = Desk(
                world,
                chain,
                known.workspace_id,
                _again(known.admin, world),
                signers,
                dict(known.user_ids),
                dict(known.devices),
                dict(known.vault),
            )
            desk.watcher.look()
            yield desk
        finally:
            chain.close()


def _again(user: As, world: World) -> As:
    return replace(user, http=world.http)
