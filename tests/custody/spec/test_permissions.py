"""Every row of the table that asks for a permission, against a running platform: P23, P24, P25."""

import json
import re
from typing import Any

import httpx
import pytest

from custody.schemas.call import Auth, Call, PermissionName, Way
from custody.schemas.calls import CALLS
from custody.server.rules.roles import EVERY_PERMISSION
from tests.custody.spec.conformance import Comparison
from tests.custody.spec.page import PAGE, render
from tests.custody.spec.reading import Specification, conditions
from tests.custody.spec.staging import Stage
from tests.support.platform import As, key_offer, seed

# Of a workspace: the rest are one's own things, and sign-in.
ROWS = tuple(row for row in CALLS if not isinstance(row.needs, Auth))
# What changes a workspace and never needs a second person: all else does (P56).
ALONE = {
    # What a vault's signers decide, and what stops something.
    "create-psbt", "preview-psbt", "cancel-psbt", "sign-psbt", "forward-to-vault", "preview-forward",
    "create-proof", "create-token", "call-contract", "preview-call", "contract-calls/resubmit",
    "add-to-contract-whitelist", "remove-from-contract-whitelist", "create_wallet", "freeze-vault",
    "unfreeze-vault", "sweep-vault", "set-coin-aside", "release-coin",
    # People and programs: fewer of them, one's own, and secrets of what is there.
    "leave-workspace", "set-default-workspace", "revoke-invite", "unlink-identity", "revoke-service-account",
    "issue-service-secret", "update-identity-provider-secret",
    "update-workspace", "redeliver-webhook", "test-webhook",
    "request-change", "confirm-change", "decline-change",
}  # fmt: skip
# The handler asks for all seven permissions.
OWNERS = {
    "update-second-person-rule", "update-identity-provider", "update-identity-provider-secret",
    "remove-identity-provider",
}  # fmt: skip
PROGRAMS = {row.path for row in CALLS if Way.PROGRAM in row.open_to}


def test_p56_every_write_needs_a_second_person_or_is_decided_not_to() -> None:
    alone = {row.path for row in ROWS if row.is_change and not row.second_person}
    assert alone == {f"/api/v1/{name}" for name in ALONE}


ASKED = [row for row in CALLS if row.needs is not Auth.OPEN]
DENIED, UNKNOWN, UNAUTHENTICATED = (403, "PERMISSION_DENIED"), (404, "NOT_FOUND"), (401, "UNAUTHENTICATED")


def told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_each_permission_alone_lets_in(row: Call[Any, Any], stage: Stage) -> None:
    for permission in sorted(row.permissions) or [None]:
        alone = frozenset({permission} if permission else ())
        stage.gives(EVERY_PERMISSION if row.path.removeprefix("/api/v1/") in OWNERS else alone)
        # The handler may refuse what was asked; that the shape was right, the next test shows.
        answer = stage.asks(stage.tester, row, permission or PermissionName.VIEW_LOGS)
        assert answer.status_code not in {401, 429, 500, 503}, answer.text
        assert "PERMISSION_DENIED" not in answer.text, answer.text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_p24_p25_p67_all_others_are_refused(row: Call[Any, Any], stage: Stage) -> None:
    """Who has all the other permissions; P25: every one in another workspace; P24: another tenant finds
    nothing; P67: nor a program beyond its workspace; who has no token is asked no further.
    """
    known = stage.known()
    own = known[row.workspace_field]

    def refused(user: As, **others: object) -> tuple[int, str]:
        return told(stage.asks_with(known, user, row, **others))

    if row.permissions:
        stage.gives(EVERY_PERMISSION - row.permissions)
        assert refused(stage.tester) == DENIED, "all the other permissions"
    assert refused(stage.colleague) == DENIED, "another workspace"
    here = stage.asks_with(known, stage.stranger, row)
    assert told(here) == UNKNOWN, "another tenant"
    # The same text as for a workspace that does not exist.
    nowhere = stage.asks_with(known, stage.stranger, row, **{row.workspace_field: type(own)(999)})
    assert nowhere.json()["detail"] == here.json()["detail"]
    assert refused(As(stage.desk.world.http, {})) == UNAUTHENTICATED, "no token"
    if row.path in PROGRAMS:
        assert refused(stage.program, **{row.workspace_field: type(own)(2)}) == UNKNOWN, "a program"


@pytest.mark.parametrize("row", ASKED, ids=lambda row: row.path)
def test_p67_a_program_calls_what_is_for_programs_and_nothing_else(row: Call[Any, Any], stage: Stage) -> None:
    """Signing, people, roles, policy, sign-in and other programs are a person's."""
    if row.path in PROGRAMS:
        answer = stage.asks(stage.program, row, code="000000", **key_offer(seed(98)))
        assert answer.status_code not in {401, 403, 429, 500, 503}, answer.text
    else:
        answer = stage.asks_with(stage.unused, stage.program, row, code="000000", **key_offer(seed(98)))
        assert told(answer) == DENIED, answer.text


def test_every_endpoint_is_exact(comparison: Comparison) -> None:
    """Asked with what the specification names, and with nothing else."""
    assert len(comparison.rows) == 42
    assert {row.path: row.wrong for row in comparison.rows if row.wrong} == {}


def test_every_condition_came_to_be(comparison: Comparison, specification: Specification) -> None:
    told = conditions(specification.text)
    assert len(told) == 8
    assert comparison.day.told.keys() == told.keys()


def test_the_page_is_what_was_found(comparison: Comparison) -> None:
    assert PAGE.read_text() == render(comparison), "python -m tests.custody.spec writes it anew"


def test_every_bound_of_an_integer_is_written_as_one(comparison: Comparison) -> None:
    """9.223372036854776e+18 is more than the largest int64, and a generated client would take it."""
    text = json.dumps(comparison.document.raw)
    assert '"maximum": 9223372036854775807' in text
    assert '"minimum": -9223372036854775808' in text
    assert not re.findall(r'"(?:exclusive)?[mM](?:ini|axi)mum": -?[0-9.]+(?:e|\.0\b)', text)
