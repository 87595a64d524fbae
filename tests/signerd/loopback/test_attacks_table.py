"""The table of the loopback in docs/understand/threat-model.md names tests, and each of them is there (L)."""

from tests.support.documented import missing_tests, rows

HEADING = "L: the loopback interface"
ATTACKS = ("L1", "L2", "L3", "L4", "L7", "L9", "L10", "L11", "L12", "L13", "L14", "L15", "L16", "L17")


def test_every_attack_has_a_row() -> None:
    named = {row.split()[0] for row in rows(HEADING)}
    assert [attack for attack in ATTACKS if attack not in named] == []


def test_every_test_that_is_named_is_there() -> None:
    assert missing_tests(HEADING) == []
