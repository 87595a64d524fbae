"""L5: through the table a device is asked for typed operations and for nothing else, whatever a
caller sends.
"""

import inspect
import re
from typing import Any

from firmware_bridge import Bridge, DeviceState, Question
from signerd.endpoint import PREFIX
from signerd.loopback.answers import ROUTES
from tests.support.daemons import daemon_at, prepare
from tests.support.desk import VAULT, VAULT_ID
from tests.support.fake_bridge import FakeBridge
from tests.support.served import make_outer, served

# All that the daemon ever asks of a device. What is not here cannot be reached: no wipe, no set-up, no
# firmware, no message as it came, and no text of a caller's to sign: ``sign_message`` signs a checked
# challenge for the device's own keys (``account.registration``) and nothing else.
LOOKING = {"list", "refresh", "watch", "events", "registrations_of"}
ASKING = {"unlock", "identify", "cancel", "xpubs", "sign_message", "enrol", "show_address", "sign"}
# By row, which of them it may lead to. Every other row leads to none.
MAY_ASK = {
    ("POST", "/devices/{device_id}/unlock"): {"unlock"},
    ("POST", "/devices/{device_id}/identify"): {"identify"},
    ("POST", "/devices/{device_id}/cancel"): {"cancel"},
    ("POST", "/devices/{device_id}/another-address"): {"cancel"},
    ("POST", "/devices/{device_id}/accounts"): {"xpubs"},
    ("POST", "/registration/preview"): {"xpubs"},
    ("POST", "/registration"): {"xpubs", "sign_message"},
    ("POST", "/vaults/{vault_id}/pin"): {"enrol", "show_address"},
    ("POST", "/vaults/{vault_id}/addresses/show"): {"show_address"},
    ("POST", "/profile/addresses/show"): {"show_address"},
}


class Watched:
    """Alice's device, which writes down what it is asked."""

    def __init__(self) -> None:
        self.inner = FakeBridge(state=DeviceState.READY, secrets={Question.PIN: "1"})
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name not in LOOKING:
            self.asked.append(name)
        return getattr(self.inner, name)


def methods(of: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}


def test_l5_the_daemon_knows_typed_operations_only():
    assert methods(Bridge) == LOOKING | ASKING | {"fingerprint", "xpub"}


def filled(path: str, device_id: str) -> str:
    names = {"device_id": device_id, "vault_id": VAULT_ID}
    return re.sub(r"\{(\w+)\}", lambda found: names.get(found[1], "x-1"), path)


# A body for every one that a row takes; what a device may be asked with is in here.
BODIES: dict[str, dict[str, Any]] = {
    "AccountRequest": {"account": 1},
    "ShowAddressRequest": {"index": 1},
    "QuestionAnswer": {"answer": "wipe"},
    "PinRequest": {"code": VAULT.verification_code},
    "PinPreviewRequest": {},
}


def body_of(row: Any, digest: str, device_id: str) -> dict[str, Any]:
    if row.body == "RegisterRequest":
        return {"json": {"device_id": device_id, "digest": digest}}
    return {} if row.body is None else {"json": BODIES.get(row.body, {})}


def test_l5_a_walk_through_the_whole_table_reaches_the_device_by_its_own_rows_only(tmp_path):
    outer, bridge = make_outer(tmp_path), Watched()
    state = tmp_path / "s"
    state.mkdir(mode=0o700)
    prepare(state)
    daemon = daemon_at(state, outer.platform, bridge)
    with served(daemon, state) as running, running.client() as client, running.raw() as http:
        device_id = bridge.inner.device.id
        digest = client.preview_registration().digest
        reached = {}
        for row in sorted(ROUTES, key=lambda row: row.path != "/registration"):
            if row.path in {"/events", "/session", "/session/code"}:
                continue
            bridge.asked.clear()
            place = PREFIX + filled(row.path, device_id)
            http.request(row.method, place, timeout=60, **body_of(row, digest, device_id))
            reached[row.method, row.path] = set(bridge.asked)
    for row, asked in reached.items():
        assert asked <= MAY_ASK.get(row, set()), row
    # The walk is none if it reaches nothing.
    assert reached["POST", "/devices/{device_id}/identify"] == {"identify"}
    assert reached["POST", "/devices/{device_id}/accounts"] == {"xpubs"}
    assert reached["POST", "/registration"] == {"xpubs", "sign_message"}
    assert reached["POST", "/devices/{device_id}/unlock"] == {"unlock"}
    assert reached["POST", "/vaults/{vault_id}/addresses/show"] == {"show_address"}
    assert reached["POST", "/profile/addresses/show"] == {"show_address"}
    assert set(MAY_ASK) <= set(reached) | {("POST", "/registration/preview")}
