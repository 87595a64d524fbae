"""What two people decide: one administrator asks for a change, a second one confirms it (P56)."""

import httpx

from tests.support.custody import ok
from tests.support.platform import As, World

DORA = "dora@example.org"


def second_administrator(world: World) -> As:
    world.member(1, DORA, "Administrator")
    return world.as_user(DORA)


def rule(
    person: As, *, is_on: bool = True, hours: int = 0, workspace_id: int = 1, role_id: int = 1
) -> httpx.Response:
    """Whether a second person, who holds the role, confirms; ``hours`` of cooling off."""
    named = {"confirming_role_id": role_id} if is_on else {}
    body = {"workspace_id": workspace_id, "is_on": is_on, "cooling_off_hours": hours}
    return person.post("/api/v1/update-second-person-rule", body | named)


def ruled(world: World, admin: As, *, hours: int = 0) -> As:
    """The rule is on. Returns the second administrator."""
    second = second_administrator(world)
    ok(rule(admin, hours=hours))
    return second


def ask(person: As, path: str, /, **body: object) -> httpx.Response:
    """Asks for a call of the first workspace."""
    asked = {"workspace_id": 1, "path": f"/api/v1/{path}", "body": {"workspace_id": 1, **body}}
    return person.post("/api/v1/request-change", asked)


def decide(person: As, change: dict, word: str = "confirm", **more: object) -> httpx.Response:
    body = {"workspace_id": 1, "change_id": change["change_id"]}
    return person.post(f"/api/v1/{word}-change", body | more)
