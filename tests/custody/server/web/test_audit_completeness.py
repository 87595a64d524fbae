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

from custody.server.domain.purchases import webhook_key
from custody.server.service.audit.log import verify
from custody.server.service.secrets import Purpose
from custody.server.store.models import AuditEvent, User, WebhookDelivery
from custody.server.web.endpoint import Endpoint, Unit
from custody.server.web.routes import ENDPOINTS
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
from tests.support.platform import PASSWORD, As, World, register_key, seed
from tests.support.profiles import forward, grant, pay_profile
from tests.support.purchases import deliver, transaction
from tests.support.token_desk import TokenDesk

EXEMPT: Final = {
    "POST /auth/refresh": (
        "renews what SIGNED_IN recorded; a token that was copied is recorded as REFRESH_TOKEN_REUSED"
    ),
    "POST /api/v1/key-challenge": (
        "a question that expires by itself; what it is asked for records KEY_REGISTERED"
    ),
    "GET /api/v1/psbt": "reads only: its unit is its own because it waits",
}


def name_of(row: Endpoint) -> str:
    return f"{row.method} {row.path}"


MAY_WRITE: Final = tuple(name_of(row) for row in ENDPOINTS if row.unit is not Unit.READ)


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
EXAMPLES: dict[str, Example] = {}


def example(name: str) -> Callable[[Example], Example]:
    def add(act: Example) -> Example:
        EXAMPLES[name] = act
        return act

    return add


@example("POST /auth/register")
def _(story: Story) -> httpx.Response:
    return story.world.http.post("/auth/register", json={"email": "dora@example.org", "password": PASSWORD})


@example("POST /auth/login")
def _(story: Story) -> httpx.Response:
    return story.world.login("alice@example.org")


@example("POST /auth/otp-validate")
def _(story: Story) -> httpx.Response:
    email = register(story.world, "eva@example.org")
    waiting = ok(story.world.login(email))
    story.world.deliver_mail()
    return validate(story.world, waiting["token_2fa"], story.world.mail.newest_code())


@example("POST /auth/logout")
def _(story: Story) -> httpx.Response:
    return story.world.as_user("bob@example.org").post("/auth/logout")


@example("POST /auth/request-password-reset")
def _(story: Story) -> httpx.Response:
    return request_reset(story.world, "eva@example.org")


@example("POST /auth/reset-password")
def _(story: Story) -> httpx.Response:
    body = {"token": mailed_token(story.world), "new_password": NEW_PASSWORD}
    return story.world.http.post("/auth/reset-password", json=body)


@example("POST /auth/sessions/revoke")
def _(story: Story) -> httpx.Response:
    sign_in(story.world, "carol@example.org")
    return story.desk.signers["carol"].post("/auth/sessions/revoke", {"all_others": True})


@example("POST /auth/change-password")
def _(story: Story) -> httpx.Response:
    body = {"password": PASSWORD, "new_password": NEW_PASSWORD}
    return story.desk.signers["carol"].post("/auth/change-password", body)


@example("POST /auth/two-factor")
def _(story: Story) -> httpx.Response:
    return story.desk.signers["bob"].post("/auth/two-factor", {"enabled": True, "password": PASSWORD})


@example("POST /auth/totp/enrol")
def _(story: Story) -> httpx.Response:
    return story.keep("totp", story.desk.signers["bob"].post("/auth/totp/enrol", {"password": PASSWORD}))


@example("POST /auth/totp/confirm")
def _(story: Story) -> httpx.Response:
    phone = Phone(story.world, story.kept["totp"]["secret"])
    return story.desk.signers["bob"].post("/auth/totp/confirm", {"code": phone.code})


@example("POST /api/v1/update-user-info")
def _(story: Story) -> httpx.Response:
    return story.desk.signers["alice"].post("/api/v1/update-user-info", {"first_name": "Alice"})


@example("POST /api/v1/create-workspace")
def _(story: Story) -> httpx.Response:
    return story.keep("workspace", story.here("create-workspace", org_id=1, name="Second", network="testnet"))


