"""The table of attacks in docs/threat-model.md names tests, and each of them is there (P)."""

import re

from tests.support.documented import DOCUMENT, missing_tests, rows

HEADING = "P: the platform"
NUMBERS = range(1, 52)
# Each waits for its endpoints.
NOT_YET = {15, 31, 32, 33, 34, 35}


def numbers(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"\d+", text)}


def test_every_attack_has_a_row_or_is_waited_for() -> None:
    shown = set().union(*(numbers(re.match(r"[\d, ]+", row)[0]) for row in rows(HEADING)))
    assert shown == set(NUMBERS) - NOT_YET


def test_every_test_that_is_named_is_there() -> None:
    assert missing_tests(HEADING) == []


def test_what_is_not_there_yet_is_said() -> None:
    (sentence,) = re.findall(r"^Not yet: (.*)$", DOCUMENT.read_text(), re.MULTILINE)
    assert {15, 35} <= numbers(sentence)
