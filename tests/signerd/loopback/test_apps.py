"""Pairing over the real socket: what an app and the person send and get."""

import httpx
import pytest

from signerd.callers import (
    GRANTABLE,
)
from signerd.endpoint import HOST, PREFIX, socket_path
from tests.support.desk import VAULT
from tests.support.served import make_outer, served_daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("apps")
    with served_daemon(folder / "s", make_outer(folder), sign_in=False) as found:
        yield found


@pytest.fixture
def http(daemon):
    transport = httpx.HTTPTransport(uds=str(socket_path(daemon.state)))
    with httpx.Client(transport=transport, base_url=f"http://{HOST}{PREFIX}", trust_env=False) as client:
        yield client


def asked(http, name: str, *rights: str) -> dict[str, str]:
    answer = http.post("/pairings", json={"name": name, "rights": rights})
    assert answer.status_code == 200, answer.text
    return answer.json()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_who_asks_is_told_who_it_is(http):
    me = http.get("/me").json()
    assert (me["kind"], me["network"], me["id"], me["expires"]) == ("terminal", "regtest", None, None)
    assert me["rights"] == [str(right) for right in GRANTABLE]


def test_l3_origins_are_let_in_by_their_exact_name_and_shut_out(http):
    let_in = http.post("/origins", json={"origin": "HTTPS://Wallet.Example:443/", "minutes": 5})
    assert (let_in.status_code, let_in.json()["origin"]) == (200, "https://wallet.example")
    assert [one["origin"] for one in http.get("/origins").json()] == ["https://wallet.example"]
    for wrong in ("wallet.example", "https://*.example", "null", "https://wallet.example/path"):
        refused = http.post("/origins", json={"origin": wrong})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-request")
        assert refused.json()["hint"]
    shut = http.delete("/origins", params={"origin": "https://wallet.example"}).json()
    assert (shut["until"], shut["apps"]) == (None, [])
    assert http.get("/origins").json() == []


def paired(http, name: str, *rights: str) -> dict[str, str]:
    """The headers of an app that has these rights."""
    pairing = asked(http, name, *rights)
    accept = {"code": pairing["code"], "rights": list(rights), "days": 7}
    assert http.post(f"/pairings/{pairing['id']}/accept", json=accept).status_code == 200
    secret = {"secret": pairing["secret"]}
    return bearer(http.post(f"/pairings/{pairing['id']}/collect", json=secret).json()["token"])


def test_l13_who_may_see_vaults_cannot_derive_their_addresses(http):
    reader = paired(http, "Reader", "read")
    (seen,) = http.get("/vaults", headers=reader).json()
    (whole,) = http.get("/vaults").json()
    assert whole["cosigners"]
    assert whole["descriptor"] == VAULT.descriptor
    assert seen == whole | {"cosigners": [], "descriptor": None}
    assert http.get(f"/vaults/{seen['vault_id']}/addresses", headers=reader).status_code == 403
    with_keys = paired(http, "Keys", "read", "xpub")
    assert http.get("/vaults", headers=with_keys).json() == [whole]
    assert http.get(f"/vaults/{seen['vault_id']}/addresses", headers=with_keys).status_code == 200


def test_l13_history_and_settings_are_the_persons(http):
    every = paired(http, "Everything", *(str(right) for right in GRANTABLE))
    assert http.get("/audit/entries", headers=every).status_code == 403
    assert http.get("/settings", headers=every).status_code == 403
    assert http.get("/audit", headers=every).status_code == 200
