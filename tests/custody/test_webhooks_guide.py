"""docs/build/webhooks.md: its example runs, and its table is the platform's; and what no delivery is."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from custody.client.webhooks import TOLERANCE, NotGenuine, verify
from custody.schemas.webhooks import EventKind, WebhookEvent, signed_headers
from custody.server.rules.webhooks import CARRIES

GUIDE = (Path(__file__).parents[2] / "docs" / "build" / "webhooks.md").read_text(encoding="utf-8")
SECRET, OTHER = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXI="
NOW = datetime(2026, 3, 1, tzinfo=UTC)
PING = WebhookEvent(id="e1", sequence=1, kind="ping", workspace_id=1, created_at=NOW, data={})
BODY = PING.model_dump_json().encode()
HEADERS = signed_headers([OTHER, SECRET], "e1", BODY, NOW)


def test_the_signature_is_standard_webhooks_own() -> None:
    """The vector of its specification's reference libraries."""
    sent_at, named = datetime.fromtimestamp(1614265330, UTC), "msg_p5jXN8AQM9LWM0D4loKWxJek"
    made = signed_headers([SECRET], named, b'{"test": 2432232314}', sent_at)
    assert made["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_receiver_of_the_guide() -> None:
    (source,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    names: dict = {}
    exec(compile(source, "webhooks.md", "exec"), names)
    seen: dict = {}
    signed = signed_headers([SECRET], "e1", BODY, datetime.now(UTC))
    headers = {name.title(): value for name, value in signed.items()}
    assert [names["receive"](headers, BODY, SECRET, seen) for _ in range(2)] == [204, 204]
    assert seen == {"e1": "ping"}
    assert names["receive"](HEADERS, BODY, SECRET, seen) == 400, "an old one"


@pytest.mark.parametrize(
    ("changes", "body", "secret"),
    [
        ({}, BODY + b" ", SECRET),
        ({}, BODY, "whsec_bm90IHRoaXMgb25l"),
        ({"webhook-id": "e2"}, BODY, SECRET),
        ({"webhook-timestamp": str(int(NOW.timestamp()) + 1)}, BODY, SECRET),
        ({"webhook-timestamp": "-1"}, BODY, SECRET),
        ({"webhook-timestamp": "9" * 40}, BODY, SECRET),
        ({"webhook-signature": ""}, BODY, SECRET),
        ({"webhook-signature": HEADERS["webhook-signature"].replace("v1,", "v2,")}, BODY, SECRET),
        ({"webhook-signature": (HEADERS["webhook-signature"] + " ") * 20}, BODY, SECRET),
        (dict.fromkeys(HEADERS, ""), BODY, SECRET),
    ],
)
def test_what_is_not_genuine(changes: dict, body: bytes, secret: str) -> None:
    assert verify(HEADERS, BODY, SECRET, clock=lambda: NOW).id == "e1"
    with pytest.raises(NotGenuine):
        verify({**HEADERS, **changes}, body, secret, clock=lambda: NOW)


@pytest.mark.parametrize("late", [TOLERANCE, -TOLERANCE])
def test_it_is_genuine_for_five_minutes_either_way(late: timedelta) -> None:
    assert verify(HEADERS, BODY, SECRET, clock=lambda: NOW + late)
    with pytest.raises(NotGenuine):
        verify(HEADERS, BODY, SECRET, clock=lambda: NOW + late * 1.01)


def test_every_kind_stands_in_the_table_with_what_it_carries() -> None:
    shown: dict[str, set[str]] = {}
    above: set[str] = set()
    for kinds, carried in re.findall(r"^\| (`[a-z].*?`) \| (.*) \|$", GUIDE, re.MULTILINE):
        named = set(re.findall(r"`(\w+)`", carried))
        above = above if "as above" in carried else named
        shown |= dict.fromkeys(re.findall(r"`([a-z_.]+)`", kinds), above | named)
    assert {kind: set(CARRIES[kind]) for kind in EventKind} == shown
