"""The table of attacks in docs/threat-model.md names tests, and each of them is there (P)."""

import re

from tests.support.documented import missing_tests, rows

HEADING = "P: the platform"
NUMBERS = range(1, 52)


def numbers(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"\d+", text)}


def test_every_attack_has_a_row() -> None:
    shown = set().union(*(numbers(re.match(r"[\d, ]+", row)[0]) for row in rows(HEADING)))
    assert shown == set(NUMBERS)


def test_every_test_that_is_named_is_there() -> None:
    assert missing_tests(HEADING) == []
