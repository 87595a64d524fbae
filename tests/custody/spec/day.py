"""A day at a platform on which every endpoint that the specification names answers, asked with what the
specification names and with nothing else; and on which everything goes wrong once that it says may.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx

from custody.schemas.auth import REFRESH_COOKIE
from tests.support.accounts import Session, register, validate
from tests.support.custody import SHOP, Desk, ok, open_desk
from tests.support.onboarding import REQUEST
from tests.support.platform import PASSWORD, As, register_key, seed
from tests.support.policy_store import RemotePolicies
from tests.support.profiles import grant, pay_profile, profile_of
from tests.support.purchases import deliver, transaction
from tests.support.staff import invite, roles
from tests.support.token_desk import BOB, TokenDesk

API = "/api/v1/"
CYCLE = {"cycle_period": "M", "cycle_day": 1}


@dataclass(frozen=True)
class Exchange:
    method: str
    path: str
    sent: Mapping[str, Any]
    status: int
    answer: Any


class Recorder:
    """Records every answer that a client gets, by path without the query."""

    def __init__(self, http: httpx.Client) -> None:
        self._kept: list[Exchange] = []
        http.event_hooks["response"].append(self._hear)

    def answers(self, path: str) -> Iterator[Exchange]:
        """Those with success."""
        return (each for each in self._kept if each.path == path and each.status == 200)

    def _hear(self, response: httpx.Response) -> None:
        response.read()
        asked = response.request
        query = dict(parse_qsl(asked.url.query.decode()))
        sent = query if asked.method == "GET" else json.loads(asked.content or b"{}")
        body = response.json() if response.content else None
        self._kept.append(Exchange(asked.method, asked.url.path, sent or {}, response.status_code, body))


@dataclass
class Day:
    desk: Desk
    policies: RemotePolicies
    heard: Recorder
    # What the specification says may go wrong, in its words, and how the server told it.
    told: dict[str, str] = field(default_factory=dict)

    @property
    def tokens(self) -> TokenDesk:
        return TokenDesk(self.desk)

    @property
    def vault_id(self) -> str:
        return self.desk.vault["id"]

    def get(self, path: str, user: As | None = None, **query: object) -> Any:
        return ok((user or self.desk.admin).get(API + path, **query))

    def post(self, path: str, user: As | None = None, **body: object) -> Any:
        return ok((user or self.desk.admin).post(API + path, body))

    def refused(self, condition: str, answer: httpx.Response) -> None:
        assert answer.is_error, answer.text
        told = f"{answer.status_code} `{answer.json()['code']}`"
        self.told[condition] = f"{self.told[condition]}, {told}" if condition in self.told else told

    def shown(self, condition: str, value: object, how: str) -> None:
        assert value, condition
        self.told[condition] = how


def sign_in_with_a_code(day: Day) -> As:
    """And renew the session; an authenticator is not asked for. A password is forgotten."""
    world = day.desk.world
    email = register(world, "eva@example.org")
    body = {"email": email, "password": PASSWORD, "location": "Bern", "device": "desk"}
    waiting = ok(world.http.post("/auth/login", json=body))
    unfinished = (waiting["success"], waiting["requires_2FA"], waiting["token"]) == (True, True, "")
    day.shown(
        "login with outstanding two-factor verification", unfinished, "200, `success` true, `token` empty"
    )
    world.deliver_mail()
    finished = validate(world, waiting["token_2fa"], world.mail.newest_code())
    signed_in = ok(finished)
    session = Session(world, signed_in["token"], signed_in["sid"], finished.cookies[REFRESH_COOKIE])
    session = session.after(session.refresh())
    world.http.cookies.clear()
    ok(world.http.post("/auth/request-password-reset", json={"email": email}))
    ok(register_key(session.user, seed(9)))
    return session.user


def look_at_oneself(day: Day) -> None:
    day.get("get-user-info")
    day.get("get-my-limits", workspace_id=1)
    day.get("keys", day.desk.signers["alice"])
    day.post("onboarding-requests", **REQUEST)
    day.get("onboarding-requests")


def keep_people(day: Day, eva: As) -> None:
    eva_id = day.get("get-user-info", eva)["UUID"]
    role = {"workspace_id": 1, "role_id": roles(day.desk.admin)["Signer"]["RoleId"]}
    for call in ("add-perm-to-role", "remove-perm-from-role"):
        day.post(call, **role, rule_name="VIEW_LOGS")
    day.post("update-role-policies", **role, new_transaction_limit="2.5", **CYCLE)
    day.get("get-role-limit", **role)
    alice_id = day.desk.user_ids["alice"]
    day.get("check-user-role-limit", **role, uuid=alice_id, amount_to_check="1")
    invited = ok(invite(day.desk.admin, "eva@example.org", role["role_id"]))
    day.get("get-pending-workspace-invites", workspace_id=1)
    day.get("get-invites-pending", eva)
    day.get("accept-invite", eva, invite_id=invited["invite_id"], accept=True)
    day.get("get-users-from-workspace", workspace_id=1)
    day.post("create-workspace", workspace_id=1, org_id=1, name="Second", description="", network="testnet")
    signer_id = roles(day.desk.admin, 2)["Signer"]["RoleId"]
    body = {"workspace_id": 2, "user_uuid": eva_id, "role_uid": signer_id}
    day.post("add-workspace-to-user", **body, creator_workspace_id=1, creator_org_uuid=1)
    denied = day.desk.signers["alice"].get(API + "get-logs", org_uid=1, workspace_uid=1)
    day.refused("caller lacks the permission the endpoint needs", denied)


def keep_vaults(day: Day) -> None:
    vault = {"workspace_id": 1, "vault_id": day.vault_id}
    day.get("list-wallets", workspace_id=1)
    day.get("get-vault-limits", **vault)
    day.get("check-vault-limit", **vault, amount_to_check="1")
    day.post("update-vault", **vault, transaction_limit="9", **CYCLE)
    day.policies.is_reachable = False
    shown, *_ = day.get("list-wallets", workspace_id=1)
    day.policies.is_reachable = True
    only = "limit_error" in shown and "detailed_vault_limits" not in shown
    how = "200, `limit_error` in the place of `detailed_vault_limits`"
    day.shown("policy service unreachable when reading a vault", only, how)


def pay(day: Day, contract_id: str) -> None:
    """The specification's ``recipients`` are texts: links that carry amounts."""
    day.desk.deposit(100_000, 100_000)
    link = f"bitcoin:{SHOP}?amount=0.0002"
    body = {"wallet_id": day.vault_id, "workspace_id": 1, "tx_type": "send", "recipients": [link]}
    made = day.post("create-psbt", **body, description="Rent", op_return="May", contract_ids=[contract_id])
    day.desk.sign_off(made["psbt_id"])
    day.desk.settle()
    assert day.desk.proposal(made["psbt_id"])["txid"]
    for limit in (day.desk.limit, day.desk.limit_role):
        limit("0.00001")
        again = day.desk.admin.post(API + "create-psbt", body)
        day.refused("a movement breaches a role limit or vault limit", again)
        limit("9")


