"""Common to every endpoint: problems, bounds, trace ids, repeated requests, readiness."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from custody.schemas.calls import CALLS
from custody.schemas.errors import Problem
from custody.server import errors
from custody.server.people import users
from custody.server.store.models import MembershipRow
from custody.server.web.asgi import MAX_BODY_BYTES, MAX_PSBT_BODY_BYTES
from tests.support.platform import As, World, key_offer, seed

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

    def test_a_body_that_is_not_json(self, world: World) -> None:
        deep, long = b"[" * 100_000, b'{"email": ' + b"9" * 10_000 + b"}"
        for body in (b"{", b"\xff\xfe", deep, long, b'{"a": "\\ud800"}x'):
            answer = world.http.post("/auth/login", content=body, headers=JSON)
            assert (answer.status_code, answer.json()["code"]) == (400, "MALFORMED_JSON")

    def test_json_that_two_readers_read_differently(self, alice: As) -> None:
        for body, words in (
            ('{"workspace_id": 1, "workspace_id": 2}', "a name twice"),
            ('{"workspace_id": 1, "body": {"a": 1, "a": 1}}', "a name twice"),
            ('{"workspace_id": 1e4}', "plain digits"),
            ('{"workspace_id": NaN}', "plain digits"),
            ('{"workspace_id": 1}'.encode("utf-16"), "UTF-8"),
        ):
            headers = alice.headers | JSON
            answer = alice.http.post("/api/v1/set-default-workspace", content=body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (400, "MALFORMED_JSON")
            assert words in answer.json()["detail"]

    def test_json_of_another_shape(self, world: World) -> None:
        wrong, lone = '{"email": 1, "password": "x"}', '{"email": "a@b", "password": "\\ud800"}'
        for body in ("null", "[]", "1", wrong, lone):
            answer = world.http.post("/auth/login", content=body, headers=JSON)
            assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION")
            assert answer.json()["errors"]

    def test_text_that_no_database_can_store(self, alice: As) -> None:
        """P50."""
        for label in ("\\u0000", "a\\ud800", "\\udfffb"):
            body = '{"network": "testnet", "label": "' + label + '"}'
            answer = alice.http.post("/api/v1/register-key", content=body, headers=alice.headers | JSON)
            assert answer.status_code == 422
            assert "U+0000" in answer.json()["detail"]

    def test_json_that_a_foreign_page_could_send_without_asking(self, world: World) -> None:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for headers in ({}, {"Content-Type": "text/plain"}, form):
            body = b'{"email": "a@b", "password": "x"}'
            answer = world.http.post("/auth/login", content=body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION")
            assert "add Content-Type: application/json" in answer.json()["detail"]

    def test_do_not_repeat_a_password(self, world: World) -> None:
        """P49."""
        secret = "a secret that is far too long " * 20
        answer = world.http.post("/auth/login", json={"email": "no address", "password": secret})
        assert answer.status_code == 422
        assert {error["pointer"] for error in answer.json()["errors"]} == {"/email", "/password"}
        assert "secret" not in answer.text

    def test_our_own_failure_gives_a_trace_id_and_nothing_else(
        self, world: World, alice: As, monkeypatch, capsys
    ) -> None:
        """P49."""

        def fail(*_args: object) -> None:
            raise RuntimeError("the internals")

        monkeypatch.setattr(users, "user_record", fail)
        answer = alice.get("/api/v1/get-user-info")
        assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL")
        assert "internals" not in answer.text
        logged = capsys.readouterr().out
        assert "internals" in logged
        assert answer.json()["trace_id"] in logged

    def test_ids_are_numbers_in_bounds(self, alice: As) -> None:
        """P21, P50."""
        for value in ("0", "-1", "1.5", "1e3", "NaN", str(2**63), "1 OR 1=1", "'", "../1", "١x"):
            answer = alice.get("/api/v1/get-users-from-workspace", workspace_id=value)
            assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/workspace_id")


class TestBounds:
    def test_a_body_that_announces_too_much_is_not_read(self, world: World) -> None:
        answer = world.http.post("/auth/login", content=b"x" * (MAX_BODY_BYTES + 1))
        assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")
        assert answer.headers["Connection"] == "close"

    def test_a_length_that_is_no_number_of_bytes_is_too_large(self, world: World) -> None:
        """P50: Python itself refuses to read 4,301 digits."""
        for length in ("9" * 25, "9" * 5000):
            answer = world.http.post("/auth/login", content=b"{}", headers={"Content-Length": length})
            assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")

    def test_a_body_that_does_not_announce_itself_is_counted(self, world: World) -> None:
        def pieces():
            for _ in range(4):
                yield b"x" * (MAX_BODY_BYTES // 3)

        answer = world.http.post("/auth/login", content=pieces(), headers=JSON)
        assert "content-length" not in answer.request.headers
        assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")

    def test_the_largest_psbt_is_not_too_large(self, alice: As) -> None:
        answer = alice.post("/api/v1/sign-psbt", {"psbt_base64": "x" * (MAX_PSBT_BODY_BYTES - 1000)})
        assert answer.status_code == 422

    def test_only_a_psbt_may_be_that_large(self, world: World) -> None:
        """P10: a body is parsed on the event loop; megabytes of it would block every request."""
        paths = {endpoint.path for endpoint in CALLS if endpoint.method == "POST" and endpoint.shape}
        answers = {
            path: world.http.post(path, content=b"x" * (MAX_BODY_BYTES + 1)).status_code for path in paths
        }
        assert {path for path, status in answers.items() if status != 413} == {"/api/v1/sign-psbt"}

    def test_a_request_whose_end_is_said_twice_ends_its_connection(self, world: World) -> None:
        """RFC 9112, section 6.1."""
        both = JSON | {"Content-Length": "2", "Transfer-Encoding": "chunked"}
        assert world.http.post("/auth/login", content=b"{}", headers=both).headers["Connection"] == "close"
        assert "Connection" not in world.http.post("/auth/login", content=b"{}", headers=JSON).headers


class TestTrace:
    def test_is_our_own_and_new_for_each_request(self, world: World) -> None:
        """P50: a caller's header does not reach log or audit."""
        answers = [world.http.get("/health", headers={"X-Trace-Id": "forged\tid"}) for _ in range(2)]
        ids = [answer.headers["X-Trace-Id"] for answer in answers]
        assert ids[0] != ids[1]
        assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", one) for one in ids)

    def test_the_log_names_the_path_without_its_query(self, world: World, capsys) -> None:
        """P49, P50."""
        answer = world.http.get("/no%0Asuch?token=secret")
        logged = capsys.readouterr().out
        assert answer.headers["X-Trace-Id"] in logged
        assert "secret" not in logged
        assert len(logged.splitlines()) == 1

    def test_answers_are_not_kept_by_caches(self, alice: As) -> None:
        answer = alice.get("/api/v1/get-user-info")
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


