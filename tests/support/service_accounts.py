"""Service accounts: the programs that use them, and the people who make them."""

from datetime import timedelta

import httpx

from tests.support.custody import ok
from tests.support.platform import As, World


def create(world: World, maker: As, **changes: object) -> httpx.Response:
    """From the tests' own address, for a month."""
    ends = (world.clock() + timedelta(days=30)).isoformat()
    body = {"workspace_id": 1, "name": "Payroll", "expires_at": ends}
    body |= {"rights": ["VIEW_BALANCES"], "networks": ["192.0.2.0/24"]}
    return maker.post("/api/v1/create-service-account", body | changes)


def issue(maker: As, account_id: int, **changes: object) -> httpx.Response:
    body = {"workspace_id": 1, "service_account_id": account_id, **changes}
    return maker.post("/api/v1/issue-service-secret", body)


def revoke(person: As, account_id: int, workspace_id: int = 1) -> httpx.Response:
    body = {"workspace_id": workspace_id, "service_account_id": account_id}
    return person.post("/api/v1/revoke-service-account", body)


def program(maker: As, account_id: int, **changes: object) -> As:
    """The calls of the account's program, with a new secret."""
    return holding(maker.http, ok(issue(maker, account_id, **changes))["secret"])


def holding(http: httpx.Client, secret: str) -> As:
    return As(http, {"Authorization": f"Bearer {secret}"})


def made(world: World, maker: As, **changes: object) -> tuple[int, As]:
    """An account and its program."""
    account_id = ok(create(world, maker, **changes))["service_account_id"]
    return account_id, program(maker, account_id)