def forward(day: Day) -> None:
    grant(day.desk, "Signer", "PAYMENT_INIT")
    pay_profile(day.desk, "alice", 100_000)
    alice = day.desk.signers["alice"]
    body = {"workspace_id": 1, "vault_id": day.vault_id, "network": "testnet", "fee_sats": 1_000}
    address = profile_of(alice)["wallet_address"]
    day.post("forward-to-vault", alice, **body, amount_sats=20_000, wallet_address=address)
    day.refused(
        "forward-to-vault `wallet_address` disagrees with the platform's view of the member's key",
        alice.post(API + "forward-to-vault", {**body, "amount_sats": 20_000, "wallet_address": BOB}),
    )
    pay_profile(day.desk, "bob", 100_000, blocks=0)
    body["allow_unconfirmed"] = True
    day.post("forward-to-vault", day.desk.signers["bob"], **body, sweep=True)
    ok(deliver(day.desk.world, transaction(address)))
    assert day.get("purchases", alice)


def issue(day: Day) -> str:
    """A token, from its deployment to a call that no node could be told of. Its contract's id."""
    tokens = day.tokens
    tokens.fund(*[100_000] * 6)
    here = {"workspace_id": 1}
    book = day.post("add-whitelist-address", **here, name="Bob", address=BOB)
    day.get("get-whitelist-addresses", **here)
    made = ok(tokens.create(priority="high", white_list_ids=[book["uid"]], whitelist_enabled=True))
    uid = made["contract_uid"]
    day.refused("`init` before one Bitcoin confirmation", tokens.call(uid, "init"))
    tokens.finish(made["psbt_id"])
    tokens.done(uid, "init")
    called = ok(tokens.call(uid, "transfer", BOB, 100, recipients=[BOB], priority="low"))
    tokens.finish(called["psbt_id"])
    listing = {**here, "contract_uid": uid, "wallet_id": day.vault_id, "address": SHOP}
    for call in ("add-to-contract-whitelist", "remove-from-contract-whitelist"):
        tokens.finish(day.post(call, **listing)["psbt_id"])
    day.get("contracts", **here, vault_id=day.vault_id)
    day.get("get-tokens", **here, vault_id=day.vault_id)
    day.get("get-workspace-whitelist", **here)
    _resubmit(day, uid)
    day.get("contract-calls", **here, vault_id=day.vault_id)
    return day.get("contract", **here, contract_uid=uid)["contract_id"]


