"""What a request finds when it reaches the database, on either kind of it."""

import pytest

from custody.server.store import Store
from tests.support.databases import kind_of, make_impatient
from tests.support.platform import As, World

ALICE = "alice@example.org"


def test_is_the_database_that_the_test_is_named_after(world: World, request: pytest.FixtureRequest) -> None:
    """Were it always SQLite, every test of these folders would pass twice and say nothing of PostgreSQL."""
    assert kind_of(world.platform.services.store) in request.node.name


def test_a_lock_held_elsewhere_is_said_to_pass(world: World, alice: As, database: str) -> None:
    """Another program writes for longer than we wait: 503 with Retry-After, and nothing was changed."""
    make_impatient(world.platform.services.store)
    other = Store.open(database)
    with other.write():
        answer = alice.post("/auth/logout")
    other.close()
    assert (answer.status_code, answer.json()["code"]) == (503, "BACKEND_UNAVAILABLE")
    assert answer.json()["detail"] == "The database is busy. Nothing was changed. Try again later."
    assert "Retry-After" in answer.headers
    assert alice.get("/api/v1/get-user-info").status_code == 200
