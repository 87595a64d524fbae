"""The tables of docs/understand/threat-model.md, and the tests that they name."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
DOCUMENT = TESTS.parent / "docs" / "understand" / "threat-model.md"
ROW = re.compile(r"^\| (?P<subject>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
NAMED = re.compile(r"`(?P<path>[\w/]+\.py)?::(?P<name>\w+)`")
FILE = re.compile(r"`(?P<path>[\w/]+\.py)`")


def rows(heading: str) -> dict[str, str]:
    """The table below a heading: the threat, and the tests that cover it."""
    (section,) = re.findall(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL
    )
    found = {match["subject"]: match["tests"] for match in ROW.finditer(section)}
    return {subject: tests for subject, tests in found.items() if "`" in tests}


def missing_tests(heading: str) -> list[str]:
    """Tests of the table that do not exist. A row without tests is an error."""
    missing = []
    for subject, tests in rows(heading).items():
        path, named = "", list(NAMED.finditer(tests))
        assert named, subject
        for match in named:
            # A bare name is in the file named before it.
            path = match["path"] or path
            if not re.search(rf"^ *(async )?def {match['name']}\(", (TESTS / path).read_text(), re.MULTILINE):
                missing.append(f"{path}::{match['name']}")
        missing += [match["path"] for match in FILE.finditer(tests) if not (TESTS / match["path"]).exists()]
    return missing
