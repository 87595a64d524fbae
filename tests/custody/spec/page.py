"""docs/understand/conformance.md, from the comparison."""

from collections.abc import Iterator
from pathlib import Path

from tests.custody.spec.conformance import Comparison, Line, Row
from tests.custody.spec.reading import conditions

PAGE = Path(__file__).parents[3] / "docs" / "understand" / "conformance.md"
TITLE = """# The platform's API beside its specification

Each endpoint that the specification names: how many of its fields a running platform took and answered.
`tests/custody/spec/day.py` calls each with what the specification names and nothing else. –: the
specification is silent, and the server decided. `python -m tests.custody.spec` writes this page.
"""


def render(done: Comparison) -> str:
    exact, summed = sum(not row.wrong for row in done.rows), [_summed(row) for row in done.rows]
    silent = ", ".join(row[0] for row in summed if row[1:] == ("–", "–"))
    parts = [
        TITLE,
        f"**{exact} of {len(done.rows)} endpoints are exact.**\n",
        _table(("endpoint", "taken", "answered"), [row for row in summed if row[1:] != ("–", "–")]),
        f"The specification names no field of {silent}.\n",
        "## What may go wrong\n\nThe specification's conditions, as they came to be on that day.\n",
        _table(("condition", "the specification", "the server"), list(_conditions(done))),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _summed(row: Row) -> tuple[str, ...]:
    asked = [line for line in row.lines if line.part == "asked"]
    answered = [line for line in row.lines if line.part not in {"asked", "permission", "method"}]
    differs = ": **differs**" if row.wrong else ""
    return f"`{row.method} {row.path}`{differs}", _share(asked), _share(answered)


def _share(lines: list[Line]) -> str:
    return f"{sum(line.is_exact for line in lines)}/{len(lines)}" if lines else "–"


def _conditions(done: Comparison) -> Iterator[tuple[str, ...]]:
    for condition, outcome in conditions(done.specification.text).items():
        yield condition, outcome, done.day.told.get(condition, "**not shown**")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(each)} |\n" for each in lines)
