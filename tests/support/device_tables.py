"""Two tables of docs/build/devices.md: how a fault ends on each maker's devices, and what each model does.

`python -m tests.support.device_tables` writes the second one between its markers.
"""

import sys
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from firmware_bridge import Family
from tests.conformance.fault_matrix import FAULTS, OUTCOMES, Outcome, possible
from tests.conformance.situations import SITUATIONS
from tests.conformance.transcripts import Entry, Evidence, load_all

DOCS = Path(__file__).parents[2] / "docs" / "build" / "devices.md"
_BEGIN, _END = "<!-- transcripts: begin -->\n", "<!-- transcripts: end -->\n"
_OWN_WORDS = {"answered", "signed", "absent"}
_KNOWN = {Evidence.SEEN: "", Evidence.READ: " (read)", Evidence.UNKNOWN: " (not compared)"}


_FAMILIES = {Family.TREZOR: "Trezor", Family.COLDCARD: "Coldcard", Family.LEDGER: "Ledger"}


def faults() -> str:
    """A row for each fault, with one outcome where it is every maker's. What happens alike in each phase of
    an operation is one row.
    """
    rows = []
    for _, group in groupby(FAULTS, key=lambda name: (name.partition("-")[0], repr(OUTCOMES[name]))):
        first, *more = group
        text = FAULTS[first].text
        if more:
            text = f"{text.partition(' before ')[0]}, at any moment"
        rows.append(f"| {text} | {_by_maker(OUTCOMES[first])} |")
    return "\n".join(["| fault | outcome |\n|---|---|", *rows]) + "\n"


def _by_maker(outcomes: Mapping[Family, Outcome]) -> str:
    words = {maker: _word(outcomes[family]) for family, maker in _FAMILIES.items()}
    if len(set(words.values())) == 1:
        return words["Trezor"]
    return "; ".join(f"{maker}: {word}" for maker, word in words.items())


def _word(outcome: Outcome) -> str:
    return " or ".join(f"`{error.__name__}`" for error in possible(outcome)) or "signed"


def situations() -> str:
    """A row for what happens in situations in which the models differ or need a word, a column for each
    model; with the markers.
    """
    listed = load_all()
    head = "| situation | " + " | ".join(f"{each.model} {each.firmware}" for each in listed) + " |"
    cells: dict[str, list[str]] = {}
    for name, situation in SITUATIONS.items():
        if _is_worth_a_row([each.entries[name] for each in listed]):
            row = " | ".join(_cell(each.entries[name]) for each in listed)
            cells.setdefault(row, []).append(situation.text)
    rows = (f"| {'; '.join(texts)} | {row} |" for row, texts in cells.items())
    return _BEGIN + "\n".join([head, "|---|" + "---|" * len(listed), *rows]) + "\n" + _END


def _is_worth_a_row(entries: list[Entry]) -> bool:
    present = [entry for entry in entries if not entry.is_absent]
    return len({tuple(entry.outcomes) for entry in present}) > 1 or any(entry.note for entry in present)


def _cell(entry: Entry) -> str:
    if entry.is_absent:
        return "–"
    outcome = " or ".join(word if word in _OWN_WORDS else f"`{word}`" for word in entry.outcomes)
    known = _KNOWN[entry.evidence]
    note = f". {entry.note}" if entry.note else ""
    return f"{outcome}{known}{note}"


def _write() -> None:
    before, _begin, rest = DOCS.read_text().partition(_BEGIN)
    _old, _end, after = rest.partition(_END)
    DOCS.write_text(before + situations() + after)


if __name__ == "__main__":
    sys.exit(_write())
