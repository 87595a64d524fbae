"""The table of faults in docs/threat-model.md names tests, and each of them is there (F)."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
DOCUMENT = TESTS.parent / "docs" / "threat-model.md"
ROW = re.compile(r"^\| (?P<fault>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
NAMED = re.compile(r"`(?P<path>[\w/]+\.py)?::(?P<name>\w+)`")
# The list that the project set itself, in words that a row has.
FAULTS = (
    "kill -9",
    "power loss",
    "disk full",
    "clock set back",
    "unplugged",
    "locked",
    "wrong app",
    "wrong passphrase",
    "wrong device",
    "second program",
    "HWI hangs",
    "worker segfaults",
    "platform down",
    "slow",
    "500",
    "401",
    "garbage",
    "drops the connection",
    "token expires",
    "suspend",
    "two daemons",
    "1,000",
    "older version",
    "damaged",
)


def rows() -> dict[str, str]:
    (section,) = re.findall(r"^## F: faults\n(.*?)^## ", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    found = {match["fault"]: match["tests"] for match in ROW.finditer(section)}
    return {fault: tests for fault, tests in found.items() if fault != "fault" and set(fault) != {"-"}}


def test_every_fault_has_a_row() -> None:
    assert [fault for fault in FAULTS if not any(fault in row for row in rows())] == []


def test_every_test_that_is_named_is_there() -> None:
    missing = []
    for fault, tests in rows().items():
        path, named = "", list(NAMED.finditer(tests))
        assert named, fault
        for match in named:
            # Only a name: in the file named before it.
            path = match["path"] or path
            if not re.search(rf"^ *(async )?def {match['name']}\(", (TESTS / path).read_text(), re.MULTILINE):
                missing.append(f"{path}::{match['name']}")
    assert missing == []
