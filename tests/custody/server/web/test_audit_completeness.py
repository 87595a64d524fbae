"""Every call that changes something leaves its record, with the trace id of its answer.

The table of endpoints is walked: a new one that may write fails here by name until it has an example below,
or stands among the exempt with the reason. The examples run in order over one desk, so that a later one finds
what it needs.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from sqlalchemy import select, update

from custody.schemas.call import Call
from custody.schemas.calls import CALLS
from custody.schemas.logs import LogsPage
from custody.server import calls
from custody.server.audit.verification import read_through
from custody.server.console.audit import row_words
from custody.server.purchases import webhook_key
from custody.server.rules.audit import stored_facts
from custody.server.secrets import Purpose
from custody.server.store.models import AuditEventRow, IdentityLinkRow, UserRow, WebhookDeliveryRow
from tests.support.accounts import (
    NEW_PASSWORD,
    Phone,
    mailed_token,
    register,
    request_reset,
    sign_in,
    validate,
)
from tests.support.custody import SHOP, Desk, ok, open_desk
from tests.support.onboarding import REQUEST
from tests.support.platform import PASSWORD, As, World, key_offer, register_key, seed
from tests.support.profiles import forward, grant, pay_profile
from tests.support.purchases import deliver, transaction
from tests.support.service_accounts import create
from tests.support.token_desk import TokenDesk

EXEMPT: Final = {
    "POST /auth/refresh": (
        "renews what SIGNED_IN recorded; a token that was copied is recorded as REFRESH_TOKEN_REUSED"
    ),
    "POST /api/v1/key-challenge": (
        "a question that expires by itself; what it is asked for records KEY_REGISTERED"
    ),
}


def name_of(row: Call[Any, Any]) -> str:
    return f"{row.method} {row.path}"


# A call that is served in parts may write in one of them, though it is a GET.
MAY_WRITE: Final = tuple(name_of(row) for row in CALLS if row.writes or row in calls._IN_PARTS)


@dataclass
class Story:
    desk: Desk
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def world(self) -> World:
        return self.desk.world

    @property
    def admin(self) -> As:
        return self.desk.admin

    def here(self, path: str, **body: object) -> httpx.Response:
        return self.admin.post(f"/api/v1/{path}", {"workspace_id": self.desk.workspace_id, **body})

    def keep(self, name: str, answer: httpx.Response) -> httpx.Response:
        self.kept[name] = ok(answer)
        return answer


Example = Callable[[Story], httpx.Response]


def _listing(story: Story, path: str) -> httpx.Response:
    uid = story.kept["token"]["contract_uid"]
    return story.here(path, contract_uid=uid, wallet_id=story.desk.vault["id"], address=SHOP)


def auth_otp_validate(story: Story) -> httpx.Response:
    email = register(story.world, "eva@example.org")
    waiting = ok(story.world.login(email))
    story.world.deliver_mail()
    return validate(story.world, waiting["token_2fa"], story.world.mail.newest_code())


def auth_reset_password(story: Story) -> httpx.Response:
    body = {"token": mailed_token(story.world), "new_password": NEW_PASSWORD}
    return story.world.http.post("/auth/reset-password", json=body)


def auth_sessions_revoke(story: Story) -> httpx.Response:
    sign_in(story.world, "carol@example.org")
    return story.desk.signers["carol"].post("/auth/sessions/revoke", {"all_others": True})


def auth_change_password(story: Story) -> httpx.Response:
    body = {"password": PASSWORD, "new_password": NEW_PASSWORD}
    return story.desk.signers["carol"].post("/auth/change-password", body)


def auth_totp_confirm(story: Story) -> httpx.Response:
    phone = Phone(story.world, story.kept["totp"]["secret"])
    return story.desk.signers["bob"].post("/auth/totp/confirm", {"code": phone.code})


def create_role(story: Story) -> httpx.Response:
    limits = {"transaction_limit": "1", "cycle_period": "M", "cycle_day": 1}
    return story.keep("role", story.here("create-role", name="Clerk", **limits))


def update_role_policies(story: Story) -> httpx.Response:
    limits = {"new_transaction_limit": "2", "cycle_period": "W", "cycle_day": 1}
    return story.here("update-role-policies", role_id=story.kept["role"]["RoleId"], **limits)


def add_workspace_to_user(story: Story) -> httpx.Response:
    body = {"workspace_id": 2, "user_uuid": story.desk.user_ids["alice"],
            "role_uid": roles(story, 2)["Signer"], "creator_workspace_id": 1,
            "creator_org_uuid": 1}  # fmt: skip
    return story.admin.post("/api/v1/add-workspace-to-user", body)


def change_user_role(story: Story) -> httpx.Response:
    body = {"workspace_id": 2, "user_uuid": story.desk.user_ids["alice"]}
    return story.admin.post("/api/v1/change-user-role", {**body, "role_id": roles(story, 2)["Administrator"]})


def accept_invite(story: Story) -> httpx.Response:
    gina = sign_in(story.world, register(story.world, "gina@example.org")).user
    invited = ok(invite(story, "gina@example.org"))
    return gina.get("/api/v1/accept-invite", invite_id=invited["invite_id"], accept=True)


def remove_user_from_workspace(story: Story) -> httpx.Response:
    members = ok(story.admin.get("/api/v1/get-users-from-workspace", workspace_id=1))
    (gina,) = [each["UUID"] for each in members if each["Email"] == "gina@example.org"]
    return story.here("remove-user-from-workspace", user_uuid=gina)


def revoke_key(story: Story) -> httpx.Response:
    (key,) = ok(story.admin.get("/api/v1/keys"))
    return story.admin.post("/api/v1/revoke-key", {"key_id": key["ID"], "reason": "lost"})


def update_vault(story: Story) -> httpx.Response:
    limits = {"transaction_limit": "9", "cycle_period": "M", "cycle_day": 1}
    return story.here("update-vault", vault_id=story.desk.vault["id"], **limits)


def replace_vault(story: Story) -> httpx.Response:
    """The second vault, which a second manager confirms; then there is something to sweep."""
    for name, device in story.desk.devices.items():
        offered = key_offer(device, accounts=3)["vault_accounts"]
        ok(register_key(story.desk.signers[name], device, vault_accounts=offered))
    second = story.desk.wallets()[-1]
    story.desk.deposit(50_000, to=second["address"])
    story.kept["replaced"] = second["id"]
    body = {"workspace_id": 1, "vault_id": second["id"], "name": "Third"}
    asked = {"workspace_id": 1, "path": "/api/v1/replace-vault", "body": body}
    change = ok(story.admin.post("/api/v1/request-change", asked))
    story.world.member(1, "manager@example.org", "Administrator")
    confirmed = {"workspace_id": 1, "change_id": change["change_id"]}
    return story.world.as_user("manager@example.org").post("/api/v1/confirm-change", confirmed)


def unfreeze_vault(story: Story) -> httpx.Response:
    ok(story.here("unfreeze-vault", vault_id=story.desk.vault["id"]))
    body = {"workspace_id": 1, "vault_id": story.desk.vault["id"]}
    return story.desk.signers["carol"].post("/api/v1/unfreeze-vault", body)


def onboarding_requests_review(story: Story) -> httpx.Response:
    with story.world.platform.services.store.write() as db:
        db.execute(update(UserRow).where(UserRow.email == "admin@example.org").values(is_operator=True))
    path = f"/api/v1/onboarding-requests/{story.kept['request']['uid']}/review"
    return story.admin.post(path, {"decision": "reject"})


def create_psbt(story: Story) -> httpx.Response:
    story.desk.deposit(100_000, 100_000)
    return story.keep("proposal", story.desk.propose(20_000))


def create_proof(story: Story) -> httpx.Response:
    return story.here("create-proof", vault_id=story.desk.vault["id"], message="Asked for by the auditors")


def forward_to_vault(story: Story) -> httpx.Response:
    grant(story.desk, "Signer", "PAYMENT_INIT")
    pay_profile(story.desk, "alice", 100_000)
    return forward(story.desk, "alice", 20_000)


def create_token(story: Story) -> httpx.Response:
    tokens = TokenDesk(story.desk)
    tokens.fund(100_000, 100_000)
    return story.keep("token", tokens.create())


def call_contract(story: Story) -> httpx.Response:
    tokens, token = TokenDesk(story.desk), story.kept["token"]
    tokens.finish(token["psbt_id"])
    return story.keep("init", tokens.call(token["contract_uid"], "init"))


def add_to_contract_whitelist(story: Story) -> httpx.Response:
    TokenDesk(story.desk).finish(story.kept["init"]["psbt_id"])
    return story.keep("listing", _listing(story, "add-to-contract-whitelist"))


def remove_from_contract_whitelist(story: Story) -> httpx.Response:
    TokenDesk(story.desk).finish(story.kept["listing"]["psbt_id"])
    return _listing(story, "remove-from-contract-whitelist")


def contract_calls_resubmit(story: Story) -> httpx.Response:
    """Signed while no node could be reached."""
    tokens, backends = TokenDesk(story.desk), story.world.platform.background.backends
    tokens.fund(100_000)
    called, away = ok(tokens.call(story.kept["token"]["contract_uid"], "pause")), dict(backends)
    backends.clear()
    for name in ("alice", "bob"):
        story.desk.approve(name, called["psbt_id"])
    story.desk.outbox.run_due()
    backends.update(away)
    return story.here("contract-calls/resubmit", call_uid=called["call_uid"])


def cancel_psbt(story: Story) -> httpx.Response:
    made = ok(story.desk.propose(10_000, fee_rate="1"))
    return story.here("cancel-psbt", psbt_id=made["psbt_id"])


def sign_psbt(story: Story) -> httpx.Response:
    psbt_id = story.kept["proposal"]["psbt_id"]
    return story.desk.submit("alice", psbt_id, story.desk.signed("alice", psbt_id))


def create_webhook(story: Story) -> httpx.Response:
    kinds = ["proposal.created", "member.added"]
    return story.keep("webhook", story.here("create-webhook", url="https://hooks.example.org/", kinds=kinds))


def try_webhook(story: Story) -> httpx.Response:
    made = story.here("test-webhook", webhook_id=story.kept["webhook"]["webhook_id"])
    return story.keep("delivery", made)


def redeliver_webhook(story: Story) -> httpx.Response:
    """As if the three days of its attempts were over."""
    delivery_id = story.kept["delivery"]["delivery_id"]
    with story.world.platform.services.store.write() as db:
        db.execute(
            update(WebhookDeliveryRow).where(WebhookDeliveryRow.id == delivery_id).values(status="failed")
        )
    return story.here("redeliver-webhook", delivery_id=delivery_id)


def create_service_account(story: Story) -> httpx.Response:
    return story.keep("program", create(story.world, story.admin))


def a_program(story: Story, word: str, **changes: object) -> httpx.Response:
    return story.here(word, service_account_id=story.kept["program"]["service_account_id"], **changes)


def update_identity_provider(story: Story) -> httpx.Response:
    issuer = {"issuer": "https://login.example.org", "client_id": "custody"}
    return story.keep("provider", story.here("update-identity-provider", **issuer))


def unlink_identity(story: Story) -> httpx.Response:
    alice = story.desk.user_ids["alice"]
    with story.world.platform.services.store.write() as db:
        named = {"provider_id": story.kept["provider"]["provider_id"], "user_id": alice, "subject": "alice"}
        db.add(IdentityLinkRow(**named, linked_at=story.world.clock()))
    return story.here("unlink-identity", user_uuid=alice)


def update_second_person_rule(story: Story) -> httpx.Response:
    story.world.member(1, "henry@example.org", "Administrator")
    return story.here("update-second-person-rule", is_on=True, confirming_role_id=1)


def ask_for_a_role(story: Story, name: str) -> httpx.Response:
    limits = {"transaction_limit": "1", "cycle_period": "M", "cycle_day": 1}
    body = {"workspace_id": story.desk.workspace_id, "name": name, **limits}
    asked = {"workspace_id": story.desk.workspace_id, "path": "/api/v1/create-role", "body": body}
    return story.admin.post("/api/v1/request-change", asked)


def decide(story: Story, word: str) -> httpx.Response:
    body = {"workspace_id": 1, "change_id": story.kept["change"]["change_id"]}
    return story.world.as_user("henry@example.org").post(f"/api/v1/{word}-change", body)


def decline_change(story: Story) -> httpx.Response:
    story.keep("change", ask_for_a_role(story, "Odder"))
    return decide(story, "decline")


def invite(story: Story, email: str) -> httpx.Response:
    body = {"invited_email": email, "workspace_context": 1, "org_id": 1, "role_id": roles(story, 1)["Signer"]}
    return story.admin.post("/api/v1/invite-to-workspace", body)


def roles(story: Story, workspace_id: int) -> dict[str, int]:
    found = ok(story.admin.get("/api/v1/get-roles-and-perms-detailed", workspace_id=workspace_id))
    return {role["Name"]: role["RoleId"] for role in found}


# In this order: a later one finds what it needs.
EXAMPLES: dict[str, Example] = {
    "POST /auth/register": lambda story: story.world.http.post(
        "/auth/register", json={"email": "dora@example.org", "password": PASSWORD}
    ),
    "POST /auth/login": lambda story: story.world.login("alice@example.org"),
    "POST /auth/otp-validate": auth_otp_validate,
    "POST /auth/logout": lambda story: story.world.as_user("bob@example.org").post("/auth/logout"),
    "POST /auth/request-password-reset": lambda story: request_reset(story.world, "eva@example.org"),
    "POST /auth/reset-password": auth_reset_password,
    "POST /auth/sessions/revoke": auth_sessions_revoke,
    "POST /auth/change-password": auth_change_password,
    "POST /auth/two-factor": lambda story: story.desk.signers["bob"].post(
        "/auth/two-factor", {"enabled": True, "password": PASSWORD}
    ),
    "POST /auth/totp/enrol": lambda story: story.keep(
        "totp", story.desk.signers["bob"].post("/auth/totp/enrol", {"password": PASSWORD})
    ),
    "POST /auth/totp/confirm": auth_totp_confirm,
    "POST /api/v1/update-user-info": lambda story: story.desk.signers["alice"].post(
        "/api/v1/update-user-info", {"first_name": "Alice"}
    ),
    "POST /api/v1/update-mail-settings": lambda story: story.desk.signers["alice"].post(
        "/api/v1/update-mail-settings", {"amounts": True}
    ),
    "POST /api/v1/create-workspace": lambda story: story.keep(
        "workspace", story.here("create-workspace", org_id=1, name="Second", network="testnet")
    ),
    "POST /api/v1/update-workspace": lambda story: story.here("update-workspace", name="Renamed"),
    "POST /api/v1/set-default-workspace": lambda story: story.admin.post(
        "/api/v1/set-default-workspace", {"workspace_id": 2}
    ),
    "POST /api/v1/create-role": create_role,
    "POST /api/v1/update-role": lambda story: story.here(
        "update-role", role_id=story.kept["role"]["RoleId"], name="Teller"
    ),
    "POST /api/v1/add-perm-to-role": lambda story: story.here(
        "add-perm-to-role", role_id=story.kept["role"]["RoleId"], rule_name="VIEW_LOGS"
    ),
    "POST /api/v1/remove-perm-from-role": lambda story: story.here(
        "remove-perm-from-role", role_id=story.kept["role"]["RoleId"], rule_name="VIEW_LOGS"
    ),
    "POST /api/v1/update-role-policies": update_role_policies,
    "POST /api/v1/delete-role": lambda story: story.here("delete-role", role_id=story.kept["role"]["RoleId"]),
    "POST /api/v1/add-workspace-to-user": add_workspace_to_user,
    "POST /api/v1/change-user-role": change_user_role,
    "POST /api/v1/leave-workspace": lambda story: story.desk.signers["alice"].post(
        "/api/v1/leave-workspace", {"workspace_id": 2}
    ),
    "POST /api/v1/invite-to-workspace": lambda story: story.keep(
        "invite", invite(story, "frank@example.org")
    ),
    "POST /api/v1/revoke-invite": lambda story: story.here(
        "revoke-invite", invite_id=story.kept["invite"]["invite_id"]
    ),
    "GET /api/v1/accept-invite": accept_invite,
    "POST /api/v1/remove-user-from-workspace": remove_user_from_workspace,
    "POST /api/v1/register-key": lambda story: register_key(story.admin, seed(9)),
    "POST /api/v1/revoke-key": revoke_key,
    "POST /api/v1/create_wallet": lambda story: story.desk.create_vault("Second"),
    "POST /api/v1/update-vault": update_vault,
    "POST /api/v1/update-vault-controls": lambda story: story.here(
        "update-vault-controls",
        vault_id=story.desk.vault["id"],
        only_address_book=False,
        maker_may_approve=True,
    ),
    "POST /api/v1/freeze-vault": lambda story: story.here("freeze-vault", vault_id=story.desk.vault["id"]),
    "POST /api/v1/unfreeze-vault": unfreeze_vault,
    "POST /api/v1/replace-vault": replace_vault,
    "POST /api/v1/sweep-vault": lambda story: story.here("sweep-vault", vault_id=story.kept["replaced"]),
    "POST /api/v1/add-whitelist-address": lambda story: story.keep(
        "address", story.here("add-whitelist-address", name="Shop", address=SHOP)
    ),
    "POST /api/v1/rename-whitelist-address": lambda story: story.here(
        "rename-whitelist-address", uid=story.kept["address"]["uid"], name="The shop"
    ),
    "POST /api/v1/remove-whitelist-address": lambda story: story.here(
        "remove-whitelist-address", uid=story.kept["address"]["uid"]
    ),
    "POST /api/v1/onboarding-requests": lambda story: story.keep(
        "request", story.desk.signers["alice"].post("/api/v1/onboarding-requests", REQUEST)
    ),
    "POST /api/v1/onboarding-requests/{uid}/review": onboarding_requests_review,
    "POST /api/v1/create-psbt": create_psbt,
    "POST /api/v1/forward-to-vault": forward_to_vault,
    "POST /api/v1/create-proof": create_proof,
    "POST /api/v1/create-token": create_token,
    "POST /api/v1/call-contract": call_contract,
    "POST /api/v1/add-to-contract-whitelist": add_to_contract_whitelist,
    "POST /api/v1/remove-from-contract-whitelist": remove_from_contract_whitelist,
    "POST /api/v1/contract-calls/resubmit": contract_calls_resubmit,
    "POST /api/v1/cancel-psbt": cancel_psbt,
    "POST /api/v1/sign-psbt": sign_psbt,
    "GET /api/v1/export-audit-logs": lambda story: story.admin.get(
        "/api/v1/export-audit-logs", org_uid=1, workspace_uid=1
    ),
    "POST /webhooks/purchases": lambda story: deliver(story.world, transaction(SHOP)),
    "POST /api/v1/create-webhook": create_webhook,
    "POST /api/v1/update-webhook": lambda story: story.here(
        "update-webhook", webhook_id=story.kept["webhook"]["webhook_id"], rotate_secret=True
    ),
    "POST /api/v1/test-webhook": try_webhook,
    "POST /api/v1/redeliver-webhook": redeliver_webhook,
    "POST /api/v1/delete-webhook": lambda story: story.here(
        "delete-webhook", webhook_id=story.kept["webhook"]["webhook_id"]
    ),
    "POST /api/v1/create-service-account": create_service_account,
    "POST /api/v1/update-service-account": lambda story: a_program(
        story, "update-service-account", name="Payments"
    ),
    "POST /api/v1/issue-service-secret": lambda story: story.keep(
        "secret", a_program(story, "issue-service-secret")
    ),
    "POST /api/v1/revoke-service-account": lambda story: a_program(story, "revoke-service-account"),
    "POST /api/v1/update-identity-provider": update_identity_provider,
    "POST /api/v1/update-identity-provider-secret": lambda story: story.here(
        "update-identity-provider-secret", client_secret="secret"
    ),
    "POST /api/v1/unlink-identity": unlink_identity,
    "POST /api/v1/remove-identity-provider": lambda story: story.here("remove-identity-provider"),
    "POST /api/v1/update-second-person-rule": update_second_person_rule,
    "POST /api/v1/request-change": lambda story: story.keep("change", ask_for_a_role(story, "Odd")),
    "POST /api/v1/confirm-change": lambda story: decide(story, "confirm"),
    "POST /api/v1/decline-change": decline_change,
}


def recorded(story: Story, trace_id: str) -> list[tuple[str, str]]:
    query = select(AuditEventRow.category, AuditEventRow.action).where(AuditEventRow.trace_id == trace_id)
    with story.world.platform.services.store.read() as db:
        return [(category, action) for category, action in db.execute(query)]


def told_by(story: Story) -> list[str]:
    """All that the log says in words, in every chain."""
    with story.world.platform.services.store.read() as db:
        rows = db.execute(
            select(
                AuditEventRow.action, AuditEventRow.description, AuditEventRow.facts, AuditEventRow.user_name
            )
        )
        return [" ".join(row) for row in rows]


def secrets_of(story: Story) -> list[str]:
    kept = story.world.platform.services.tools.secrets
    own = [webhook_key(secret) for purpose in Purpose for secret in kept.of(purpose)]
    mailed = [token for mail in story.world.mail.sent for token in re.findall(r"[\w-]{43}", mail.text)]
    token = story.admin.headers["Authorization"].removeprefix("Bearer ")
    found = [PASSWORD, NEW_PASSWORD, story.kept["totp"]["secret"], token, *own, *mailed]
    found += [story.kept["webhook"]["secret"], story.kept["secret"]["secret"]]
    assert all(len(secret) >= 20 for secret in found), "none that chance could write"
    return found


def test_every_endpoint_that_may_write_is_tried_or_exempt() -> None:
    """A new endpoint stands in this list until it has an example above, or a reason among the exempt."""
    assert sorted(set(MAY_WRITE) - EXAMPLES.keys() - EXEMPT.keys()) == []


def test_nothing_is_tried_or_exempt_that_is_not_there() -> None:
    assert sorted((EXAMPLES.keys() | EXEMPT.keys()) - set(MAY_WRITE)) == []
    assert sorted(EXAMPLES.keys() & EXEMPT.keys()) == []


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with open_desk(tmp_path / "state") as desk:
        yield Story(desk)


def test_every_change_is_recorded_under_its_trace_id(story: Story) -> None:
    """Issue 5, points 6 and 9: one transaction, one trace id in the answer and in the log."""
    silent, seen = [], {}
    for name, act in EXAMPLES.items():
        answer = act(story)
        assert answer.status_code == 200, f"{name}: {answer.text}"
        seen[name] = recorded(story, answer.headers["X-Trace-Id"])
        if not seen[name]:
            silent.append(name)
        # What one caller may ask in a minute is another test's business; a session lasts for fifteen.
        story.world.clock.advance(seconds=10)
    assert silent == []
    assert seen["POST /api/v1/sign-psbt"][0] == ("SIGNING", "SIGNATURE_SUBMITTED"), (
        "the specification's words"
    )
    assert seen["POST /api/v1/forward-to-vault"] == [("FORWARDING", "FORWARD_PROPOSED")]
    assert seen["POST /api/v1/create-token"] == [("TOKENS", "TOKEN_CREATED")]
    assert seen["POST /api/v1/call-contract"] == [("TOKENS", "TOKEN_CALLED")]
    assert seen["GET /api/v1/export-audit-logs"] == [("AUDIT", "EXPORTED")]
    assert read_through(story.world.platform.services.store).findings == ()
    exported = ok(story.admin.get("/api/v1/export-audit-logs", org_uid=1, workspace_uid=1))["csv"]
    said = "\n".join([*told_by(story), exported])
    assert [secret for secret in secrets_of(story) if secret in said] == [], "P49"
    assert untold(story) == []


def untold(story: Story) -> list[str]:
    """The rows of workspaces for which the console's table has no sentence."""
    found = []
    for number in (1, 2):
        page = LogsPage.model_validate(
            ok(story.admin.get("/api/v1/get-logs", org_uid=1, workspace_uid=number, page_size=500))
        )
        with story.world.platform.services.store.read() as db:
            facts = dict(iter(db.execute(select(AuditEventRow.event_uid, AuditEventRow.facts))))
        for row in page.logs:
            words = row_words(row, stored_facts(facts[row.event_uid]), page.names)
            found += [row] if words is None else []
    return [f"{row.action}: {row.description}" for row in found]
