"""The bounds on one person's calls, through HTTP."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from custody.schemas import calls
from custody.schemas.auth import LOGOUT
from custody.schemas.call import Auth
from custody.schemas.vaults import FREEZE_VAULT
from custody.server.requests.rates import MAX_LONG_POLLS, RESERVED_PER_MINUTE
from tests.support.cluster import until
from tests.support.custody import refused
from tests.support.platform import As, World, open_world

ALICE, BOB = "alice@example.org", "bob@example.org"
CALLS, WRITES = 12, 3


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[World]:
    """A platform that allows few calls a minute, by its settings."""
    with open_world(tmp_path / "state", calls_per_minute=CALLS, writes_per_minute=WRITES) as world:
        world.organisation("Acme", ALICE)
        yield world


def test_changes_are_bounded_further(slow: World) -> None:
    alice = slow.as_user(ALICE)
    answers = [alice.post("/api/v1/key-challenge", {}).status_code for _ in range(WRITES + 1)]
    assert answers == [422] * WRITES + [429]
    assert alice.get("/api/v1/get-user-info").status_code == 200


def test_refusals_of_reading_calls_count_as_changes(slow: World) -> None:
    """Each is recorded, with the one lock of all writers."""
    slow.member(1, BOB)
    bob = slow.as_user(BOB)
    asked = [bob.get("/api/v1/get-users-from-workspace", workspace_id=1) for _ in range(WRITES + 2)]
    assert [answer.status_code for answer in asked] == [403] * WRITES + [429] * 2
    assert slow.audit_actions("workspace:1").count("PERMISSION_DENIED") == WRITES
    assert bob.get("/api/v1/get-user-info").status_code == 200


def test_calls_of_one_person_are_bounded_whatever_they_call(slow: World) -> None:
    slow.member(1, BOB)
    alice, bob = slow.as_user(ALICE), slow.as_user(BOB)
    for _ in range(CALLS):
        assert alice.get("/api/v1/get-user-info").status_code == 200
    assert bob.get("/api/v1/get-user-info").status_code == 200
    for row in (row for row in calls.CALLS if row.needs is not Auth.OPEN and not row.reserved):
        path = row.path.format(**dict.fromkeys(row.path_ids, 1))
        assert slow.http.request(row.method, path, headers=alice.headers).status_code == 429, path
    freeze = {"workspace_id": 1, "vault_id": "none"}
    tried = [alice.post(FREEZE_VAULT.path, freeze).status_code for _ in range(RESERVED_PER_MINUTE + 1)]
    assert tried == [404] * RESERVED_PER_MINUTE + [429]
    slow.clock.advance(seconds=2)
    assert alice.post(LOGOUT.path, {}).status_code == 200, "signing out is possible"


def test_a_search_counts_as_ten_calls_and_does_not_wait(slow: World) -> None:
    alice = slow.as_user(ALICE)
    problem = refused(_poll(alice, '"none"', search="rent"), 422, "VALIDATION")
    assert "does not wait" in problem["detail"]
    assert alice.get("/api/v1/psbt", workspace_id=1, search="rent").status_code == 200
    answers = [alice.get("/api/v1/get-user-info").status_code for _ in range(CALLS - 10)]
    assert answers == [200] * (CALLS - 11) + [429], "the refusal was a call too"


def test_long_polls_at_once_are_bounded(tmp_path: Path) -> None:
    with open_world(tmp_path / "state") as world:
        world.organisation("Acme", ALICE)
        alice = world.as_user(ALICE)
        etag = alice.get("/api/v1/psbt", workspace_id=1).headers["ETag"]
        rates = world.platform.services.rates
        with ThreadPoolExecutor(MAX_LONG_POLLS) as pool:
            held = [pool.submit(_poll, alice, etag) for _ in range(MAX_LONG_POLLS)]
            until(lambda: rates._polling.counts[1] >= MAX_LONG_POLLS, "they do not poll")
            refused(_poll(alice, etag), 429, "RATE_LIMITED")
            assert alice.get("/api/v1/psbt", workspace_id=1).status_code == 200
            world.platform.services.tools.changes.close()
            assert {answer.result().status_code for answer in held} == {304}
        assert not rates._polling.counts


def test_each_look_of_a_long_poll_counts_as_a_call(slow: World) -> None:
    """Whatever happens in the workspace wakes it, also what its list does not show: sixteen of them would
    read without end.
    """
    services = slow.platform.services
    alice = slow.as_user(ALICE)
    etag = alice.get("/api/v1/psbt", workspace_id=1).headers["ETag"]
    with ThreadPoolExecutor(1) as pool:
        polling = pool.submit(_poll, alice, etag)
        moves = 0
        while not polling.done():
            with services.store.write() as db:
                services.tools.changes.moved(db, 1)
            moves += 1
        refused(polling.result(), 429, "RATE_LIMITED")
    assert moves >= CALLS - 2
    assert not services.rates._polling.counts


def _poll(user: As, etag: str, **query: str):
    headers = {**user.headers, "If-None-Match": etag, "Prefer": "wait=30"}
    return user.http.get("/api/v1/psbt", params={"workspace_id": 1, **query}, headers=headers)
