"""An evacuation: the plan, two people's confirmations, and the workers' steps."""

from tests.support.custody import Desk, ok
from tests.support.platform import As, key_offer, register_key, seed

DORA = "dora@example.org"
START = "/api/v1/start-evacuation"


def staff(desk: Desk) -> As:
    """Adds a second administrator, and a member whose key replaces an exposed one."""
    desk.user_ids["dora"] = desk.world.member(1, DORA, "Administrator").user_id
    add_signer(desk, "erin", 9)
    return desk.world.as_user(DORA)


def add_signer(desk: Desk, name: str, device: int) -> int:
    """Adds a member with a key who signs for no vault yet. Returns the user id."""
    email = f"{name}@example.org"
    placed = desk.world.member(1, email)
    desk.user_ids[name], desk.devices[name] = placed.user_id, seed(device)
    desk.signers[name] = desk.world.as_user(email)
    ok(register_key(desk.signers[name], desk.devices[name]))
    return placed.user_id


def add_accounts(desk: Desk, count: int, *names: str) -> None:
    """Each vault takes one account of each signer."""
    for name in names:
        offered = key_offer(desk.devices[name], accounts=count)["vault_accounts"]
        ok(register_key(desk.signers[name], desk.devices[name], vault_accounts=offered))


def key_of(desk: Desk, name: str, vault: dict | None = None) -> str:
    vault = vault or desk.vault
    (found,) = (s["key_id"] for s in vault["signers"] if s["user_id"] == str(desk.user_ids[name]))
    return found


def body_of(keys: list[str], **more: object) -> dict:
    return {"workspace_id": 1, "exposed_keys": keys, **more}


def plan_of(desk: Desk, keys: list[str], **more: object) -> dict:
    return ok(desk.admin.post("/api/v1/preview-evacuation", body_of(keys, **more)))


def ask(desk: Desk, keys: list[str], plan_hash: str, **more: object) -> dict:
    body = body_of(keys, **more, plan_hash=plan_hash)
    return ok(desk.admin.post("/api/v1/request-change", {"workspace_id": 1, "path": START, "body": body}))


def confirm(person: As, change: dict):
    return person.post("/api/v1/confirm-change", {"workspace_id": 1, "change_id": change["change_id"]})


def start(desk: Desk, second: As, keys: list[str], **more: object) -> dict:
    """The report, before any worker has run."""
    change = ask(desk, keys, plan_of(desk, keys, **more)["plan_hash"], **more)
    return ok(confirm(second, change))["answer"]


def report(desk: Desk) -> dict:
    """The newest report."""
    return ok(desk.admin.get("/api/v1/evacuations", workspace_id=1))[0]


def again(desk: Desk, vault_id: str, person: As | None = None):
    body = {"workspace_id": 1, "evacuation_id": report(desk)["evacuation_id"], "vault_id": vault_id}
    return (person or desk.admin).post("/api/v1/sweep-again", body)
