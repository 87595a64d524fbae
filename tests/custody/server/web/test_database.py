"""What a request finds when it reaches the database, on either kind of it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from custody.schemas.call import Call
from custody.schemas.calls import CALLS
from custody.schemas.errors import ErrorCode
from custody.server.sign_in import passwords
from custody.server.store import Store
from tests.support.databases import kind_of, make_impatient
from tests.support.examples import examples
from tests.support.platform import PASSWORD, As, World, key_offer, seed

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


SCALARS = st.sampled_from(
    [1, 2, 0, -1, 2**63 - 1, 2**63, 0.5, True, None, "", "1", "a", "send", "testnet", "mainnet", "W", "0.1",
     "1e3", "m/48h/1h/0h/2h", "m/84h/1h/0h", "0" * 8, "73c5da0a", "x" * 43, "123456", ALICE, PASSWORD,
     "' OR 1=1 --", "../../etc/passwd", "\r\nX: y", "\u202e", "\x00", "a\x00b", "😀",
     key_offer(seed(1))["xpub"], "bcrt1qqqqqqq", "A" * 88, "approve"]
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["account", "xpub", "derivation_base_path"]), inner, max_size=3)
    ),
    max_leaves=4,
)


def test_p21_p50_no_request_makes_the_platform_fail(world: World, alice: As, monkeypatch) -> None:
    """Whatever the fields hold, the answer is one of ours. An administrator for each endpoint, signed in
    before anything is asked: some calls end a session, or take from a role.
    """
    world.platform.services.calls_by_address._limit = 10**6
    for name in ("GUESSES_HERE", "GUESSES_ANYWHERE"):
        monkeypatch.setattr(passwords, name, replace(getattr(passwords, name), limit=10**6))
    callers = []
    for number, row in enumerate(CALLS):
        world.member(1, f"{number}@example.org", "Administrator")
        callers.append((row, world.as_user(f"{number}@example.org")))
    for row, caller in callers:
        ask_anything(row, caller)


def ask_anything(row: Call[Any, Any], caller: As) -> None:
    @settings(max_examples=examples(8))
    @given(data=st.data())
    def asked(data: st.DataObject) -> None:
        fields = row.shape.model_fields if row.shape else {}
        given_fields = {name: data.draw(VALUES) for name in fields if data.draw(st.integers(0, 9))}
        if row.method == "GET":
            answer = caller.get(row.path, **{name: str(value) for name, value in given_fields.items()})
        else:
            answer = caller.post(row.path, given_fields)
        assert answer.status_code != 500, (row.path, answer.text)
        if answer.status_code >= 400:
            assert answer.json()["code"] in set(ErrorCode), (row.path, answer.text)

    asked()
