"""The table of faults in docs/understand/threat-model.md names tests, and each of them is there (F)."""

from tests.support.documented import missing_tests, rows

HEADING = "F: faults"
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
    "dropped connection",
    "token expires",
    "suspend",
    "two daemons",
    "1,000",
    "newer version",
    "damaged",
    "extreme integers",
    "expands to gigabytes",
    "endless pages",
    "fills the journal",
)


def test_every_fault_has_a_row() -> None:
    assert [fault for fault in FAULTS if not any(fault in row for row in rows(HEADING))] == []


def test_every_test_that_is_named_is_there() -> None:
    assert missing_tests(HEADING) == []
