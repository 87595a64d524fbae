"""docs/understand/threat-model.md: every attack has a row and a test, and every test named is there.

A test of an attack has its number in its name (``test_s16_…``), or is a case of the corpus; a row names those
that are called otherwise.
"""

import re
from functools import cache
from itertools import takewhile

import pytest

from tests.attacks.recipes import PROPOSALS
from tests.support.pages import DOCS, ROOT

TESTS = ROOT / "tests"
PAGE = (DOCS / "understand" / "threat-model.md").read_text(encoding="utf-8")
# Numbers of what is gone are not used again.
NUMBERED = {
    "S": {*range(1, 38)},
    "L": {*range(1, 18)} - {5},
    "D": {*range(1, 6)},
    "P": {*range(1, 112)} - {72, *range(85, 93), 100},
}
# By section, what a row says of each.
NAMED = {
    "F: faults": "kill -9|power loss|disk full|clock set back|unplugged|locked|wrong app|wrong passphrase|"
    "wrong device|second program|HWI hangs|worker segfaults|platform down|slow|500|401|garbage|"
    "dropped connection|token expires|suspend|two daemons|1,000|newer version|damaged|extreme integers|"
    "expands to gigabytes|endless pages|fills the journal",
    "E: the explorer": "hides|invents a confirmation|invents blocks|twice|falsifies|invents a spend|"
    "refuses a valid|says that a payment|another network|contradicts itself|"
    "mixture|garbage|elsewhere|pause",
    "N: the node": "another chain|not the block's|moves its chain|filters|forgets|refuses a valid|garbage|"
    "started again|password|mempool is full",
}
ROW = re.compile(r"^(?:- |\| )(?=[SLDP]\d)(.*)$", re.MULTILINE)
NUMBER = re.compile(r"(?:^|, |; )([SLDP]\d+)(?= |,)")
TEST = re.compile(r"`([\w/]+\.py)?(?:::(\w+))*`")


@cache
def cited() -> str:
    """The start of each test's name that begins with a number: ``S16_L2_``."""
    sources = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    return " ".join(m.upper() for source in sources for m in re.findall(r"def test_((?:[a-z]\d*_)+)", source))


def has_a_test(number: str) -> bool:
    return number in PROPOSALS or re.search(rf"(?<![A-Z0-9]){number}_", cited()) is not None


def section(heading: str) -> list[str]:
    below = PAGE.partition(f"## {heading}\n")[2].splitlines()
    return [line for line in takewhile(lambda line: not line.startswith("## "), below) if line[:2] == "- "]


def test_every_number_has_a_row_and_a_test() -> None:
    untested, numbers = [], set()
    for row in ROW.findall(PAGE):
        found = NUMBER.findall(row)
        numbers |= set(found)
        if "::" not in row and not row.startswith("D"):
            untested += [number for number in found if not has_a_test(number)]
    assert untested == []
    assert numbers == {f"{letter}{number}" for letter, every in NUMBERED.items() for number in every}


@pytest.mark.parametrize("heading", NAMED)
def test_every_fault_has_a_row_and_a_test(heading: str) -> None:
    rows = section(heading)
    assert [words for words in NAMED[heading].split("|") if not any(words in row for row in rows)] == []
    assert [row for row in rows if not TEST.search(row)] == []


def test_every_test_that_is_named_is_there() -> None:
    missing, path = [], ""
    for file, test in re.findall(r"`([\w/]+/\w+\.py)?(?:::(?:\w+::)?(\w+))?`", PAGE):
        # A bare name is in the file named before it.
        path = file or path
        source = next((each for each in (TESTS / path, ROOT / path) if each.is_file()), None)
        if source is None or not re.search(
            rf"^ *(async )?def {test}\b" if test else "", source.read_text(), re.MULTILINE
        ):
            missing.append(f"{path}::{test}")
    assert missing == []


def test_everything_that_runs_the_corpus_is_listed() -> None:
    sources = {path.name: path.read_text(encoding="utf-8") for path in (TESTS / "attacks").glob("test_*.py")}
    readers = [name for name, source in sources.items() if "attacks.cases import" in source]
    assert [name for name in readers if name != "test_corpus.py" and f"`{name}`" not in PAGE] == []
