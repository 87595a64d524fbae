"""What the console hides from a person and refuses them: each permission alone, over every row of the
console's own table.
"""

import pytest

from custody.schemas.call import PermissionName
from custody.server.console.application import ROOT, ROWS
from custody.server.console.table import Row
from tests.support.console import forms_of
from tests.support.console_rows import calls_of, path_of, row_of, walk
from tests.support.examples import drawn
from tests.support.platform import PASSWORD
from tests.support.staff import add_someone

FORMS = [row for row in ROWS if row.method == "POST" and row.path.startswith("/w/")]
EACH_ALONE: list[frozenset[PermissionName]] = [
    frozenset(), *(frozenset({each}) for each in drawn(list(PermissionName), 7, of="console"))
]  # fmt: skip
# What a form sends that is filled in by anybody.
FILLED = {
    "name": "X", "new_name": "X", "description": "X", "role_id": "1", "user_uuid": "1", "network": "testnet",
    "cycle_period": "M", "cycle_day": "1", "transaction_limit": "1", "new_transaction_limit": "1",
    "rule_name": "VIEW_LOGS", "permissions": "VIEW_LOGS", "rights": "VIEW_LOGS", "networks": "192.0.2.1",
    "expires_on": "2026-06-30", "overlap_hours": "1", "url": "https://hooks.example.org", "kinds": "*",
    "every_kind": "yes", "invited_email": "x@example.org", "cooling_off_hours": "0",
    "confirming_role_id": "1",
    "is_on": "yes", "confirmed": "yes", "step_password": PASSWORD,
}  # fmt: skip


def may(row: Row, held: frozenset[PermissionName]) -> bool:
    """Whether the API takes one of the row's calls from such a member. A call without permissions of its own
    is for each member, or for whom its handler finds.
    """
    calls = calls_of(row)
    return not calls or any(not call.permissions or call.permissions & held for call in calls)


@pytest.fixture(params=EACH_ALONE, ids=lambda held: "".join(held) or "none")
def held(request):
    return request.param


@pytest.fixture
def person(desk, browse, held):
    add_someone(desk.world, "someone", held, desk.workspace_id)
    return browse("someone")


def test_p84_no_page_shows_what_would_be_refused(desk, person, held):
    wrong, here = [], f"{ROOT}/w/{desk.workspace_id}/"
    for path in walk(person, here):
        if person.status == 403:
            wrong.append(f"{path} is linked, and refused")
        for form in forms_of(person.html):
            row = row_of("POST", form.action) if form.method == "post" else None
            if row is not None and not may(row, held):
                wrong.append(f"{path} shows the form of {row.path}")
    assert wrong == []


def test_p84_each_form_is_refused_without_its_permission(desk, person, held):
    chain = f"workspace:{desk.workspace_id}"
    person.open("/console/account")
    before, wrong = desk.world.audit_actions(chain), []
    for row in FORMS:
        if may(row, held):
            continue
        answer = person.post(path_of(row, workspace_id=desk.workspace_id), **FILLED)
        if not 400 <= answer.status_code < 500:
            wrong.append(f"{row.path} answers {answer.status_code}")
    assert wrong == []
    assert set(desk.world.audit_actions(chain)[len(before) :]) <= {"PERMISSION_DENIED"}


def test_every_form_makes_a_call_of_the_api():
    """So that the two tests above judge it."""
    without = [row.path for row in FORMS if not calls_of(row)]
    assert without == ["/w/{workspace_id:int}/audit/export"]
