"""Every call that changes something leaves its record, with the trace id of its answer; and where it creates
something, a repeated request is answered as the first, and creates nothing more (P41).

The table of endpoints is walked: each that may write is asked with what its own schema asks for. One that
does not succeed so has an example below, or stands among the exempt with the reason; a new one fails here by
name until then. The examples run in order over one desk, so that a later one finds what it needs.
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
from custody.server.rules.roles import EVERY_PERMISSION
from custody.server.secrets import Purpose
from custody.server.store.models import (
    AuditEventRow,
    ChainCoinRow,
    IdentityLinkRow,
    UserRow,
    WebhookDeliveryRow,
)
from tests.custody.spec.samples import sample, send
from tests.custody.spec.staging import Stage, open_stage
from tests.support.accounts import (
    NEW_PASSWORD,
    Phone,
    mailed_token,
    register,
    request_reset,
    reset,
    sign_in,
    validate,
)
from tests.support.custody import SHOP, Desk, ok, refused
from tests.support.platform import PASSWORD, As, World, key_offer, register_key, seed
from tests.support.profiles import forward, grant, pay_profile
from tests.support.purchases import deliver, transaction
from tests.support.token_desk import TokenDesk
from tests.support.two_people import DORA, ask, decide, rule, second_administrator

EXEMPT: Final = {
    "/auth/refresh": "renews what SIGNED_IN recorded; a token that was copied is REFRESH_TOKEN_REUSED",
    "key-challenge": "a question that expires by itself; what it is asked for records KEY_REGISTERED",
}


def name_of(row: Call[Any, Any]) -> str:
    return row.path.removeprefix("/api/v1/")


CREATING: Final = {row.path.format(**dict.fromkeys(row.path_ids, 1)) for row in CALLS if row.creates}
# A call that is served in parts may write in one of them, though it is a GET.
MAY_WRITE: Final = [row for row in CALLS if row.writes or row in calls._IN_PARTS]


@dataclass
class Story:
    stage: Stage
    kept: dict[str, Any] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    # Of each call that creates something, the first request.
    repeated: dict[str, httpx.Request] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world.http.event_hooks = {"request": [self.give_key], "response": [self.repeat]}

    def give_key(self, request: httpx.Request) -> None:
        if request.url.path in CREATING - self.repeated.keys():
            request.headers["Idempotency-Key"] = "once"

    def repeat(self, first: httpx.Response) -> None:
        asked, first_content = first.request, first.read()
        path, is_repeated = asked.url.path, asked in self.repeated.values()
        if first.status_code != 200 or is_repeated or "Idempotency-Key" not in asked.headers:
            return
        self.repeated[path] = asked
        again = self.world.http.send(asked)
        # An answer with a secret is not stored.
        assert again.content == first_content or (
            first.json().get("secret") and refused(again, 409, "STATE_CONFLICT")
        ), path

    @property
    def desk(self) -> Desk:
        return self.stage.desk

    @property
    def world(self) -> World:
        return self.desk.world

    @property
    def admin(self) -> As:
        return self.desk.admin

    def ask(self, name: str, /, *given: str, **others: object) -> httpx.Response:
        """What its schema asks for, with these and what was kept as ``given``; by who may do everything."""
        self.stage.gives(EVERY_PERMISSION)
        others |= {each: self.kept[each] for each in given}
        (row,) = [row for row in MAY_WRITE if name_of(row) == name]
        return send(self.stage.tester, row, sample(row, self.stage.known() | others) | others)

    def here(self, path: str, **body: object) -> httpx.Response:
        return self.admin.post(f"/api/v1/{path}", {"workspace_id": 1, **body})

    def keep(self, answer: httpx.Response) -> httpx.Response:
        """What a later one asks for: ids, a secret."""
        found = ok(answer)
        if isinstance(found, dict):
            self.kept |= found
            self.secrets |= {secret for name, secret in found.items() if name == "secret"}
        return answer


Example = Callable[[Story], httpx.Response]


def auth_otp_validate(story: Story) -> httpx.Response:
    email = register(story.world, "eva@example.org")
    waiting = ok(story.world.login(email))
    story.world.deliver_mail()
    return validate(story.world, waiting["token_2fa"], story.world.mail.newest_code())


def auth_sessions_revoke(story: Story) -> httpx.Response:
    sign_in(story.world, "carol@example.org")
    return story.desk.signers["carol"].post("/auth/sessions/revoke", {"all_others": True})


def accept_invite(story: Story) -> httpx.Response:
    gina = sign_in(story.world, register(story.world, "gina@example.org")).user
    invited = ok(story.ask("invite-to-workspace", invited_email="gina@example.org"))
    return gina.get("/api/v1/accept-invite", invite_id=invited["invite_id"], accept=True)


def revoke_key(story: Story) -> httpx.Response:
    (key,) = ok(story.admin.get("/api/v1/keys"))
    return story.admin.post("/api/v1/revoke-key", {"key_id": key["ID"], "reason": "lost"})


def aside_of(story: Story) -> str:
    """A coin of the vault."""
    if "coin" not in story.kept:
        (txid,) = story.desk.deposit(40_000)
        coin = story.desk.rows(ChainCoinRow, ChainCoinRow.txid == txid)[0]
        story.kept["coin"] = f"{coin.txid}:{coin.vout}"
    coin: str = story.kept["coin"]
    return coin


def replace_vault(story: Story) -> httpx.Response:
    """The second vault, which a second manager confirms; then there is something to sweep."""
    for name, device in story.desk.devices.items():
        offered = key_offer(device, accounts=3)["vault_accounts"]
        ok(register_key(story.desk.signers[name], device, vault_accounts=offered))
    second = story.desk.wallets()[-1]
    story.desk.deposit(50_000, to=second["address"])
    story.kept["replaced"] = second["id"]
    change = ok(ask(story.admin, "replace-vault", vault_id=second["id"], name="Third"))
    return decide(second_administrator(story.world), change)


def unfreeze_vault(story: Story) -> httpx.Response:
    ok(story.ask("unfreeze-vault"))
    return story.desk.of_vault("unfreeze-vault", "carol")


def onboarding_requests_review(story: Story) -> httpx.Response:
    with story.world.platform.services.store.write() as db:
        db.execute(update(UserRow).where(UserRow.email == "admin@example.org").values(is_operator=True))
    return story.admin.post("/api/v1/onboarding-requests/1/review", {"decision": "reject"})


def create_psbt(story: Story) -> httpx.Response:
    story.desk.deposit(100_000, 100_000)
    return story.desk.propose(20_000)


def forward_to_vault(story: Story) -> httpx.Response:
    grant(story.desk, "Signer", "PAYMENT_INIT")
    pay_profile(story.desk, "alice", 100_000)
    return forward(story.desk, "alice", 20_000)


def create_token(story: Story) -> httpx.Response:
    tokens = TokenDesk(story.desk)
    tokens.fund(100_000, 100_000)
    return tokens.create()


def of_token(story: Story) -> TokenDesk:
    """Once what was proposed before is in a block."""
    tokens = TokenDesk(story.desk)
    tokens.finish(story.kept["psbt_id"])
    return tokens


def change_whitelist(name: str) -> Example:
    def act(story: Story) -> httpx.Response:
        of_token(story)
        return story.ask(name, "contract_uid")

    return act


def contract_calls_resubmit(story: Story) -> httpx.Response:
    """Signed while no node could be reached."""
    tokens, backends = TokenDesk(story.desk), story.world.platform.background.backends
    tokens.fund(100_000)
    called, away = ok(tokens.call(story.kept["contract_uid"], "pause")), dict(backends)
    backends.clear()
    for name in ("alice", "bob"):
        story.desk.approve(name, called["psbt_id"])
    story.desk.outbox.run_due()
    backends.update(away)
    return story.here("contract-calls/resubmit", call_uid=called["call_uid"])


def sign_psbt(story: Story) -> httpx.Response:
    psbt_id = story.kept["psbt_id"]
    return story.desk.submit("alice", psbt_id, story.desk.signed("alice", psbt_id))


def redeliver_webhook(story: Story) -> httpx.Response:
    """As if the three days of its attempts were over."""
    with story.world.platform.services.store.write() as db:
        db.execute(update(WebhookDeliveryRow).values(status="failed"))
    return story.ask("redeliver-webhook", "delivery_id")


def unlink_identity(story: Story) -> httpx.Response:
    alice = story.desk.user_ids["alice"]
    with story.world.platform.services.store.write() as db:
        named = {"provider_id": story.kept["provider_id"], "user_id": alice, "subject": "alice"}
        db.add(IdentityLinkRow(**named, linked_at=story.world.clock()))
    return story.ask("unlink-identity", user_uuid=alice)


def ask_for_a_role(story: Story) -> httpx.Response:
    limits = {"transaction_limit": "1", "cycle_period": "M", "cycle_day": 1}
    return story.keep(ask(story.admin, "create-role", name=f"Odd {story.world.clock():%H%M%S}", **limits))


def decline_change(story: Story) -> httpx.Response:
    ok(ask_for_a_role(story))
    return decide(story.world.as_user(DORA), story.kept, "decline")


# What makes a change of those whose schema asks for none.
CHANGES: Final[dict[str, dict[str, object]]] = {
    "update-user-info": {"first_name": "Alice"},
    "update-mail-settings": {"amounts": True},
    "update-workspace": {"name": "Renamed"},
    "change-user-role": {"role_id": 2},
    "update-role": {"name": "Teller"},
    "update-webhook": {"rotate_secret": True},
    "update-service-account": {"name": "Payments"},
}
# In this order: a later one finds what it needs. Names alone: of what was kept, beside what its schema asks
# for.
EXAMPLES: dict[str, Example | tuple[str, ...]] = {
    "/auth/register": lambda story: story.world.http.post(
        "/auth/register", json={"email": "frank@example.org", "password": PASSWORD}
    ),
    "/auth/login": lambda story: story.world.login("alice@example.org"),
    "/auth/otp-validate": auth_otp_validate,
    "/auth/logout": lambda story: story.world.as_user("bob@example.org").post("/auth/logout"),
    "/auth/request-password-reset": lambda story: request_reset(story.world, "eva@example.org"),
    "/auth/reset-password": lambda story: reset(story.world, mailed_token(story.world)),
    "/auth/sessions/revoke": auth_sessions_revoke,
    "/auth/change-password": lambda story: story.desk.signers["carol"].post(
        "/auth/change-password", {"password": PASSWORD, "new_password": NEW_PASSWORD}
    ),
    "/auth/two-factor": lambda story: story.desk.signers["bob"].post(
        "/auth/two-factor", {"enabled": True, "password": PASSWORD}
    ),
    "/auth/totp/enrol": lambda story: story.desk.signers["bob"].post(
        "/auth/totp/enrol", {"password": PASSWORD}
    ),
    "/auth/totp/confirm": lambda story: story.desk.signers["bob"].post(
        "/auth/totp/confirm", {"code": Phone(story.world, story.kept["secret"]).code}
    ),
    "create-workspace": lambda story: story.here(
        "create-workspace", org_id=1, name="Third", network="testnet"
    ),
    "set-default-workspace": lambda story: story.here("set-default-workspace", workspace_id=4),
    "add-workspace-to-user": lambda story: story.ask(
        "add-workspace-to-user", user_uuid=story.stage.colleague_id
    ),
    "create-role": (),
    "delete-role": lambda story: story.ask("delete-role", role_id=story.kept["RoleId"]),
    "remove-perm-from-role": lambda story: story.ask("remove-perm-from-role", role_id=story.stage.role_id),
    "invite-to-workspace": (),
    "revoke-invite": ("invite_id",),
    "accept-invite": accept_invite,
    "register-key": lambda story: register_key(story.admin, seed(9)),
    "revoke-key": revoke_key,
    "freeze-vault": (),
    "unfreeze-vault": unfreeze_vault,
    "set-coin-aside": lambda story: story.ask("set-coin-aside", coin=aside_of(story), reason="Audit"),
    "release-coin": lambda story: story.ask("release-coin", coin=aside_of(story)),
    "replace-vault": replace_vault,
    "sweep-vault": lambda story: story.ask("sweep-vault", vault_id=story.kept["replaced"]),
    "add-whitelist-address": (),
    "rename-whitelist-address": ("uid",),
    "remove-whitelist-address": ("uid",),
    "onboarding-requests": (),
    "onboarding-requests/{uid}/review": onboarding_requests_review,
    "create-psbt": create_psbt,
    "sign-psbt": sign_psbt,
    "cancel-psbt": ("psbt_id",),
    "forward-to-vault": forward_to_vault,
    "create-token": create_token,
    "call-contract": lambda story: of_token(story).call(story.kept["contract_uid"], "init"),
    **{
        name: change_whitelist(name)
        for name in ("add-to-contract-whitelist", "remove-from-contract-whitelist")
    },
    "contract-calls/resubmit": contract_calls_resubmit,
    "/webhooks/purchases": lambda story: deliver(story.world, transaction(SHOP)),
    "create-webhook": (),
    "update-webhook": ("webhook_id",),
    "test-webhook": ("webhook_id",),
    "redeliver-webhook": redeliver_webhook,
    "delete-webhook": ("webhook_id",),
    "create-service-account": (),
    "update-service-account": ("service_account_id",),
    "issue-service-secret": ("service_account_id",),
    "revoke-service-account": ("service_account_id",),
    "update-identity-provider": (),
    "update-identity-provider-secret": (),
    "unlink-identity": unlink_identity,
    "remove-identity-provider": (),
    "update-second-person-rule": lambda story: rule(story.admin),
    "request-change": ask_for_a_role,
    "confirm-change": lambda story: decide(story.world.as_user(DORA), story.kept),
    "decline-change": decline_change,
}


def recorded(story: Story, trace_id: str) -> list[tuple[str, str]]:
    query = select(AuditEventRow.category, AuditEventRow.action).where(AuditEventRow.trace_id == trace_id)
    with story.world.platform.services.store.read() as db:
        return [(category, action) for category, action in db.execute(query)]


def told_by(story: Story) -> list[str]:
    """All that the log says in words, in every chain."""
    with story.world.platform.services.store.read() as db:
        rows = db.scalars(select(AuditEventRow))
        return [f"{row.action} {row.description} {row.facts} {row.user_name}" for row in rows]


def secrets_of(story: Story) -> list[str]:
    kept = story.world.platform.services.tools.secrets
    own = [webhook_key(secret) for purpose in Purpose for secret in kept.of(purpose)]
    mailed = [token for mail in story.world.mail.sent for token in re.findall(r"[\w-]{43}", mail.text)]
    token = story.admin.headers["Authorization"].removeprefix("Bearer ")
    found = [PASSWORD, NEW_PASSWORD, token, *own, *mailed, *story.secrets]
    assert all(len(secret) >= 20 for secret in found), "none that chance could write"
    return found


def test_nothing_is_tried_or_exempt_that_is_not_there() -> None:
    assert sorted((EXAMPLES.keys() | EXEMPT.keys()) - set(map(name_of, MAY_WRITE))) == []
    assert sorted(EXAMPLES.keys() & EXEMPT.keys()) == []


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with open_stage(tmp_path / "state") as stage:
        yield Story(stage)


def test_every_change_is_recorded_under_its_trace_id(story: Story) -> None:
    """Issue 5, points 6 and 9: one transaction, one trace id in the answer and in the log."""
    names = [*map(name_of, MAY_WRITE)]
    assert len(set(names)) == len(names)
    seen = {}
    sampled = {name: () for name in names if name not in EXAMPLES | EXEMPT}
    for name, act in (sampled | EXAMPLES).items():
        answer = act(story) if callable(act) else story.ask(name, *act, **CHANGES.get(name, {}))
        story.keep(answer)
        seen[name] = recorded(story, answer.headers["X-Trace-Id"])
        # What one caller may ask in a minute is another test's business; a session lasts for fifteen.
        story.world.clock.advance(seconds=10)
    assert [name for name, events in seen.items() if not events] == []
    assert story.repeated.keys() == CREATING
    assert seen["sign-psbt"][0] == ("SIGNING", "SIGNATURE_SUBMITTED"), "the specification's words"
    assert seen["forward-to-vault"] == [("FORWARDING", "FORWARD_PROPOSED")]
    assert seen["create-token"] == [("TOKENS", "TOKEN_CREATED")]
    assert seen["call-contract"] == [("TOKENS", "TOKEN_CALLED")]
    assert seen["export-audit-logs"] == [("AUDIT", "EXPORTED")]
    assert read_through(story.world.platform.services.store).findings == ()
    exported = ok(story.admin.get("/api/v1/export-audit-logs", org_uid=1, workspace_uid=1))["csv"]
    said = "\n".join([*told_by(story), exported])
    assert [secret for secret in secrets_of(story) if secret in said] == [], "P49"
    assert untold(story) == []


def untold(story: Story) -> list[str]:
    """The rows of workspaces for which the console's table has no sentence."""
    found = []
    for number in (1, 4):
        here = {"org_uid": 1, "workspace_uid": number}
        page = LogsPage.model_validate(ok(story.admin.get("/api/v1/get-logs", **here, page_size=500)))
        with story.world.platform.services.store.read() as db:
            facts = dict(iter(db.execute(select(AuditEventRow.event_uid, AuditEventRow.facts))))
        for row in page.logs:
            words = row_words(row, stored_facts(facts[row.event_uid]), page.names)
            found += [row] if words is None else []
    return [f"{row.action}: {row.description}" for row in found]
