"""Every row of the table that asks for a permission, against a running platform: P23, P24, P25."""

import pytest

from custody.schemas.users import PermissionName
from custody.server.domain.roles import EVERY_PERMISSION
from custody.server.web.changes import _by_path
from custody.server.web.endpoint import Auth, Endpoint
from custody.server.web.routes import ENDPOINTS
from tests.custody.spec import contract
from tests.custody.spec.reading import Specification
from tests.custody.spec.staging import Stage
from tests.support.custody import ok
from tests.support.platform import As, key_offer, register_key, seed

# Of a workspace: the rest are one's own things, and sign-in.
ROWS = tuple(row for row in ENDPOINTS if not isinstance(row.needs, Auth))


def test_the_table_and_the_specification_agree(specification: Specification) -> None:
    told = {path: call.permissions for path, call in specification.calls.items() if call.permissions}
    table = {row.path: {name.value for name in row.permissions} for row in ENDPOINTS if row.path in told}
    assert table == told


def test_every_row_is_as_it_was_decided(specification: Specification) -> None:
    """Whatever loses a permission in the table loses it here too, on purpose, or fails."""
    told = {path for path, call in specification.calls.items() if call.permissions}
    table = {f"{row.method} {row.path}": _needs(row) for row in ENDPOINTS if row.path not in told}
    decided = {call: needs for needs, calls in contract.WITHOUT_PERMISSION.items() for call in calls}
    assert table == {**contract.PERMISSIONS, **decided}


def test_p56_every_write_needs_a_second_person_or_is_decided_not_to() -> None:
    """``needs_second_person`` in the row; what one person does alone stands in ``contract.ALONE``."""
    needing = {row.path for row in ENDPOINTS if row.needs_second_person}
    alone = {row.path for row in ROWS if row.is_write} - needing
    assert alone == {f"/api/v1/{name}" for name in contract.ALONE}
    assert needing == set(_by_path()), "changes.py does not read the rows of that module"


def _needs(row: Endpoint) -> set[str] | str:
    if row.needs is Auth.OPEN:
        return contract.OPEN
    if row.needs is Auth.SIGNED_IN:
        return contract.SIGNED_IN
    return {name.value for name in row.permissions} or contract.ANY_MEMBER


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_each_permission_alone_lets_in(row: Endpoint, stage: Stage) -> None:
    for permission in sorted(row.permissions) or [None]:
        alone = frozenset({permission} if permission else ())
        stage.gives(EVERY_PERMISSION if row.path in contract.OWNERS else alone)
        # The handler may refuse what was asked; that the shape was right, the next test shows.
        answer = stage.asks(stage.tester, row, permission or PermissionName.VIEW_LOGS)
        assert answer.status_code not in {401, 429, 500, 503}, answer.text
        assert "PERMISSION_DENIED" not in answer.text, answer.text


@pytest.mark.parametrize("row", [row for row in ROWS if row.permissions], ids=lambda row: row.path)
def test_all_the_others_together_do_not(row: Endpoint, stage: Stage) -> None:
    stage.gives(EVERY_PERMISSION - row.permissions)
    answer = stage.asks(stage.tester, row)
    assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED"), answer.text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_every_permission_in_another_workspace_does_not(row: Endpoint, stage: Stage) -> None:
    """P25."""
    answer = stage.asks(stage.colleague, row)
    assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED"), answer.text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_another_tenant_finds_nothing(row: Endpoint, stage: Stage) -> None:
    """P24: the same text as for a workspace that does not exist."""
    answer = stage.asks(stage.stranger, row)
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND"), answer.text
    nowhere = type(stage.known()[row.workspace_field])(999)
    assert (
        stage.asks(stage.stranger, row, **{row.workspace_field: nowhere}).json()["detail"]
        == answer.json()["detail"]
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_without_a_token_nobody_is_asked_further(row: Endpoint, stage: Stage) -> None:
    answer = stage.asks(As(stage.desk.world.http, {}), row)
    assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")


PROGRAMS = {f"/api/v1/{name}" for name in contract.PROGRAMS}
ASKED = [row for row in ENDPOINTS if row.needs is not Auth.OPEN]


@pytest.mark.parametrize("row", ASKED, ids=lambda row: row.path)
def test_p67_a_program_calls_what_is_for_programs_and_nothing_else(row: Endpoint, stage: Stage) -> None:
    """Signing, people, roles, policy, sign-in and other programs are a person's."""
    answer = stage.asks(stage.program, row, code="000000", **key_offer(seed(98)))
    if row.path in PROGRAMS:
        assert answer.status_code not in {401, 403, 429, 500, 503}, answer.text
    else:
        assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED"), answer.text


@pytest.mark.parametrize("row", [row for row in ROWS if row.path in PROGRAMS])
def test_p67_a_program_finds_nothing_in_another_workspace(row: Endpoint, stage: Stage) -> None:
    second = type(stage.known()[row.workspace_field])(2)
    answer = stage.asks(stage.program, row, **{row.workspace_field: second})
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND"), answer.text


def test_who_may_only_initiate_payments_can_forward(stage: Stage) -> None:
    """From the list of vaults to the proposal's record, by the calls that the specification names."""
    stage.gives(frozenset({PermissionName.PAYMENT_INIT}))
    desk, tester, device = stage.desk, stage.tester, seed(99)
    ok(register_key(tester, device))
    address = ok(tester.get("/api/v1/signing-profile-address", network="testnet"))["wallet_address"]
    desk.deposit(100_000, to=address)
    vault, *_ = ok(tester.get("/api/v1/list-wallets", workspace_id=1))
    body = {"workspace_id": 1, "vault_id": vault["id"], "network": "testnet", "fee_sats": 1_000}
    made = ok(tester.post("/api/v1/forward-to-vault", body | {"sweep": True, "wallet_address": address}))
    assert ok(tester.get("/api/v1/psbt", psbt_id=made["psbt_id"]))["amounts_sats"] == [99_000]
    assert ok(tester.get("/api/v1/contract-calls", workspace_id=1, vault_id=vault["id"])) == []


def test_a_permission_that_was_taken_away_counts_at_once(stage: Stage) -> None:
    """P23: the token is the same."""
    row = next(row for row in ROWS if row.path == "/api/v1/list-wallets")
    stage.gives(EVERY_PERMISSION)
    assert stage.asks(stage.tester, row).status_code == 200
    stage.gives(frozenset())
    assert stage.asks(stage.tester, row).status_code == 403
