"""The tables of docs/understand/threat-model.md name tests, and each of them is there.

Of the platform (P), a wrong or broken node (N), a hostile explorer (E).
"""

import re

import pytest

from tests.support.documented import missing_tests, rows

PLATFORM, NODE, EXPLORER = "P: the platform", "N: the node", "E: the explorer"
# What the numbers of features that are gone said is not said again.
NUMBERS = {*range(1, 97), *range(101, 111)} - {72, *range(85, 93)}


def numbers(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"\d+", text)}


def test_every_attack_has_a_row() -> None:
    shown = set().union(*(numbers(re.match(r"[\d, ]+", row)[0]) for row in rows(PLATFORM)))
    assert shown == set(NUMBERS)
    assert len(rows(NODE)) >= 10
    assert len(rows(EXPLORER)) >= 12


@pytest.mark.parametrize("heading", [PLATFORM, NODE, EXPLORER])
def test_every_test_that_is_named_is_there(heading: str) -> None:
    assert missing_tests(heading) == []