def _resubmit(day: Day, uid: int) -> None:
    tokens, backends = day.tokens, day.desk.world.platform.background.backends
    called, away = ok(tokens.call(uid, "pause")), dict(backends)
    backends.clear()
    day.desk.sign_off(called["psbt_id"])
    day.desk.outbox.run_due()
    backends.update(away)
    day.post("contract-calls/resubmit", call_uid=called["call_uid"], workspace_id=1)
    day.desk.settle()
    tokens.mine()


def lose_the_index(day: Day) -> None:
    """It has not read the newest blocks."""
    day.desk.mine(2)
    lists = day.get("get-workspace-whitelist", workspace_id=1)
    error, errors = lists["contracts"][0]["error"], lists["vault_errors"]
    day.shown("a token's whitelist cannot be read", error, "200, `contracts[].error`")
    day.shown("a vault cannot be reached when reading whitelists", errors, "200, `vault_errors[]`")


def read_the_log(day: Day) -> None:
    asked = {"org_uid": "1", "workspace_uid": "1", "from_day": "2026-01-01", "to_day": "2027-01-01"}
    day.get("get-logs", org_uid="1", workspace_uid=1)
    day.get("export-audit-logs", **asked, category="audit")
    entries = day.get("get-logs", **asked, category="audit", page=1)["logs"]
    assert {(each["category"], each["action"]) for each in entries} >= {("AUDIT", "EXPORTED")}
    signed = day.get("get-logs", **asked, category="SIGNING", page=1)["logs"]
    assert "SIGNATURE_SUBMITTED" in {each["action"] for each in signed}
    moved = day.get("get-logs", **asked, category="FORWARDING", page=1)["logs"]
    assert moved


@contextmanager
def live(folder: Path) -> Iterator[Day]:
    """The whole day, over."""
    policies = RemotePolicies()
    with open_desk(folder, policies=policies) as desk:
        # Signing in was before anybody listened.
        day = Day(desk, policies, Recorder(desk.world.http))
        ok(desk.create_vault("Reserve"))
        eva = sign_in_with_a_code(day)
        look_at_oneself(day)
        keep_vaults(day)
        keep_people(day, eva)
        contract_id = issue(day)
        pay(day, contract_id)
        forward(day)
        lose_the_index(day)
        read_the_log(day)
        yield day