@example("POST /api/v1/update-workspace")
def _(story: Story) -> httpx.Response:
    return story.here("update-workspace", name="Renamed")


@example("POST /api/v1/set-default-workspace")
def _(story: Story) -> httpx.Response:
    return story.admin.post("/api/v1/set-default-workspace", {"workspace_id": 2})


@example("POST /api/v1/create-role")
def _(story: Story) -> httpx.Response:
    limits = {"transaction_limit": "1", "cycle_period": "M", "cycle_day": 1}
    return story.keep("role", story.here("create-role", name="Clerk", **limits))


@example("POST /api/v1/update-role")
def _(story: Story) -> httpx.Response:
    return story.here("update-role", role_id=story.kept["role"]["RoleId"], name="Teller")


@example("POST /api/v1/add-perm-to-role")
def _(story: Story) -> httpx.Response:
    return story.here("add-perm-to-role", role_id=story.kept["role"]["RoleId"], rule_name="VIEW_LOGS")


@example("POST /api/v1/remove-perm-from-role")
def _(story: Story) -> httpx.Response:
    return story.here("remove-perm-from-role", role_id=story.kept["role"]["RoleId"], rule_name="VIEW_LOGS")


@example("POST /api/v1/update-role-policies")
def _(story: Story) -> httpx.Response:
    limits = {"new_transaction_limit": "2", "cycle_period": "W", "cycle_day": 1}
    return story.here("update-role-policies", role_id=story.kept["role"]["RoleId"], **limits)


@example("POST /api/v1/delete-role")
def _(story: Story) -> httpx.Response:
    return story.here("delete-role", role_id=story.kept["role"]["RoleId"])


@example("POST /api/v1/add-workspace-to-user")
def _(story: Story) -> httpx.Response:
    body = {"workspace_id": 2, "user_uuid": story.desk.user_ids["alice"],
            "role_uid": roles(story, 2)["Signer"], "creator_workspace_id": 1,
            "creator_org_uuid": 1}  # fmt: skip
    return story.admin.post("/api/v1/add-workspace-to-user", body)


@example("POST /api/v1/change-user-role")
def _(story: Story) -> httpx.Response:
    body = {"workspace_id": 2, "user_uuid": story.desk.user_ids["alice"]}
    return story.admin.post("/api/v1/change-user-role", {**body, "role_id": roles(story, 2)["Administrator"]})


@example("POST /api/v1/leave-workspace")
def _(story: Story) -> httpx.Response:
    return story.desk.signers["alice"].post("/api/v1/leave-workspace", {"workspace_id": 2})


@example("POST /api/v1/invite-to-workspace")
def _(story: Story) -> httpx.Response:
    return story.keep("invite", invite(story, "frank@example.org"))


@example("POST /api/v1/revoke-invite")
def _(story: Story) -> httpx.Response:
    return story.here("revoke-invite", invite_id=story.kept["invite"]["invite_id"])


@example("GET /api/v1/accept-invite")
def _(story: Story) -> httpx.Response:
    gina = sign_in(story.world, register(story.world, "gina@example.org")).user
    invited = ok(invite(story, "gina@example.org"))
    return gina.get("/api/v1/accept-invite", invite_id=invited["invite_id"], accept=True)


@example("POST /api/v1/remove-user-from-workspace")
def _(story: Story) -> httpx.Response:
    members = ok(story.admin.get("/api/v1/get-users-from-workspace", workspace_id=1))
    (gina,) = [each["UUID"] for each in members if each["Email"] == "gina@example.org"]
    return story.here("remove-user-from-workspace", user_uuid=gina)


@example("POST /api/v1/register-key")
def _(story: Story) -> httpx.Response:
    return register_key(story.admin, seed(9))


@example("POST /api/v1/revoke-key")
def _(story: Story) -> httpx.Response:
    (key,) = ok(story.admin.get("/api/v1/keys"))
    return story.admin.post("/api/v1/revoke-key", {"key_id": key["ID"], "reason": "lost"})


