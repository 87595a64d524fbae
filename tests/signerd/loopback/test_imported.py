"""Imports over the real socket: by the person's own program and by paired apps with their tokens."""

import base64
import json

import httpx
import pytest

from multisig import PsbtLimits
from signerd.endpoint import HOST, PREFIX, socket_path
from signerd.shapes.limits import MAX_PSBT_BODY, MAX_PSBT_BYTES, MAX_PSBT_TEXT
from tests.support.bills import bill
from tests.support.desk import VAULT
from tests.support.served import make_outer, served_daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imported")
    with served_daemon(folder / "s", make_outer(folder)) as found:
        yield found


@pytest.fixture(scope="module")
def http(daemon):
    transport = httpx.HTTPTransport(uds=str(socket_path(daemon.state)))
    base = f"http://{HOST}{PREFIX}"
    with httpx.Client(transport=transport, base_url=base, trust_env=False, timeout=30) as client:
        yield client


def paired(http, name: str, *rights: str) -> dict[str, str]:
    pairing = http.post("/pairings", json={"name": name, "rights": rights}).json()
    accept = {"code": pairing["code"], "days": 7}
    assert http.post(f"/pairings/{pairing['id']}/accept", json=accept).status_code == 200
    collected = http.post(f"/pairings/{pairing['id']}/collect", json={"secret": pairing["secret"]}).json()
    return {"Authorization": f"Bearer {collected['token']}"}


@pytest.fixture(scope="module")
def wallet(http):
    return paired(http, "Wallet", "read", "propose", "approve")


@pytest.fixture(scope="module")
def other(http):
    return paired(http, "Other", "read", "propose", "approve")


@pytest.fixture(scope="module")
def imported(http, wallet):
    answer = http.post("/psbts", json={"psbt": bill().to_base64()}, headers=wallet)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_app_brings_and_the_person_sees_by_whom(http, imported):
    assert (imported["state"], imported["imported_by"]) == ("waiting-for-person", "the program 'Wallet'")
    assert imported["psbt_id"].startswith("b-")
    assert len(imported["psbt_id"]) == 34
    lines = {line["psbt_id"]: line["imported_by"] for line in http.get("/proposals").json()}
    assert lines[imported["psbt_id"]] == "the program 'Wallet'"
    assert [line["psbt_id"] for line in http.get("/psbts").json()] == [imported["psbt_id"]]


def test_l13_an_app_decides_about_nothing_that_was_imported(http, wallet, other, imported):
    """Granted to approve as they are: its own is refused to it, another one's is unknown."""
    path = f"/proposals/{imported['psbt_id']}"
    digest = http.get(path).json()["digest"]
    for decision, body in (("approve", {"digest": digest}), ("decline", {})):
        assert http.post(f"{path}/{decision}", json=body, headers=wallet).status_code == 403
        assert http.post(f"{path}/{decision}", json=body, headers=other).status_code == 404
    assert http.get(f"/psbts/{imported['psbt_id']}").json()["state"] == "waiting-for-person"


def test_l13_an_app_finds_its_own_only(http, wallet, other, imported):
    path = f"/psbts/{imported['psbt_id']}"
    assert http.get(path, headers=wallet).status_code == 200
    unknown = http.get("/psbts/b-0", headers=other)
    for answer in (http.get(path, headers=other), http.delete(path, headers=other)):
        assert (answer.status_code, answer.json()["code"]) == (404, unknown.json()["code"])
    assert http.get("/psbts", headers=other).json() == []
    for who in (wallet, other):
        assert all(line["imported_by"] is None for line in http.get("/proposals", headers=who).json())
        assert http.get(f"/proposals/{imported['psbt_id']}", headers=who).status_code == 404


def test_l13_a_stream_tells_an_app_nothing_of_what_others_imported(daemon, http, wallet, other, imported):
    def heard(headers) -> list[str]:
        found = []
        with http.stream("GET", "/events", params={"after": 0}, headers=headers) as stream:
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    found.append(json.loads(line.removeprefix("data: "))["subject"])
                if found and found[-1] == "the-end":
                    return found
        return found

    daemon.feed("the-end", "info", "")
    assert imported["psbt_id"] in heard(wallet)
    assert imported["psbt_id"] in heard({})
    assert imported["psbt_id"] not in heard(other)


def test_l11_only_its_own_rows_take_a_large_body(http):
    assert PsbtLimits().max_bytes == MAX_PSBT_BYTES
    largest = base64.b64encode(b"psbt\xff".ljust(MAX_PSBT_BYTES, b"\0")).decode()
    assert len(largest) == MAX_PSBT_TEXT
    assert len(largest) < MAX_PSBT_BODY
    seen = http.post("/psbts/inspect", json={"psbt": largest})
    assert seen.status_code == 200
    assert [check["name"] for check in seen.json()["checks"]] == ["psbt-readable"]
    assert http.post("/psbts", json={"psbt": largest + "A" * 1024}).status_code == 413
    for path in ("/session", "/psbts/inspect/", "/pairings"):
        assert http.post(path, json={"psbt": largest}).status_code in {404, 413}
    assert http.post("/session", json={"email": largest, "password": ""}).status_code == 413


def test_l13_who_may_see_vaults_cannot_derive_their_addresses(http, wallet):
    (seen,) = http.get("/vaults", headers=wallet).json()
    (whole,) = http.get("/vaults").json()
    assert (whole["descriptor"], len(whole["cosigners"])) == (VAULT.descriptor, 3)
    assert seen == whole | {"cosigners": [], "descriptor": None}
    assert http.get(f"/vaults/{seen['vault_id']}/addresses", headers=wallet).status_code == 403
    with_keys = paired(http, "Keys", "read", "xpub")
    assert http.get("/vaults", headers=with_keys).json() == [whole]
    assert http.get(f"/vaults/{seen['vault_id']}/addresses", headers=with_keys).status_code == 200
