"""Common to every endpoint: problems, bounds, trace ids, repeated requests, readiness; before a caller is
known.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI

from custody.schemas.call import Auth, Call
from custody.schemas.calls import CALLS
from custody.schemas.errors import Problem
from custody.server import errors
from custody.server.people import people
from custody.server.requests.idempotency import Scope
from custody.server.store.models import MembershipRow
from custody.server.web.asgi import MAX_BODY_BYTES, MAX_PSBT_BODY_BYTES
from custody.server.web.routes import SMALL_BODY_BYTES, Guarded
from tests.support.custody import CAFE, SHOP, ok, refused
from tests.support.platform import As, World, key_offer, open_world, seed
from tests.support.staff import create_workspace

ALICE = "alice@example.org"
JSON = {"Content-Type": "application/json"}


class TestProblems:
    def test_every_error_of_ours_has_a_hint(self) -> None:
        leaves = {
            leaf for leaf in vars(errors).values()
            if isinstance(leaf, type) and issubclass(leaf, errors.CustodyError)
            and leaf is not errors.CustodyError
        }  # fmt: skip
        assert len(leaves) > 20
        assert all(leaf.hint for leaf in leaves)

    def test_have_one_shape(self, world: World) -> None:
        for method, path, status, code in (
            ("GET", "/api/v1/no-such-thing", 404, "NOT_FOUND"),
            ("GET", "/auth/login", 405, "METHOD_NOT_ALLOWED"),
            ("POST", "/auth/login/", 404, "NOT_FOUND"),
            ("GET", "/api/v1/get-user-info", 401, "UNAUTHENTICATED"),
            ("GET", "/docs", 404, "NOT_FOUND"),
        ):
            answer = world.http.request(method, path)
            assert answer.headers["content-type"] == "application/problem+json"
            told = Problem.model_validate_json(answer.content)
            assert (answer.status_code, told.status, told.code) == (status, status, code)
            assert (told.success, told.instance) == (False, path)
            assert told.trace_id == answer.headers["X-Trace-Id"]

    def test_what_is_no_request_is_refused_in_words(self, alice: As) -> None:
        """P50: JSON that two readers read differently, text that no database can store, and what a foreign
        page could send without asking. P49: no answer repeats a password.
        """
        deep, long = b"[" * 100_000, b'{"email": ' + b"9" * 10_000 + b"}"
        secret = "a secret that is far too long " * 20
        malformed, wrong = (400, "MALFORMED_JSON"), (422, "VALIDATION")
        form = "application/x-www-form-urlencoded"
        for body, refusal, words, kind in (
            *((each, malformed, "", JSON) for each in (b"{", b"\xff\xfe", deep, long, '{"a": "\\ud800"}x')),
            ('{"workspace_id": 1, "workspace_id": 2}', malformed, "a name twice", JSON),
            ('{"workspace_id": 1, "body": {"a": 1, "a": 1}}', malformed, "a name twice", JSON),
            ('{"workspace_id": 1e4}', malformed, "plain digits", JSON),
            ('{"workspace_id": NaN}', malformed, "plain digits", JSON),
            ('{"workspace_id": 1}'.encode("utf-16"), malformed, "UTF-8", JSON),
            *((each, wrong, "", JSON) for each in ("null", "[]", "1", '{"email": 1, "password": "x"}')),
            *(
                (f'{{"email": "a{each}"}}', wrong, "U+0000", JSON)
                for each in ("\\u0000", "\\ud800", "\\udfffb")
            ),
            (f'{{"email": "no", "password": "{secret}"}}', wrong, "", JSON),
            *(
                (b"{}", wrong, "add Content-Type: application/json", each)
                for each in ({}, {"Content-Type": "text/plain"}, {"Content-Type": form})
            ),
        ):
            answer = alice.http.post("/auth/login", content=body, headers=kind)
            told = answer.json()
            assert ((answer.status_code, told["code"]), words in told["detail"]) == (refusal, True), body[:99]
            assert bool(told["errors"]) == (refusal == wrong)
            assert "secret" not in answer.text

    def test_a_query_gives_each_value_once_unless_it_is_a_list(self, alice: As) -> None:
        twice = alice.http.get("/api/v1/psbt?workspace_id=1&limit=1&limit=2", headers=alice.headers)
        assert refused(twice, 422, "VALIDATION")["errors"][0]["pointer"] == "/limit"
        some = f"wallet_id={'0' * 32}&workspace_id=1&recipients={SHOP}&recipients={CAFE}"
        refused(alice.http.get(f"/api/v1/max-send?{some}", headers=alice.headers), 404, "NOT_FOUND")

    def test_our_own_failure_gives_a_trace_id_and_nothing_else(
        self, world: World, alice: As, monkeypatch, capsys
    ) -> None:
        """P49."""

        def fail(*_args: object) -> None:
            raise RuntimeError("the internals")

        monkeypatch.setattr(people, "user_record", fail)
        answer = alice.get("/api/v1/get-user-info")
        assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL")
        assert "internals" not in answer.text
        logged = capsys.readouterr().out
        assert "internals" in logged
        assert answer.json()["trace_id"] in logged


class TestBounds:
    def test_a_body_too_large_is_not_read(self, world: World) -> None:
        """P50: also where its length is no number of bytes (Python itself refuses to read 4,301 digits), or
        it does not announce itself.
        """

        def pieces():
            for _ in range(4):
                yield b"x" * (MAX_BODY_BYTES // 3)

        lengths = ({"Content-Length": "9" * count} for count in (25, 5000))
        sent = [(b"x" * (MAX_BODY_BYTES + 1), {}), *((b"{}", length) for length in lengths), (pieces(), JSON)]
        answers = [world.http.post("/auth/login", content=body, headers=headers) for body, headers in sent]
        for answer in answers:
            refused(answer, 413, "BODY_TOO_LARGE")
        assert answers[0].headers["Connection"] == "close"
        assert "content-length" not in answers[-1].request.headers

    def test_the_largest_psbt_is_not_too_large(self, alice: As) -> None:
        answer = alice.post("/api/v1/sign-psbt", {"psbt_base64": "x" * (MAX_PSBT_BODY_BYTES - 1000)})
        assert answer.status_code == 422

    def test_only_a_psbt_may_be_that_large(self, world: World) -> None:
        """P10: a body is parsed on the event loop; megabytes of it would block every request."""
        paths = {endpoint.path for endpoint in CALLS if endpoint.method == "POST" and endpoint.shape}
        large = b"x" * (MAX_BODY_BYTES + 1)
        answers = {path: world.http.post(path, content=large).status_code for path in paths}
        assert {path for path, status in answers.items() if status != 413} == {"/api/v1/sign-psbt"}

    def test_a_request_whose_end_is_said_twice_ends_its_connection(self, world: World) -> None:
        """RFC 9112, section 6.1."""
        both = JSON | {"Content-Length": "2", "Transfer-Encoding": "chunked"}
        assert world.http.post("/auth/login", content=b"{}", headers=both).headers["Connection"] == "close"
        assert "Connection" not in world.http.post("/auth/login", content=b"{}", headers=JSON).headers


def test_the_log_names_the_path_without_its_query_and_no_cache_keeps_it(world: World, capsys) -> None:
    """P49, P50."""
    answer = world.http.get("/no%0Asuch?token=secret")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    logged = capsys.readouterr().out
    assert answer.headers["X-Trace-Id"] in logged
    assert "secret" not in logged
    assert len(logged.splitlines()) == 1
    assert world.http.get("/no").headers["X-Trace-Id"] != answer.headers["X-Trace-Id"]


class TestRepeatedRequests:
    @pytest.fixture
    def offer(self, monkeypatch: pytest.MonkeyPatch) -> dict:
        monkeypatch.setattr("custody.server.keys.calls._check_possession", lambda *_proof: None)
        return key_offer(seed(1))

    def send(self, user: As, offer: dict, key: str = "k-1"):
        return user.post("/api/v1/register-key", offer, **{"Idempotency-Key": key})

    def test_p41_a_key_is_one_requests_and_one_persons(
        self, alice: As, bob: As, offer: dict, world: World
    ) -> None:
        """Of each call that creates something: test_audit_completeness.py."""
        first = self.send(alice, offer)
        assert self.send(alice, offer).content == first.content
        refused(self.send(alice, {**offer, "label": "changed"}), 422, "IDEMPOTENCY_KEY_REUSED")
        book = {"workspace_id": 1, "name": "Shop", "address": SHOP}
        ok(alice.post("/api/v1/add-whitelist-address", book, **{"Idempotency-Key": "k-1"}))
        scope = Scope(1, "POST", "/api/v1/register-key", "held")
        with world.platform.services.idempotency.guard(scope):
            refused(self.send(alice, offer, "held"), 409, "IDEMPOTENCY_IN_PROGRESS")
            ok(self.send(bob, key_offer(seed(2)), "held"))
        assert len(ok(bob.get("/api/v1/keys"))) == 1

    def test_that_failed_may_be_repeated(self, alice: As, offer: dict) -> None:
        wrong = {**offer, "derivation_base_path": "m/48h/0h/0h/2h"}
        assert self.send(alice, wrong).status_code == 422
        assert self.send(alice, offer).status_code == 200

    def test_do_not_go_around_a_permission_that_was_taken_away(self, alice: As, world: World) -> None:
        """P23."""
        once = As(alice.http, {**alice.headers, "Idempotency-Key": "k"})
        act = partial(create_workspace, once)
        assert act().status_code == 200
        with world.platform.services.store.write() as db:
            db.get_one(MembershipRow, 1).role_id = 2
        assert act().status_code == 403

    def test_are_forgotten_after_a_year(self, alice: As, offer: dict, world: World) -> None:
        self.send(alice, offer)
        world.clock.advance(days=366)
        alice = world.as_user(ALICE)
        assert self.send(alice, {**offer, "label": "changed"}).status_code == 200

    def test_a_key_has_a_shape(self, alice: As, offer: dict) -> None:
        for key in ("", "x" * 201, "two words", "tab\t"):
            assert self.send(alice, offer, key).status_code == 422
        keys = [("Idempotency-Key", "one"), ("Idempotency-Key", "two"), *alice.headers.items()]
        assert alice.http.post("/api/v1/register-key", json=offer, headers=keys).status_code == 422


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
