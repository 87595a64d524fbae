"""Health answers of a process: quick, in words, and without secrets."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from custody.server.errors import ChainUnavailable, DatabaseUnavailable
from custody.server.operations import readiness
from custody.server.store.store import newest
from custody.server.web.asgi import build_worker_asgi
from tests.support.asgi import asgi_client
from tests.support.custody import Desk, open_desk
from tests.support.platform import World, open_world


@pytest.fixture
def world(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(readiness, "FRESH_SECONDS", 0)
    with open_world(tmp_path / "state", database_url=database) as opened:
        yield opened


def refused(answer: httpx.Response, sentence: str) -> dict:
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    told = answer.json()
    assert (told["status"], told["reason"]) == ("not ready", sentence)
    return told


def test_a_process_that_lives_and_can_work(world: World) -> None:
    assert world.http.get("/health").json() == {"status": "ok"}
    assert world.http.get("/ready").json() == {"status": "ready", "chains": []}


class TestNotReady:
    def test_while_the_database_is_away(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail() -> None:
            raise DatabaseUnavailable("connection to 10.0.0.7, user custody, failed")

        with monkeypatch.context() as patch:
            patch.setattr(world.platform.services.store, "read", fail)
            assert "10.0.0.7" not in str(refused(world.http.get("/ready"), readiness.AWAY))
            assert world.http.get("/health").status_code == 200
        assert world.http.get("/ready").status_code == 200

    def test_while_the_database_hangs(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """No request waits longer than the deadline."""
        go = threading.Event()
        hanging = readiness.Recent(partial(go.wait, 30), fresh_seconds=0)
        monkeypatch.setattr(world.platform.services.readiness, "_outdated", hanging)
        monkeypatch.setattr(readiness.Readiness.trouble, "__defaults__", (0.01,))
        refused(world.http.get("/ready"), readiness.NO_ANSWER)
        go.set()
        assert hanging.ask().result(30)

    def test_once_a_newer_version_has_migrated_the_database(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("custody.server.store.store.newest", lambda: f"{newest()}-and-older")
        refused(world.http.get("/ready"), readiness.OUTDATED)

    def test_when_it_is_about_to_stop(self, world: World) -> None:
        """A proxy sends the next request elsewhere."""
        world.platform.services.tools.changes.close()
        refused(world.http.get("/ready"), readiness.STOPPING)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path / "state") as opened:
        yield opened


def test_a_chain_that_is_away_is_told_of_and_takes_no_server_out(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports what the process knows already, so that a caller cannot make it ask a node."""
    never = {"chain": "regtest", "reachable": False, "height": None, "silent_seconds": None}
    assert desk.world.http.get("/ready").json()["chains"] == [never]
    desk.deposit(100_000)
    height = desk.chain.tip().height
    desk.world.clock.advance(seconds=7)

    def away(*_args: object) -> None:
        raise ChainUnavailable("http://rpc:password@node.example.org does not answer")

    monkeypatch.setattr(desk.chain, "tip", away)
    with pytest.raises(ChainUnavailable):
        desk.watcher.look()
    answer = desk.world.http.get("/ready")
    assert answer.status_code == 200
    gone = {"chain": "regtest", "reachable": False, "height": height, "silent_seconds": 7.0}
    assert answer.json()["chains"] == [gone]
    assert "node.example.org" not in answer.text


def test_a_worker_says_the_same(world: World) -> None:
    app = build_worker_asgi(world.platform.services, world.platform.background.lifespan)
    with asgi_client(app) as http:
        assert http.get("/health").json() == {"status": "ok"}
        assert http.get("/ready").json()["status"] == "ready"
