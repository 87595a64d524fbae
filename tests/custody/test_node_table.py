"""The table of a wrong or broken node in docs/threat-model.md names tests, and each of them is there (N)."""

from tests.support.documented import missing_tests, rows

HEADING = "N: the node"


def test_every_test_that_is_named_is_there() -> None:
    assert len(rows(HEADING)) >= 10
    assert missing_tests(HEADING) == []
