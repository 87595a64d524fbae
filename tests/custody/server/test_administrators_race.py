"""Two administrators take each other's place at the same moment,
through two platforms over one database: one stays (P27).

Nothing of one process's locks helps here: who is first is the database's decision.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import pytest

from custody.server.app import Outside, Settings, open_platform
from custody.server.domain.roles import EVERY_PERMISSION, KEPT
from custody.server.service.audit.log import verify
from custody.server.service.people.staff import staff_of
from tests.support.asgi import asgi_client
from tests.support.platform import CHEAP, As, World, open_world
from tests.support.staff import Someone, add_someone, change_role, remove, remove_permission

PATIENCE_SECONDS = 90
SIGNER = 2


@dataclass
class Duel:
    """Ann calls one platform, Bea the other. The first administrator has left."""

    world: World
    ann: Someone
    bea: Someone

    def at_once(self, *acts: Callable[[], httpx.Response]) -> list[str]:
        start = threading.Barrier(len(acts))

        def run(act: Callable[[], httpx.Response]) -> str:
            start.wait(PATIENCE_SECONDS)
            answer = act()
            return "ok" if answer.status_code == 200 else answer.json()["code"]

        with ThreadPoolExecutor(len(acts)) as pool:
            return list(pool.map(run, acts))


@pytest.fixture
def duel(tmp_path, database: str) -> Iterator[Duel]:
    with open_world(tmp_path / "state", database_url=database) as world:
        world.organisation("Acme", "first@example.org")
        ann, bea = (add_someone(world, name, EVERY_PERMISSION) for name in ("Ann", "Bea"))
        first = world.as_user("first@example.org").post("/api/v1/leave-workspace", {"workspace_id": 1})
        assert first.status_code == 200, first.text
        second = open_platform(
            Settings(state=tmp_path / "state", database_url=database),
            Outside(clock=world.clock, hasher=CHEAP, mailer=world.mail),
        )
        try:
            with asgi_client(second.asgi) as http:
                elsewhere = Someone(bea.user_id, bea.role_id, As(http, bea.calls.headers))
                yield Duel(world, ann, elsewhere)
                assert verify(second.services.store) == ()
        finally:
            second.close()


ACTS: dict[str, Callable[[Someone, Someone], httpx.Response]] = {
    "remove": lambda me, other: remove(me.calls, other.user_id),
    "demote": lambda me, other: change_role(me.calls, other.user_id, SIGNER),
    "disarm": lambda me, other: remove_permission(me.calls, other.role_id, "MANAGE_USERS"),
    "leave": lambda me, _: me.calls.post("/api/v1/leave-workspace", {"workspace_id": 1}),
}


@pytest.mark.parametrize(
    ("anns", "beas"),
    [
        ("remove", "remove"),
        ("demote", "demote"),
        ("disarm", "disarm"),
        ("leave", "leave"),
        ("demote", "remove"),
        ("disarm", "remove"),
        ("leave", "remove"),
    ],
)
def test_p27_of_two_who_take_each_others_place_one_stays(duel: Duel, anns: str, beas: str) -> None:
    """The second request is refused: it would remove the last administrator, or its sender lost the right."""
    answers = duel.at_once(lambda: ACTS[anns](duel.ann, duel.bea), lambda: ACTS[beas](duel.bea, duel.ann))
    assert answers.count("ok") == 1, answers
    assert set(answers) <= {"ok", "LAST_ADMIN", "PERMISSION_DENIED", "NOT_FOUND"}
    with duel.world.platform.services.store.read() as db:
        assert staff_of(db, 1).held.issuperset(KEPT)
