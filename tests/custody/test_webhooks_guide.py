"""docs/build/webhooks.md: its examples run, and its table is the platform's."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from custody.schemas.webhooks import TOLERANCE, EventKind, WebhookEvent, signature_header
from custody.server.domain.webhooks import CARRIES, RETRIES

GUIDE = (Path(__file__).parents[2] / "docs" / "build" / "webhooks.md").read_text(encoding="utf-8")
SECRET = "whsec_of-this-test"
EVENT = WebhookEvent(
    id="e1", sequence=1, kind="ping", workspace_id=1, created_at=datetime(2026, 3, 1, tzinfo=UTC), data={}
)
BODY = EVENT.model_dump_json().encode()


def example(language: str, holding: str) -> str:
    (source,) = [
        text for text in re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL) if holding in text
    ]
    return source


def function(name: str):
    names: dict = {}
    exec(compile(example("python", f"def {name}("), f"webhooks.md:{name}", "exec"), names)
    return names[name]


def signed(*secrets: str, late: timedelta = timedelta(0)) -> str:
    return signature_header(secrets or (SECRET,), BODY, datetime.now(UTC) - late)


def test_the_receiver_with_the_sdk() -> None:
    receive, seen = function("receive"), {}
    headers = {"Custody-Signature": signed()}
    assert [receive(headers, BODY, SECRET, seen) for _ in range(2)] == [204, 204]
    assert seen == {"e1": "ping"}
    assert receive(headers, BODY + b" ", SECRET, seen) == 400
    assert receive({}, BODY, SECRET, seen) == 400
    assert receive({"Custody-Signature": signed(late=2 * TOLERANCE)}, BODY, SECRET, seen) == 400


def test_the_receiver_without_it() -> None:
    is_genuine = function("is_genuine")
    assert is_genuine(signed(), BODY, SECRET)
    assert is_genuine(signed("whsec_new", SECRET), BODY, SECRET)
    assert not is_genuine(signed(), BODY + b" ", SECRET)
    assert not is_genuine(signed("whsec_other"), BODY, SECRET)
    assert not is_genuine(signed(late=2 * TOLERANCE), BODY, SECRET)


def test_every_kind_stands_in_the_table_with_what_it_carries() -> None:
    shown: dict[str, set[str]] = {}
    above: set[str] = set()
    for kinds, carried in re.findall(r"^\| (`[a-z].*?`) \| (.*) \|$", GUIDE, re.MULTILINE):
        named = set(re.findall(r"`(\w+)`", carried))
        above = above if "as above" in carried else named
        shown |= dict.fromkeys(re.findall(r"`([a-z_.]+)`", kinds), above | named)
    assert {kind: set(CARRIES[kind]) for kind in EventKind} == shown


def test_the_times_of_the_attempts_are_these() -> None:
    said = re.search(r"after 10 seconds, 1, 5 and 30 minutes, ([0-9, and]+) hours", GUIDE)
    assert said is not None
    hours = [int(number) for number in re.findall("[0-9]+", said[1])]
    assert [delay.total_seconds() for delay in RETRIES] == [
        10,
        60,
        300,
        1800,
        *(3600 * each for each in hours),
    ]
