"""What every endpoint has in common: problems, bounds, trace ids, repeated requests, readiness."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from custody.schemas.errors import ErrorCode, Problem
from custody.server.domain import errors
from custody.server.web.asgi import MAX_BODY_BYTES, MAX_PSBT_BODY_BYTES
from custody.server.web.endpoint import Auth, Unit
from custody.server.web.problems import STATUS
from custody.server.web.routes import ENDPOINTS
from tests.support.platform import As, World, key_offer, register_key, seed

ALICE = "alice@example.org"


class TestProblems:
    def test_every_error_of_ours_has_a_status(self) -> None:
        leaves = {
            leaf for leaf in vars(errors).values()
            if isinstance(leaf, type) and issubclass(leaf, errors.CustodyError)
            and leaf is not errors.CustodyError
        }  # fmt: skip
        assert len(leaves) > 20
        assert {leaf.code for leaf in leaves} <= set(STATUS)
        assert all(leaf.hint for leaf in leaves)

    def test_every_code_has_a_status(self) -> None:
        assert set(STATUS) == set(ErrorCode)

    @pytest.mark.parametrize(
        ("method", "path", "status", "code"),
        [
            ("GET", "/api/v1/no-such-thing", 404, "NOT_FOUND"),
            ("GET", "/auth/login", 405, "METHOD_NOT_ALLOWED"),
            ("POST", "/auth/login/", 404, "NOT_FOUND"),
            ("GET", "/api/v1/get-user-info", 401, "UNAUTHENTICATED"),
            ("GET", "/docs", 404, "NOT_FOUND"),
        ],
    )
    def test_have_one_shape(self, world: World, method: str, path: str, status: int, code: str) -> None:
        answer = world.http.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        problem = Problem.model_validate_json(answer.content)
        assert (problem.success, problem.status, problem.code, problem.instance) == (
            False,
            status,
            code,
            path,
        )
        assert problem.trace_id == answer.headers["X-Trace-Id"]

    @pytest.mark.parametrize(
        "body",
        [b"{", b"\xff\xfe", b"[" * 100_000, b'{"email": ' + b"9" * 10_000 + b"}", b'{"a": "\\ud800"}x'],
    )
    def test_a_body_that_is_not_json(self, world: World, body: bytes) -> None:
        answer = world.http.post("/auth/login", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400
        assert answer.json()["code"] == "MALFORMED_JSON"

    @pytest.mark.parametrize(
        "body",
        ["null", "[]", "1", '{"email": 1, "password": "x"}', '{"email": "a@b", "password": "\\ud800"}'],
    )
    def test_json_of_another_shape(self, world: World, body: str) -> None:
        answer = world.http.post("/auth/login", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422
        assert answer.json()["code"] == "VALIDATION"
        assert answer.json()["errors"]

    @pytest.mark.parametrize("label", ["\\u0000", "a\\ud800", "\\udfffb"])
    def test_text_that_no_database_can_store(self, alice: As, label: str) -> None:
        """P50."""
        body = '{"network": "testnet", "label": "' + label + '"}'
        headers = {**alice.headers, "Content-Type": "application/json"}
        answer = alice.http.post("/api/v1/register-key", content=body, headers=headers)
        assert answer.status_code == 422
        assert "U+0000" in answer.json()["detail"]

    @pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
    def test_json_that_a_foreign_page_could_send_without_asking(self, world: World, kind: str | None) -> None:
        headers = {} if kind is None else {"Content-Type": kind}
        body = b'{"email": "a@b", "password": "x"}'
        assert world.http.post("/auth/login", content=body, headers=headers).status_code == 422

    def test_do_not_repeat_a_password(self, world: World) -> None:
        """P49."""
        secret = "a secret that is far too long " * 20
        answer = world.http.post("/auth/login", json={"email": "no address", "password": secret})
        assert answer.status_code == 422
        assert {error["pointer"] for error in answer.json()["errors"]} == {"/email", "/password"}
        assert "secret" not in answer.text

    def test_who_is_not_signed_in_learns_nothing_of_the_shape(self, world: World) -> None:
        assert world.http.post("/api/v1/register-key", json={}).status_code == 401

    def test_our_own_failure_gives_a_trace_id_and_nothing_else(
        self, world: World, alice: As, monkeypatch, capsys
    ) -> None:
        """P49."""

        def fail(*_args: object) -> None:
            raise RuntimeError("the internals")

        monkeypatch.setattr(world.platform.services.people, "user_info", fail)
        answer = alice.get("/api/v1/get-user-info")
        assert answer.status_code == 500
        assert answer.json()["code"] == "INTERNAL"
        assert "internals" not in answer.text
        logged = capsys.readouterr().out
        assert "internals" in logged
        assert answer.json()["trace_id"] in logged

    def test_unknown_query_parameters_are_named(self, alice: As) -> None:
        answer = alice.get("/api/v1/signing-profile-address", network="testnet", workspace=1)
        assert answer.json()["errors"][0]["pointer"] == "/workspace"

    @pytest.mark.parametrize(
        "value", ["0", "-1", "1.5", "1e3", "NaN", str(2**63), "1 OR 1=1", "'", "../1", "١x"]
    )
    def test_ids_are_numbers_in_bounds(self, alice: As, value: str) -> None:
        """P21, P50."""
        answer = alice.get("/api/v1/get-users-from-workspace", workspace_id=value)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/workspace_id"


class TestBounds:
    def test_a_body_that_announces_too_much_is_not_read(self, world: World) -> None:
        answer = world.http.post("/auth/login", content=b"x" * (MAX_BODY_BYTES + 1))
        assert answer.status_code == 413
        assert answer.json()["code"] == "BODY_TOO_LARGE"
        assert answer.headers["Connection"] == "close"

    @pytest.mark.parametrize("length", ["9" * 25, "9" * 5000])
    def test_a_length_that_is_no_number_of_bytes_is_too_large(self, world: World, length: str) -> None:
        """P50: Python itself refuses to read 4,301 digits."""
        answer = world.http.post("/auth/login", content=b"{}", headers={"Content-Length": length})
        assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")

    def test_a_body_that_does_not_announce_itself_is_counted(self, world: World) -> None:
        def pieces():
            for _ in range(4):
                yield b"x" * (MAX_BODY_BYTES // 3)

        answer = world.http.post(
            "/auth/login", content=pieces(), headers={"Content-Type": "application/json"}
        )
        assert "content-length" not in answer.request.headers
        assert answer.status_code == 413
        assert answer.json()["code"] == "BODY_TOO_LARGE"

    def test_the_largest_psbt_is_not_too_large(self, alice: As) -> None:
        answer = alice.post("/api/v1/sign-psbt", {"psbt_base64": "x" * (MAX_PSBT_BODY_BYTES - 1000)})
        assert answer.status_code == 422

    def test_only_a_psbt_may_be_that_large(self, world: World) -> None:
        """P10: a body is parsed on the event loop; megabytes of it would block every request."""
        paths = {endpoint.path for endpoint in ENDPOINTS if endpoint.method == "POST" and endpoint.takes}
        answers = {
            path: world.http.post(path, content=b"x" * (MAX_BODY_BYTES + 1)).status_code for path in paths
        }
        assert {path for path, status in answers.items() if status != 413} == {"/api/v1/sign-psbt"}


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
    def offer(self, world: World, alice: As) -> dict:
        world.platform.services.keys._requires_proof = False
        return key_offer(seed(1))

    def send(self, user: As, offer: dict, key: str = "k-1"):
        return user.post("/api/v1/register-key", offer, **{"Idempotency-Key": key})

    def test_get_the_stored_answer(self, alice: As, offer: dict, world: World) -> None:
        first = self.send(alice, offer)
        world.clock.advance(minutes=1)
        again = self.send(alice, {**offer})
        assert first.status_code == again.status_code == 200
        assert first.content == again.content
        assert len(alice.get("/api/v1/keys").json()) == 1
        assert world.audit_actions().count("KEY_REGISTERED") == 1

    def test_with_another_body_are_refused(self, alice: As, offer: dict) -> None:
        """P41."""
        self.send(alice, offer)
        again = self.send(alice, {**offer, "label": "changed"})
        assert again.status_code == 422
        assert again.json()["code"] == "IDEMPOTENCY_KEY_REUSED"

    def test_at_the_same_time_are_told_to_wait(self, alice: As, offer: dict, world: World) -> None:
        """P41: the first one hangs at the database's lock; its twin does not queue behind it."""
        with ThreadPoolExecutor() as pool:
            with world.platform.services.store.write():
                first = pool.submit(self.send, alice, offer)
                guard = world.platform.services.idempotency
                while not guard._in_flight:
                    threading.Event().wait(0.001)
                twin = self.send(alice, offer)
                assert twin.status_code == 409
                assert twin.json()["code"] == "IDEMPOTENCY_IN_PROGRESS"
            assert first.result().status_code == 200
        assert self.send(alice, offer).content == first.result().content

    def test_that_failed_may_be_repeated(self, alice: As, offer: dict) -> None:
        wrong = {**offer, "derivation_base_path": "m/48h/0h/0h/2h"}
        assert self.send(alice, wrong).status_code == 422
        assert self.send(alice, offer).status_code == 200

    def test_are_one_users_own(self, alice: As, offer: dict, world: World) -> None:
        world.member(1, "bob@example.org")
        bob = world.as_user("bob@example.org")
        assert self.send(alice, offer).json()["UserID"] == "1"
        assert self.send(bob, key_offer(seed(2))).json()["UserID"] == "2"

    def test_do_not_go_around_a_permission_that_was_taken_away(self, alice: As, world: World) -> None:
        """P23."""
        from custody.server.store.models import Membership

        world.member(1, "bob@example.org")
        body = {
            "workspace_id": 1,
            "user_uuid": 2,
            "role_uid": 2,
            "creator_workspace_id": 1,
            "creator_org_uuid": 1,
        }
        with world.platform.services.store.write() as db:
            db.delete(db.get_one(Membership, 2))
            db.add(
                Membership(
                    user_id=2, workspace_id=_another_workspace(db), role_id=3, created_at=world.clock()
                )
            )
        headers = {"Idempotency-Key": "k"}
        assert alice.post("/api/v1/add-workspace-to-user", body, **headers).status_code == 200
        with world.platform.services.store.write() as db:
            db.get_one(Membership, 1).role_id = 2
        assert alice.post("/api/v1/add-workspace-to-user", body, **headers).status_code == 403

    def test_are_forgotten_after_a_week(self, alice: As, offer: dict, world: World) -> None:
        self.send(alice, offer)
        world.clock.advance(days=7)
        alice = world.as_user(ALICE)
        assert self.send(alice, {**offer, "label": "changed"}).status_code == 200

    @pytest.mark.parametrize("key", ["", "x" * 201, "two words", "tab\t"])
    def test_a_key_has_a_shape(self, alice: As, offer: dict, key: str) -> None:
        assert self.send(alice, offer, key).status_code == 422


