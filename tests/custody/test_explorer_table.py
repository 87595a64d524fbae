"""The table of a hostile explorer in docs/threat-model.md names tests, and each of them is there (E)."""

from tests.support.documented import missing_tests, rows

HEADING = "E: the explorer"


def test_every_test_that_is_named_is_there() -> None:
    assert len(rows(HEADING)) >= 12
    assert missing_tests(HEADING) == []
