"""A route that is not open authenticates its caller before it reads a large body, and before it tells what
is wrong with any.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI

from custody.schemas.call import Auth, Call
from custody.schemas.calls import CALLS
from custody.server.web.routes import SMALL_BODY_BYTES, Guarded
from tests.support.custody import refused
from tests.support.platform import As, World, open_world

PATH = "/api/v1/register-key"
GUARDED = [row for row in CALLS if row.needs is not Auth.OPEN]


LARGE = {"content-length": str(SMALL_BODY_BYTES + 1)}


def ask_without_end(
    app: FastAPI, method: str, path: str, token: str | None, announced: Mapping[str, str] = LARGE
) -> tuple[int, str]:
    """The status and the code that answer a request whose body has begun and never goes on. Reading it
    fails the test.
    """
    read = []
    headers = {"Content-Type": "application/json", **announced}
    headers |= {} if token is None else {"Authorization": f"Bearer {token}"}

    async def body() -> AsyncIterator[bytes]:
        read.append(path)
        yield b""

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, client=("192.0.2.1", 50_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return await http.request(method, path, content=body(), headers=headers)

    answer = asyncio.run(ask())
    assert not read, "the body of a stranger is read"
    return answer.status_code, answer.json()["code"]


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One platform for all of them: none changes anything."""
    with open_world(tmp_path_factory.mktemp("state")) as world:
        yield world


class TestStrangers:
    @pytest.mark.parametrize(
        ("row", "token"),
        [(row, None) for row in GUARDED]
        + [(row, "nobody's") for row in GUARDED if row.method == "POST"]
        + [(GUARDED[-1], "x" * 201)],
        ids=lambda value: getattr(value, "path", value),
    )
    def test_are_refused_before_a_large_body_is_read(
        self, strangers: World, row: Call[Any, Any], token: str | None
    ) -> None:
        path = row.path.format(**dict.fromkeys(row.path_ids, 1))
        answer = ask_without_end(strangers.platform.asgi, row.method, path, token)
        assert answer == (401, "UNAUTHENTICATED")

    def test_are_refused_before_a_body_that_does_not_say_its_length(self, strangers: World) -> None:
        announced = {"transfer-encoding": "chunked"}
        answer = ask_without_end(strangers.platform.asgi, "POST", PATH, "nobody's", announced)
        assert answer == (401, "UNAUTHENTICATED")

    def test_are_those_whose_token_has_expired(self, world: World, alice: As) -> None:
        world.clock.advance(hours=1)
        token = alice.headers["Authorization"].removeprefix("Bearer ")
        assert ask_without_end(world.platform.asgi, "POST", PATH, token) == (401, "TOKEN_EXPIRED")

    def test_come_to_no_route_that_lets_nobody_in(self) -> None:
        """Beside the table, too: what is added to the router is guarded."""
        router = APIRouter(route_class=Guarded)
        with pytest.raises(KeyError, match="let_in"):
            router.add_api_route("/new", lambda: "done", methods=["POST"])


@pytest.mark.parametrize("body", [b"", b"{", b"null", b'{"no": "such field"}', b"\xff"])
def test_a_stranger_does_not_learn_what_should_be_sent(strangers: World, body: bytes) -> None:
    sent = {"Content-Type": "application/json", "Idempotency-Key": "k" * 201}
    sent["Authorization"] = "Bearer nobody's"
    problem = refused(strangers.http.post(PATH, content=body, headers=sent), 401, "UNAUTHENTICATED")
    assert not problem.get("errors")


def test_what_a_caller_sends_is_json_before_all_else_that_is_wrong_with_it(alice: As) -> None:
    headers = alice.headers | {"Content-Type": "application/json", "Idempotency-Key": "k" * 201}
    refused(alice.http.post(PATH, content=b"{", headers=headers), 400, "MALFORMED_JSON")


def test_a_list_of_a_vault_that_is_not_there_is_not_empty(alice: As) -> None:
    refused(alice.get("/api/v1/psbt", workspace_id=1, vault_id="none"), 404, "NOT_FOUND")