def _another_workspace(db) -> int:
    from custody.server.store.models import Role, Workspace
    from tests.support.platform import START

    db.add(Workspace(id=9, organisation_id=1, name="9", description="", network="testnet", chain="regtest",
                     created_at=START))  # fmt: skip
    db.flush()
    db.add(
        Role(
            id=3,
            workspace_id=9,
            name="Signer",
            description="",
            limit_sats=0,
            cycle_period="M",
            cycle_day=1,
            created_at=START,
            updated_at=START,
        )
    )
    db.flush()
    return 9


class TestTable:
    def test_every_row_names_a_path_once(self) -> None:
        rows = [(row.method, row.path) for row in ENDPOINTS]
        assert len(rows) == len(set(rows))

    def test_every_row_with_permissions_takes_the_workspace_it_checks(self) -> None:
        named = [row for row in ENDPOINTS if row.permissions and row.unit is not Unit.OWN]
        assert named
        assert all(row.workspace_field in row.takes.model_fields for row in named)

    def test_only_sign_in_is_open(self) -> None:
        assert {row.path for row in ENDPOINTS if row.needs is Auth.OPEN} == {
            "/auth/register", "/auth/login", "/auth/otp-validate", "/auth/refresh",
            "/auth/request-password-reset", "/auth/reset-password", "/webhooks/purchases",
        }  # fmt: skip

    def test_the_document_shows_every_row_with_its_permission(self, world: World) -> None:
        document = world.http.get("/openapi.json").json()
        for row in ENDPOINTS:
            operation = document["paths"][row.path][row.method.lower()]
            assert all(permission in operation["description"] for permission in row.permissions)
            assert list(operation["responses"]["default"]["content"]) == ["application/problem+json"]
            assert ("security" in operation) == (row.needs is not Auth.OPEN)

    def test_every_guarded_row_asks_for_a_token(self, world: World) -> None:
        for row in ENDPOINTS:
            if row.needs is not Auth.OPEN:
                assert world.http.request(row.method, row.path).status_code == 401, row.path


def test_a_registered_key_outlives_the_process(tmp_path, database) -> None:
    from tests.support.platform import open_world

    with open_world(tmp_path, database_url=database) as world:
        world.organisation("Acme", ALICE)
        key = register_key(world.as_user(ALICE), seed(1)).json()
    with open_world(tmp_path, database_url=database) as world:
        assert world.as_user(ALICE).get("/api/v1/keys").json() == [key]