class TestRepeatedRequests:
    @pytest.fixture
    def offer(self, monkeypatch: pytest.MonkeyPatch) -> dict:
        monkeypatch.setattr("custody.server.keys.calls._check_possession", lambda *_proof: None)
        return key_offer(seed(1))

    def send(self, user: As, offer: dict, key: str = "k-1"):
        return user.post("/api/v1/register-key", offer, **{"Idempotency-Key": key})

    def test_get_the_stored_answer(self, alice: As, offer: dict, world: World) -> None:
        first = self.send(alice, offer)
        world.clock.advance(minutes=1)
        again = self.send(alice, {**offer})
        assert first.content == again.content
        assert len(alice.get("/api/v1/keys").json()) == 1
        assert world.audit_actions().count("KEY_REGISTERED") == 1

    def test_at_the_same_time_are_told_to_wait(self, alice: As, offer: dict, world: World) -> None:
        """P41: the first one hangs at the database's lock; its twin does not queue behind it."""
        with ThreadPoolExecutor() as pool:
            with world.platform.services.store.write():
                first = pool.submit(self.send, alice, offer)
                guard = world.platform.services.idempotency
                while not guard._in_flight:
                    threading.Event().wait(0.001)
                twin = self.send(alice, offer)
                assert (twin.status_code, twin.json()["code"]) == (409, "IDEMPOTENCY_IN_PROGRESS")
            assert first.result().status_code == 200
        assert self.send(alice, offer).content == first.result().content

    def test_that_failed_may_be_repeated(self, alice: As, offer: dict) -> None:
        wrong = {**offer, "derivation_base_path": "m/48h/0h/0h/2h"}
        assert self.send(alice, wrong).status_code == 422
        assert self.send(alice, offer).status_code == 200

    def test_do_not_go_around_a_permission_that_was_taken_away(self, alice: As, world: World) -> None:
        """P23."""
        body = {"workspace_id": 1, "org_id": 1, "name": "Second", "network": "testnet"}
        act = partial(alice.post, "/api/v1/create-workspace", body, **{"Idempotency-Key": "k"})
        assert act().status_code == 200
        with world.platform.services.store.write() as db:
            db.get_one(MembershipRow, 1).role_id = 2
        assert act().status_code == 403

    def test_are_forgotten_after_a_week(self, alice: As, offer: dict, world: World) -> None:
        self.send(alice, offer)
        world.clock.advance(days=7)
        alice = world.as_user(ALICE)
        assert self.send(alice, {**offer, "label": "changed"}).status_code == 200

    def test_a_key_has_a_shape(self, alice: As, offer: dict) -> None:
        for key in ("", "x" * 201, "two words", "tab\t"):
            assert self.send(alice, offer, key).status_code == 422
        keys = [("Idempotency-Key", "one"), ("Idempotency-Key", "two"), *alice.headers.items()]
        assert alice.http.post("/api/v1/register-key", json=offer, headers=keys).status_code == 422