@example("POST /api/v1/create_wallet")
def _(story: Story) -> httpx.Response:
    return story.desk.create_vault("Second")


@example("POST /api/v1/update-vault")
def _(story: Story) -> httpx.Response:
    limits = {"transaction_limit": "9", "cycle_period": "M", "cycle_day": 1}
    return story.here("update-vault", vault_id=story.desk.vault["id"], **limits)


@example("POST /api/v1/add-whitelist-address")
def _(story: Story) -> httpx.Response:
    return story.keep("address", story.here("add-whitelist-address", name="Shop", address=SHOP))


@example("POST /api/v1/rename-whitelist-address")
def _(story: Story) -> httpx.Response:
    return story.here("rename-whitelist-address", uid=story.kept["address"]["uid"], name="The shop")


@example("POST /api/v1/remove-whitelist-address")
def _(story: Story) -> httpx.Response:
    return story.here("remove-whitelist-address", uid=story.kept["address"]["uid"])


@example("POST /api/v1/onboarding-requests")
def _(story: Story) -> httpx.Response:
    asked = {"first_name": "Ana", "last_name": "Prado", "work_email": "ana@example.net",
             "messaging_platform": "Signal", "messaging_handle": "ana.01", "monthly_volume": "10k-100k",
             "referral_source": "A colleague", "org_name": "Prado", "workspace_name": "Treasury"}  # fmt: skip
    return story.keep("request", story.desk.signers["alice"].post("/api/v1/onboarding-requests", asked))


@example("POST /api/v1/onboarding-requests/{uid}/review")
def _(story: Story) -> httpx.Response:
    with story.world.platform.services.store.write() as db:
        db.execute(update(User).where(User.email == "admin@example.org").values(is_operator=True))
    path = f"/api/v1/onboarding-requests/{story.kept['request']['uid']}/review"
    return story.admin.post(path, {"decision": "reject"})


@example("POST /api/v1/create-psbt")
def _(story: Story) -> httpx.Response:
    story.desk.deposit(100_000, 100_000)
    return story.keep("proposal", story.desk.propose(20_000))


@example("POST /api/v1/forward-to-vault")
def _(story: Story) -> httpx.Response:
    grant(story.desk, "Signer", "PAYMENT_INIT")
    pay_profile(story.desk, "alice", 100_000)
    return forward(story.desk, "alice", 20_000)


@example("POST /api/v1/create-token")
def _(story: Story) -> httpx.Response:
    tokens = TokenDesk(story.desk)
    tokens.fund(100_000, 100_000)
    return story.keep("token", tokens.create())


@example("POST /api/v1/call-contract")
def _(story: Story) -> httpx.Response:
    tokens, token = TokenDesk(story.desk), story.kept["token"]
    tokens.finish(token["psbt_id"])
    return story.keep("init", tokens.call(token["contract_uid"], "init"))


@example("POST /api/v1/add-to-contract-whitelist")
def _(story: Story) -> httpx.Response:
    TokenDesk(story.desk).finish(story.kept["init"]["psbt_id"])
    return story.keep("listing", _listing(story, "add-to-contract-whitelist"))


@example("POST /api/v1/remove-from-contract-whitelist")
def _(story: Story) -> httpx.Response:
    TokenDesk(story.desk).finish(story.kept["listing"]["psbt_id"])
    return _listing(story, "remove-from-contract-whitelist")


@example("POST /api/v1/contract-calls/resubmit")
def _(story: Story) -> httpx.Response:
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


def _listing(story: Story, path: str) -> httpx.Response:
    uid = story.kept["token"]["contract_uid"]
    return story.here(path, contract_uid=uid, wallet_id=story.desk.vault["id"], address=SHOP)


@example("POST /api/v1/cancel-psbt")
def _(story: Story) -> httpx.Response:
    made = ok(story.desk.propose(10_000, fee_rate="1"))
    return story.here("cancel-psbt", psbt_id=made["psbt_id"])


