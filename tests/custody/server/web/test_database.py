"""What a request finds when it reaches the database, on either kind of it."""

from custody.server.store import Store
from tests.support.databases import make_impatient
from tests.support.platform import As, World

ALICE = "alice@example.org"


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
