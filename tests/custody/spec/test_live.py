"""The specification's records as a running platform answers with them, value by value."""

import pytest

from tests.custody.spec.places import PLACES
from tests.custody.spec.reading import Specification
from tests.custody.spec.shapes import reach, value_is
from tests.support.custody import Desk, ok
from tests.support.onboarding import REQUEST
from tests.support.platform import PASSWORD

# What the reading calls are asked. A path that is not here is not read: it changes something, or needs an
# outsider.
QUERIES = {
    "/api/v1/get-user-info": {},
    "/api/v1/get-roles-and-perms-detailed": {"workspace_id": 1},
    "/api/v1/list-wallets": {"workspace_id": 1},
    "/api/v1/get-logs": {"org_uid": 1, "workspace_uid": 1},
    "/api/v1/onboarding-requests": {},
}


@pytest.fixture(scope="module")
def asked(desk: Desk) -> Desk:
    """With a request for an organisation, of which there is none before."""
    ok(desk.admin.post("/api/v1/onboarding-requests", REQUEST))
    return desk


@pytest.mark.parametrize("path", sorted(QUERIES))
def test_every_value_of_a_record_is_of_its_type(path: str, asked: Desk, specification: Specification) -> None:
    answer = ok(asked.admin.get(path, **QUERIES[path]))
    looked_at = check(answer, path, specification)
    assert looked_at


def test_a_signers_own_keys(desk: Desk, specification: Specification) -> None:
    assert check(ok(desk.signers["alice"].get("/api/v1/keys")), "/api/v1/keys", specification) == 1


def test_a_vaults_limits(desk: Desk, specification: Specification) -> None:
    path = "/api/v1/get-vault-limits"
    query = {"workspace_id": 1, "vault_id": desk.vault["id"]}
    assert check(ok(desk.admin.get(path, **query)), path, specification) == 1


def test_a_sign_in(desk: Desk, specification: Specification) -> None:
    """With the cookie, and with ``token_2fa`` unused."""
    body = {"email": "alice@example.org", "password": PASSWORD, "location": "Bern", "device": "desk"}
    answer = desk.world.http.post("/auth/login", json=body)
    desk.world.http.cookies.clear()
    signed_in = ok(answer)
    for name, words in specification.calls["/auth/login"].answered.items():
        assert words == "User" or value_is(signed_in[name], words), name
    assert (signed_in["success"], signed_in["requires_2FA"]) == (True, False)
    assert signed_in["token"]
    assert "httponly" in answer.headers["Set-Cookie"].lower()
    assert check(signed_in, "/auth/login", specification) == 1


def check(answer, path: str, specification: Specification) -> int:
    """How many records were looked at."""
    count = 0
    for record, places in PLACES.items():
        for trail in (trail for shown, trail in places if shown == path):
            for value in reach(answer, trail):
                count += 1
                for name, words in specification.records[record].items():
                    assert name in value, f"{record} without {name}"
                    assert value_is(value[name], words), f"{record}.{name} is {value[name]!r}, no {words}"
    return count
