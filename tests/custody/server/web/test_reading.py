"""What a request carries is read in the order in which it is refused, in one thread, behind the door."""

import anyio.to_thread
import pytest

from custody.server.service.requests.rates import WRITES_PER_MINUTE
from tests.support.platform import As, World

PATH = "/api/v1/register-key"
NOBODY = {"Authorization": "Bearer nobody's"}
JSON = {"Content-Type": "application/json"}
TOO_LONG = "k" * 201


class TestOrder:
    """Every fault at once: the body's bytes, then who calls, then all that is wrong with what was sent."""

    @pytest.mark.parametrize("headers", [{}, NOBODY])
    def test_what_is_not_json_is_refused_before_anybody_is_looked_for(self, world: World, headers) -> None:
        answer = world.http.post(PATH, content=b"{", headers=headers | JSON)
        assert (answer.status_code, answer.json()["code"]) == (400, "MALFORMED_JSON")

    @pytest.mark.parametrize(
        "headers",
        [{}, NOBODY, {"Authorization": "Basic bm9ib2R5"}, {"Authorization": "Bearer " + "x" * 201}],
    )
    @pytest.mark.parametrize("body", [b"", b"null", b'{"no": "such field"}'])
    def test_a_stranger_does_not_learn_what_should_be_sent(self, world: World, headers, body) -> None:
        sent = headers | JSON | {"Idempotency-Key": TOO_LONG}
        answer = world.http.post(PATH, content=body, headers=sent)
        assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")
        assert not answer.json().get("errors")

    @pytest.mark.parametrize("query", ["", "?no=such", "?workspace_id=x"])
    def test_nor_of_a_query(self, world: World, query: str) -> None:
        answer = world.http.get(f"/api/v1/get-users-from-workspace{query}", headers=NOBODY)
        assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")

    def test_whoever_calls_too_often_does_not_either(self, world: World, alice: As) -> None:
        rates = world.platform.services.rates
        caller = world.platform.services.sessions.authenticate(
            alice.headers["Authorization"].removeprefix("Bearer "), "trace"
        )
        for _ in range(WRITES_PER_MINUTE):
            rates.take(caller.user_id, is_write=True)
        assert alice.post(PATH, {"no": "such field"}).status_code == 429

    def test_faults_of_a_header_and_of_the_body_are_told_together(self, alice: As) -> None:
        answer = alice.post("/api/v1/create-psbt", {"workspace_id": "x"}, **{"Idempotency-Key": TOO_LONG})
        pointers = [error["pointer"] for error in answer.json()["errors"]]
        assert pointers[0] == "/header/Idempotency-Key"
        assert "/workspace_id" in pointers

    def test_a_body_that_is_not_there_is_missing(self, alice: As) -> None:
        answer = alice.http.post(PATH, headers=alice.headers | JSON)
        (fault,) = answer.json()["errors"]
        assert (answer.status_code, fault["pointer"], fault["code"]) == (422, "", "missing")


@pytest.mark.parametrize(
    "kind",
    ["application/json", "application/json; charset=utf-8", "application/vnd.x+json", "APPLICATION/JSON"],
)
def test_what_counts_as_json(alice: As, kind: str) -> None:
    body = b'{"network": "testnet", "label": 1}'
    answer = alice.http.post(PATH, content=body, headers=alice.headers | {"Content-Type": kind})
    assert "/label" in {error["pointer"] for error in answer.json()["errors"]}


def test_a_call_takes_one_thread(alice: As, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs a tenth of a millisecond, and more where several wait for the interpreter."""
    taken = 0
    run_sync = anyio.to_thread.run_sync

    async def counted(*given, **options):
        nonlocal taken
        taken += 1
        return await run_sync(*given, **options)

    monkeypatch.setattr(anyio.to_thread, "run_sync", counted)
    assert alice.get("/api/v1/get-user-info").status_code == 200
    assert taken == 1
