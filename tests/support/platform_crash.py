"""The platform's crash harness: one process is killed at its n-th step, the others continue,
and then the invariants are checked.

``python -m tests.support.platform_crash FOLDER DATABASE STORY [FIRST STEP]`` kills at every STEP-th step of
each turn of the story, starting at FIRST, or at a shorter turn's last, each time on a copy of the same
initial state, and prints a JSON line for each kill. DATABASE is ``sqlite``, or the socket folder of a
PostgreSQL server of the test's own.

A step is a statement to the database, the moment before or after a COMMIT, or the moment before or after a
call of the chain backend. The killed process is a forked child that ends by SIGKILL:
no ``finally`` runs and nothing is flushed.
"""

import json
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet

import structlog
from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

from custody.server.chain.backend import ChainBackend
from custody.server.store import store as store_module
from custody.server.store.store import committed
from tests.support.forked import in_child
from tests.support.platform import open_world
from tests.support.platform_bump import BUMP
from tests.support.platform_replace import REPLACE
from tests.support.platform_story import CHANGE, PAYMENT, UNFREEZE, Story, Turn
from tests.support.postgresql import Server

STORIES = (PAYMENT, BUMP, UNFREEZE, CHANGE, REPLACE)

# Statements without an effect: a kill there is a kill before the next one.
IDLE = ("BEGIN", "SELECT", "PRAGMA", "SHOW", "SET")
# Methods of the chain: those called many times between two steps, and those with an effect.
TRIVIAL = frozenset({"block_at", "tip"})
TELLING = frozenset({"broadcast"})


class Steps:
    """Counts the steps of one process, and kills it at one of them."""

    def __init__(self, fatal: int | None) -> None:
        self._fatal = fatal
        self._armed = False
        self.count = 0

    def __call__(self) -> None:
        if not self._armed:
            return
        self.count += 1
        if self.count == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self) -> None:
        """Counts from here on: setup, such as signing in, is not part of the story."""
        self._armed = True

    def disarm(self) -> None:
        self._armed = False

    def watch_database(self) -> None:
        """Counts the statements and commits of every engine of this process."""

        changed: WeakSet[Connection] = WeakSet()

        def statement(connection: Connection, _cursor: Any, text: str, *_rest: Any) -> None:
            if not text.lstrip().upper().startswith(IDLE):
                changed.add(connection)
                self()

        def commit(connection: Connection) -> None:
            if connection in changed:
                self()

        event.listen(Engine, "before_cursor_execute", statement)
        event.listen(Engine, "commit", commit)
        store_module.committed = self._committed

    def _committed(self, db: Session) -> None:
        """The commit is durable, and the caller has no answer yet."""
        self()
        committed(db)


class SteppedChain:
    """A backend whose calls are steps: before each call, and also after a call with an effect."""

    def __init__(self, inner: ChainBackend, steps: Steps) -> None:
        self._inner = inner
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def ask(*args: Any, **kwargs: Any) -> Any:
            if name not in TRIVIAL:
                self._steps()
            answer = found(*args, **kwargs)
            if name in TELLING:
                self._steps()
            return answer

        return ask


@dataclass(frozen=True)
class Databases:
    """Fresh copies of the database before a turn of a story. ``server``: None for SQLite, whose file is in
    the state folder.
    """

    root: Path
    server: Server | None

    @contextmanager
    def copy(self, story: Story, which: int = 0) -> Iterator[tuple[Path, str | None]]:
        """The state folder, and the URL unless the database is in the folder."""
        before = self._before(story, which)
        folder = Path(tempfile.mkdtemp(dir=self.root))
        shutil.copytree(self.root / before, folder / "state")
        name = f"kill_{folder.name}".lower()
        if self.server is not None:
            self.server.copy(self._name(before), name)
        try:
            yield folder / "state", None if self.server is None else self.server.url(name)
        finally:
            shutil.rmtree(folder)
            if self.server is not None:
                self.server.administer("DROP DATABASE {} WITH (FORCE)", name)

    def _before(self, story: Story, which: int) -> str:
        """The folder's name. Made once, by playing all turns before the ``which``-th."""
        made = f"{story.name}_{which}"
        folder, url = self.root / made, None if self.server is None else self.server.url(self._name(made))
        if folder.exists():
            return made
        if which == 0:
            if self.server is not None:
                self.server.administer("CREATE DATABASE {} TEMPLATE template0", self._name(made))
            in_child(lambda: story.begin(folder, url))
            return made
        earlier = self._before(story, which - 1)
        shutil.copytree(self.root / earlier, folder)
        if self.server is not None:
            self.server.copy(self._name(earlier), self._name(made))
        assert play(story.turns[which - 1], folder, url, which - 1, None) is not None
        return made

    def _name(self, made: str) -> str:
        return f"{self.root.name}_{made}".lower().replace("-", "_")


def play(turn: Turn, state: Path, url: str | None, number: int, fatal: int | None) -> int | None:
    """One process plays its turn; the number of its steps, or None where it was killed."""

    def run() -> None:
        steps = Steps(fatal)
        steps.watch_database()
        turn.play(state, url, number, steps, lambda chain: SteppedChain(chain, steps))
        (state / "steps").write_text(str(steps.count))

    if in_child(run) == signal.SIGKILL:
        return None
    return int((state / "steps").read_text())


def steps_of(story: Story, databases: Databases) -> list[int]:
    """The number of steps of each turn of an undisturbed run."""
    with databases.copy(story) as (state, url):
        counts = [play(turn, state, url, number, None) for number, turn in enumerate(story.turns)]
        assert not look(story, state, url), "it goes wrong without a kill"
    return [count for count in counts if count is not None]


def look(story: Story, state: Path, url: str | None) -> list[str]:
    """What is wrong at the end, in words; a process of its own reads it."""
    in_child(lambda: (state / "wrong").write_text(json.dumps(story.look_back(state, url))))
    found: list[str] = json.loads((state / "wrong").read_text())
    return found


def kill_at(story: Story, databases: Databases, which: int, step: int) -> dict[str, object]:
    """Kills the ``which``-th turn at a step; another process plays it again, and then the later turns."""
    with databases.copy(story, which) as (state, url):
        number, kills, fatal = which, 0, step
        for turn in story.turns[which:]:
            while play(turn, state, url, number, fatal) is None:
                number, kills, fatal = number + 1, kills + 1, None
            number, fatal = number + 1, None
        wrong = look(story, state, url)
    return {
        "story": story.name,
        "turn": story.turns[which].name,
        "step": step,
        "kills": kills,
        "wrong": wrong,
    }


def prepare(root: Path) -> None:
    """Does once what every process would repeat: imports, routes, a first answer. Only errors are logged."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    with open_world(root / "first") as world:
        world.organisation("Acme", "admin@example.org")
        world.as_user("admin@example.org")


def main(root: Path, database: str, name: str, first: int = 1, stride: int = 1) -> None:
    prepare(root)
    (story,) = (story for story in STORIES if story.name == name)
    with ExitStack() as stack:
        server = None if database == "sqlite" else stack.enter_context(closing(Server(Path(database))))
        databases = Databases(root, server)
        for which, count in enumerate(steps_of(story, databases)):
            for step in range(min(first, count), count + 1, stride):
                killed = kill_at(story, databases, which, step)
                print(json.dumps(killed), flush=True)  # noqa: T201 - a program


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))
