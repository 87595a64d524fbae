"""Every endpoint that creates something honours ``Idempotency-Key`` (P41)."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select, update

from custody.schemas import calls
from custody.schemas.call import Call
from custody.server.requests.idempotency import Scope
from custody.server.rules.roles import EVERY_PERMISSION
from custody.server.store.models import ContractRow, UserRow
from multisig import Network, encode_address
from tests.custody.spec.samples import sample
from tests.custody.spec.staging import TESTER, Stage
from tests.support.custody import ok, refused
from tests.support.platform import As, key_offer, register_key, seed
from tests.support.profiles import policy_of
from tests.support.token_desk import TokenDesk
from tests.support.wallets import foreign_script

ROWS = [pytest.param(row, id=row.path) for row in calls.CALLS if row.creates]

FORWARD = "/api/v1/forward-to-vault"
FORWARDER = seed(99)
CALLS = {
    "/api/v1/call-contract",
    "/api/v1/add-to-contract-whitelist",
    "/api/v1/remove-from-contract-whitelist",
}
OF_TOKENS = {"/api/v1/create-token", *CALLS}
HOOK, PROGRAM = "/api/v1/update-webhook", "/api/v1/issue-service-secret"
MADE_BY = {HOOK: "/api/v1/create-webhook", PROGRAM: "/api/v1/create-service-account"}


@pytest.fixture(scope="module")
def stage(stage: Stage) -> Iterator[Stage]:
    """The tester may do everything, the operator's things too, and the vault has coins."""
    stage.gives(EVERY_PERMISSION)
    stage.desk.deposit(1_000_000, 1_000_000, to=stage.desk.vault["receive_address"])
    with stage.desk.world.platform.services.store.write() as db:
        db.execute(update(UserRow).where(UserRow.email == TESTER).values(is_operator=True))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("custody.server.keys.calls._check_possession", lambda *_proof: None)
        yield stage


class Repeated:
    """One row, called with what makes it succeed. ``path`` has the record's number in it."""

    def __init__(self, row: Call[Any, Any], stage: Stage) -> None:
        self.row = row
        self.stage = stage
        numbers = dict.fromkeys(row.path_ids, 0)
        if row.path_ids:
            numbers = dict.fromkeys(row.path_ids, self._request())
        self.path = row.path.format(**numbers)
        if row.path == FORWARD:
            self._fill_profile()
        if row.path in OF_TOKENS:
            # Each begins with a coin of its own at the vault's address.
            self.tokens = TokenDesk(stage.desk)
            self.tokens.fund(50_000, 50_000)
        self.made: dict[str, Any] = {}
        if row.path in MADE_BY:
            making = next(each for each in calls.CALLS if each.path == MADE_BY[row.path])
            self.made = ok(stage.tester.post(making.path, sample(making, stage.known())))

    def body(self, number: int) -> dict[str, Any]:
        """Another one for each number."""
        if self.row.path in CALLS:
            return self._call(number)
        address = encode_address(foreign_script(f"{self.row.path} {number}"), Network.REGTEST)
        device = key_offer(seed(100 + number))
        body = sample(self.row, self.stage.known() | device | {"address": address, "recipients": [address]})
        return body | {
            "/api/v1/add-workspace-to-user": {
                "user_uuid": self.stage.colleague_id,
                "role_uid": 1 if number else 2,
            },
            "/api/v1/register-key": {"vault_accounts": device["vault_accounts"]},
            FORWARD: {"fee_sats": 1_000 + number},
            HOOK: {"webhook_id": self.made.get("webhook_id"), "rotate_secret": bool(number)},
            PROGRAM: {
                "service_account_id": self.made.get("service_account_id"),
                "overlap_hours": number,
            },
            "/api/v1/onboarding-requests/{uid}/review": {"review_note": f"note {number}"},
        }.get(self.row.path, {})

    def ask(self, key: str, body: dict[str, Any], user: As | None = None):
        return (user or self.stage.tester).post(self.path, body, **{"Idempotency-Key": key})

    def _call(self, number: int) -> dict[str, Any]:
        """Of a token that is there and started, with another address in the list for each number."""
        with self.stage.desk.world.platform.services.store.read() as db:
            known = db.scalars(select(ContractRow.uid).where(ContractRow.name == "Gold of the House")).first()
        uid = known or self.tokens.started()
        address = encode_address(foreign_script(f"{self.row.path} {number}"), Network.REGTEST)
        if self.row.path.endswith("remove-from-contract-whitelist"):
            self.tokens.done(uid, "add_to_whitelist", address)
            self.tokens.fund(50_000)
        body = {
            "contract_uid": uid,
            "wallet_id": self.stage.desk.vault["id"],
            "workspace_id": 1,
            "function_name": "add_to_whitelist",
            "args": [{"type": "str", "value": address}],
            "address": address,
        }
        return {name: value for name, value in body.items() if name in self.row.shape.model_fields}

    def _fill_profile(self) -> None:
        ok(register_key(self.stage.tester, FORWARDER, replace=True))
        self.stage.desk.deposit(100_000, to=policy_of(FORWARDER).address(0, 0))

    def _request(self) -> int:
        row = next(row for row in calls.CALLS if row.path == "/api/v1/onboarding-requests" and row.creates)
        return ok(self.stage.colleague.post(row.path, sample(row, self.stage.known())))["uid"]


@pytest.mark.parametrize("row", ROWS)
def test_p41_a_repeated_request_is_answered_and_another_one_refused(
    row: Call[Any, Any], stage: Stage
) -> None:
    """One that is worked on is not begun again; and a key is one person's own: a stranger never gets the
    answer that was stored for another user. An answer with a secret is not stored: its request is refused.
    """
    call = Repeated(row, stage)
    body = call.body(0)
    first = call.ask("key", body)
    ok(first)
    if first.json().get("secret"):
        refused(call.ask("key", body), 409, "STATE_CONFLICT")
    else:
        assert call.ask("key", body).content == first.content
    other = call.body(1)
    assert other != body
    refused(call.ask("key", other), 422, "IDEMPOTENCY_KEY_REUSED")
    scope = Scope(stage.tester_id, row.method, call.path, "held")
    with stage.desk.world.platform.services.idempotency.guard(scope):
        refused(call.ask("held", body), 409, "IDEMPOTENCY_IN_PROGRESS")
        answer = call.ask("held", body, stage.stranger)
    assert answer.json().get("code") not in {"IDEMPOTENCY_IN_PROGRESS", "IDEMPOTENCY_KEY_REUSED"}


def test_a_key_counts_for_one_path(stage: Stage) -> None:
    roles, book = (
        Repeated(next(row for row in calls.CALLS if row.path == path), stage)
        for path in ("/api/v1/create-role", "/api/v1/add-whitelist-address")
    )
    ok(roles.ask("shared", roles.body(4)))
    ok(book.ask("shared", book.body(4)))
