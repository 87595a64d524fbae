"""The table of docs/devices.md that says what each maker's device does in each situation, and how that is known.

`python -m tests.support.transcript_table` writes it between its two marks.
"""

import sys
from pathlib import Path

from device_simulators.transcripts import Entry, Evidence, load_all
from tests.support.situations import SITUATIONS

_DOCS = Path(__file__).parents[2] / "docs" / "devices.md"
_BEGIN, _END = "<!-- transcripts: begin -->\n", "<!-- transcripts: end -->\n"
_OWN_WORDS = {"answered", "signed", "absent"}


def as_markdown() -> str:
    """A row for each situation, a column for each model; with its marks."""
    listed = load_all()
    head = "| situation | " + " | ".join(f"{each.model} {each.firmware}" for each in listed) + " |"
    rows = (
        f"| {situation.text} | " + " | ".join(_cell(each.entries[name]) for each in listed) + " |"
        for name, situation in SITUATIONS.items()
    )
    return _BEGIN + "\n".join([head, "|---|" + "---|" * len(listed), *rows]) + "\n" + _END


def _cell(entry: Entry) -> str:
    if entry.is_absent:
        return "–"
    outcome = " or ".join(word if word in _OWN_WORDS else f"`{word}`" for word in entry.outcomes)
    known = "not compared" if entry.evidence is Evidence.UNKNOWN else str(entry.evidence)
    note = f". {entry.note}" if entry.note else ""
    return f"{outcome} ({known}){note}"


def _write() -> None:
    before, _begin, rest = _DOCS.read_text().partition(_BEGIN)
    _old, _end, after = rest.partition(_END)
    _DOCS.write_text(before + as_markdown() + after)


if __name__ == "__main__":
    sys.exit(_write())
