"""P24: every id that a call takes, of another tenant's record, is answered as an id that never was."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from custody.schemas.call import Call
from tests.custody.spec.samples import sample, send
from tests.custody.spec.staging import Stage
from tests.custody.spec.test_permissions import ROWS
from tests.support.custody import SHOP, ok
from tests.support.platform import register_key, seed
from tests.support.service_accounts import made
from tests.support.staff import invite, roles
from tests.support.token_desk import TokenDesk

CALLS = "/api/v1/"
NEVER = {int: 999, str: "0" * 32}
# Fields that name a record. Of which workspace a call is, ``test_permissions.py`` asks.
NAMES = (
    "user_uuid", "uuid", "role_uid", "role_id", "confirming_role_id", "vault_id", "wallet_id", "psbt_id",
    "replaces_psbt_id", "cancels_psbt_id", "contract_uid", "call_uid", "webhook_id", "delivery_id", "uid",
    "invite_id", "service_account_id", "change_id", "creator_workspace_id", "creator_org_uuid", "org_id",
    "org_uid",
)  # fmt: skip
PAID = ("recipients", "amounts_sats")
CASES = [
    pytest.param(row, name, id=f"{row.path.removeprefix(CALLS)}-{name}")
    for row in ROWS
    for name in (row.shape.model_fields if row.shape else ())
    if name in NAMES and name != row.workspace_field
]


@dataclass
class Tenants:
    """``theirs``: one record of each kind, of the stage's organisation; ``own``: what the stranger has, who
    may do everything in a workspace of another organisation.
    """

    stage: Stage
    theirs: Mapping[str, Any]
    own: Mapping[str, Any]

    def answer(self, row: Call[Any, Any], name: str, value: object) -> tuple[int, str]:
        """Without what differs in every answer."""
        body = {**sample(row, {**self.theirs, **self.own}), name: value}
        if name.endswith("s_psbt_id"):
            # Another version pays nobody new.
            body = {field: given for field, given in body.items() if field not in PAID}
        answer = send(self.stage.stranger, row, body)
        if answer.status_code == 200:
            return 200, answer.text
        return answer.status_code, f"{answer.json()['code']}: {answer.json()['detail']}"


def theirs(stage: Stage) -> dict[str, Any]:
    desk, here = stage.desk, {"workspace_id": 1}

    def does(call: str, **body: object) -> Any:
        return ok(desk.tell(call, **body))

    desk.deposit(1_000_000, 1_000_000)
    tokens = TokenDesk(desk)
    tokens.fund(100_000, 100_000)
    token = tokens.started()
    tokens.fund(100_000)
    (role, *_) = roles(desk.admin).values()
    hook = does("create-webhook", url="https://hooks.example.org/x", kinds=["*"])["webhook_id"]
    call_uid = ok(tokens.call(token, "pause"))["call_uid"]
    psbt_id = ok(desk.propose(10_000))["psbt_id"]
    desk.world.member(1, "dora@example.org", "Administrator")
    found = {
        "invite_id": ok(invite(desk.admin, "x@example.org"))["invite_id"],
        "webhook_id": hook,
        "delivery_id": does("test-webhook", webhook_id=hook)["delivery_id"],
        "uid": desk.enter("Shop", SHOP)["uid"],
        "service_account_id": made(desk.world, desk.admin, name="Reader", rights=["VIEW_LOGS"])[0],
        "contract_uid": token,
        "call_uid": call_uid,
        "org_uid": "1",
    }
    found |= dict.fromkeys(("creator_workspace_id", "creator_org_uuid", "org_id"), 1)
    does("update-second-person-rule", is_on=True, confirming_role_id=1, cooling_off_hours=0)
    raised = {"transaction_limit": "20", "cycle_period": "W", "cycle_day": 1}
    body = {**here, "vault_id": desk.vault["id"], **raised}
    found["change_id"] = does("request-change", path=f"{CALLS}update-vault", body=body)["change_id"]
    found |= dict.fromkeys(("user_uuid", "uuid"), desk.user_ids["alice"])
    found |= dict.fromkeys(("role_uid", "role_id", "confirming_role_id"), role["RoleId"])
    found |= dict.fromkeys(("vault_id", "wallet_id"), desk.vault["id"])
    return found | dict.fromkeys(("psbt_id", "replaces_psbt_id", "cancels_psbt_id"), psbt_id)


@pytest.fixture(scope="module")
def tenants(stage: Stage) -> Tenants:
    found, stranger, world = theirs(stage), stage.stranger, stage.desk.world
    placed = world.organisation("Rival", "mallory@example.com")
    stage.stranger = stranger = world.as_user("mallory@example.com")
    here = {"workspace_id": placed.workspace_id}
    (role, *_) = roles(stranger, placed.workspace_id).values()
    ok(register_key(stranger, seed(50)))
    vault = {"name": "Own", "network": "testnet", "m": 1, "signers": [placed.user_id]}
    limit = {"transaction_limit": "1", "cycle_period": "M", "cycle_day": 1}
    vault_id = ok(stranger.post(f"{CALLS}create_wallet", {**here, **vault, **limit}))["id"]
    (organisation,) = ok(stranger.get(f"{CALLS}get-user-info"))["OrganisationsInfo"]["Organisations"]
    own = dict.fromkeys(("workspace_id", "workspace_context", "creator_workspace_id"), placed.workspace_id)
    own |= dict.fromkeys(("org_id", "creator_org_uuid"), organisation["OrgID"])
    own |= {"workspace_uid": str(placed.workspace_id), "org_uid": str(organisation["OrgID"])}
    own |= dict.fromkeys(("user_uuid", "uuid"), placed.user_id) | {"signers": [placed.user_id]}
    own |= dict.fromkeys(("role_uid", "role_id", "confirming_role_id"), role["RoleId"])
    own |= dict.fromkeys(("vault_id", "wallet_id"), vault_id)
    others = {name: value for name, value in stage.known().items() if name not in NAMES}
    return Tenants(stage, found, {**others, **own, "is_on": True, "cooling_off_hours": 0})


@pytest.mark.parametrize(("row", "name"), CASES)
def test_p24_another_tenants_record_is_one_that_never_was(
    row: Call[Any, Any], name: str, tenants: Tenants
) -> None:
    known = tenants.theirs[name]
    never = "999" if name == "org_uid" else NEVER[type(known)]
    tenants.stage.desk.world.clock.advance(seconds=5)
    there, nowhere = (tenants.answer(row, name, value) for value in (known, never))
    assert there == nowhere
    # What a list is filtered by may be of nobody: it finds nothing. To replace a vault is first asked for.
    is_filter = (row.method, there[0]) == ("GET", 200)
    assert there[0] in {403, 404} or is_filter or "SECOND_PERSON_NEEDED" in there[1], there