@example("POST /api/v1/sign-psbt")
def _(story: Story) -> httpx.Response:
    psbt_id = story.kept["proposal"]["psbt_id"]
    return story.desk.submit("alice", psbt_id, story.desk.signed("alice", psbt_id))


@example("GET /api/v1/export-audit-logs")
def _(story: Story) -> httpx.Response:
    return story.admin.get("/api/v1/export-audit-logs", org_uid=1, workspace_uid=1)


@example("POST /webhooks/purchases")
def _(story: Story) -> httpx.Response:
    return deliver(story.world, transaction(SHOP))


@example("POST /api/v1/create-webhook")
def _(story: Story) -> httpx.Response:
    kinds = ["proposal.created", "member.added"]
    return story.keep("webhook", story.here("create-webhook", url="https://hooks.example.org/", kinds=kinds))


@example("POST /api/v1/update-webhook")
def _(story: Story) -> httpx.Response:
    return story.here("update-webhook", webhook_id=story.kept["webhook"]["webhook_id"], rotate_secret=True)


@example("POST /api/v1/test-webhook")
def _(story: Story) -> httpx.Response:
    made = story.here("test-webhook", webhook_id=story.kept["webhook"]["webhook_id"])
    return story.keep("delivery", made)


@example("POST /api/v1/redeliver-webhook")
def _(story: Story) -> httpx.Response:
    """As if the three days of its attempts were over."""
    delivery_id = story.kept["delivery"]["delivery_id"]
    with story.world.platform.services.store.write() as db:
        db.execute(update(WebhookDelivery).where(WebhookDelivery.id == delivery_id).values(status="failed"))
    return story.here("redeliver-webhook", delivery_id=delivery_id)


@example("POST /api/v1/delete-webhook")
def _(story: Story) -> httpx.Response:
    return story.here("delete-webhook", webhook_id=story.kept["webhook"]["webhook_id"])


def invite(story: Story, email: str) -> httpx.Response:
    body = {"invited_email": email, "workspace_context": 1, "org_id": 1, "role_id": roles(story, 1)["Signer"]}
    return story.admin.post("/api/v1/invite-to-workspace", body)


def roles(story: Story, workspace_id: int) -> dict[str, int]:
    found = ok(story.admin.get("/api/v1/get-roles-and-perms-detailed", workspace_id=workspace_id))
    return {role["Name"]: role["RoleId"] for role in found}


def recorded(story: Story, trace_id: str) -> list[tuple[str, str]]:
    query = select(AuditEvent.category, AuditEvent.action).where(AuditEvent.trace_id == trace_id)
    with story.world.platform.services.store.read() as db:
        return [(category, action) for category, action in db.execute(query)]


def told_by(story: Story) -> list[str]:
    """All that the log says in words, in every chain."""
    with story.world.platform.services.store.read() as db:
        rows = db.execute(select(AuditEvent.action, AuditEvent.description, AuditEvent.user_name))
        return [" ".join(row) for row in rows]


def secrets_of(story: Story) -> list[str]:
    kept = story.world.platform.services.secrets
    own = [webhook_key(secret) for purpose in Purpose for secret in kept.of(purpose)]
    mailed = [token for mail in story.world.mail.sent for token in re.findall(r"[\w-]{43}", mail.text)]
    token = story.admin.headers["Authorization"].removeprefix("Bearer ")
    found = [PASSWORD, NEW_PASSWORD, story.kept["totp"]["secret"], token, *own, *mailed]
    found.append(story.kept["webhook"]["secret"])
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
    assert verify(story.world.platform.services.store) == ()
    exported = ok(story.admin.get("/api/v1/export-audit-logs", org_uid=1, workspace_uid=1))["csv"]
    said = "\n".join([*told_by(story), exported])
    assert [secret for secret in secrets_of(story) if secret in said] == [], "P49"
