"""The export (P43): safe in a spreadsheet, exact for a program that checks the chain."""

import csv
import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.common.spreadsheets import csv_lines, neutralise
from custody.server.rules.audit import (
    GENESIS,
    AttestedHash,
    AuditRow,
    ChainedRow,
    ExportSummary,
    NotAnExport,
    event_hash,
    find_export_fault,
    read_csv,
    restore,
    write_csv,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


def chain(*descriptions: str) -> list[ChainedRow]:
    rows, previous = [], GENESIS
    for position, description in enumerate(descriptions, start=1):
        row = AuditRow(
            event_uid=f"e{position}", chain_id="workspace:7", position=position, org_uid="3",
            workspace_uid="7", timestamp="2026-03-01T12:00:00.000Z", category="KEYS", action="KEY_REGISTERED",
            description=description, facts='{"key":1}', user_uuid=9, user_name="alice@example.org",
            role_uid="4", trace_id="t",
        )  # fmt: skip
        rows.append(ChainedRow(row, previous, event_hash(previous, row)))
        previous = rows[-1].event_hash
    return rows


def _lines(text: str) -> list[str]:
    """As a file that is opened with newline=""."""
    return list(io.StringIO(text, newline=""))


def altered(chained: ChainedRow, **changes: str) -> ChainedRow:
    return replace(chained, row=replace(chained.row, **changes or {"description": "x"}))


def hashed_anew(chained: ChainedRow) -> ChainedRow:
    return replace(chained, event_hash=event_hash(chained.prev_hash, chained.row))


def check(rows, marks=None) -> tuple[ExportSummary, str | None]:
    seen = ExportSummary()
    fault = find_export_fault(rows, seen, marks)
    return seen, fault and f"{fault.position}: {fault.sentence}"


FORMULAS = (
    "=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20A1", "\t=1", "\r=1", "\n=1",
    "'=1", "''",
)  # fmt: skip


class TestCells:
    @pytest.mark.parametrize("text", ["", "a", "key 1", "1 - 1", '"=1"', " =1"])
    def test_all_else_is_left_alone(self, text: str) -> None:
        assert neutralise(text) == text

    def test_a_hash_that_begins_like_a_formula_is_words_too(self) -> None:
        """In base64 one in 64 begins with +; a program that compares it drops the apostrophe."""
        row = replace(chain("a")[0], event_hash=b"\xf8" + bytes(31))
        text = "".join(write_csv([row]))
        assert ",'+AAAAAAAA" in text
        assert list(read_csv(_lines(text))) == [row]

    @given(st.lists(st.lists(TEXT | st.sampled_from(FORMULAS), min_size=2, max_size=2)))
    def test_no_cell_of_any_file_begins_like_a_formula(self, rows: list[list[str]]) -> None:
        """Every file is written by this one function; a number may have its minus."""
        cells = [each for row in csv.reader(_lines("".join(csv_lines(["a", "b"], rows)))) for each in row][2:]
        assert [restore(cell) for cell in cells] == [cell for row in rows for cell in row]
        for cell in cells:
            is_number = re.fullmatch(r"-[0-9]+(\.[0-9]+)?", cell)
            assert is_number or not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


class TestFile:
    @given(st.lists(TEXT, max_size=5))
    def test_reads_back_to_the_same_rows(self, descriptions: list[str]) -> None:
        rows = chain(*descriptions)
        assert list(read_csv(_lines("".join(write_csv(rows))))) == rows

    @pytest.mark.parametrize(
        ("old", "new", "sentence"),
        [
            ("event_uid,", "uid,", "does not name the columns"), (",9,", ",nine,", "'nine' is no number"),
            (",9,", ",٩,", "is no number"), (",9,", ",", "14 cells"), (",KEYS,", ',"KEYS', "Line"),
            ("AAAA", "A?AA", "Line 2"),
        ],
    )  # fmt: skip
    def test_what_is_no_export_is_named(self, old: str, new: str, sentence: str) -> None:
        text = "".join(write_csv(chain("a"))).replace(old, new, 1)
        with pytest.raises(NotAnExport, match=sentence.replace("?", r"\?")):
            list(read_csv(_lines(text)))

    def test_an_empty_file_is_no_export(self) -> None:
        with pytest.raises(NotAnExport):
            list(read_csv([]))


class TestChain:
    def test_a_whole_export_has_no_fault_and_what_a_filter_left_out_is_counted(self) -> None:
        rows = chain("a", "b", "c", "d", "e")
        for kept, gaps in ((rows, 0), (rows[::2], 2)):
            seen, fault = check(kept)
            assert (fault, seen.chain_id, seen.rows) == (None, "workspace:7", len(kept))
            assert (seen.first, seen.last, seen.gaps) == (1, 5, gaps)

    @pytest.mark.parametrize(
        ("change", "fault"),
        [
            (lambda a, b, c: [a, altered(b), c], "2: the row was altered"),
            (lambda a, b, c: [a, hashed_anew(altered(b)), c], "3: the row does not follow the one before it"),
            (lambda a, b, _: [b, a], "1: the row does not come after the one before it"),
            (
                lambda a, b, _: [a, hashed_anew(altered(b, chain_id="workspace:8", workspace_uid="8"))],
                "2: the row belongs to another chain than the one before it",
            ),
        ],
    )
    def test_the_first_fault_is_named(self, change, fault: str) -> None:
        assert check(change(*chain("a", "b", "c")))[1] == fault

    def test_a_checkpoint_confirms_or_contradicts(self) -> None:
        """A file that was written anew, hashes and all, agrees with itself;
        the checkpoint does not agree with it.
        """
        rows, forged = chain("a", "b"), chain("a", "x")
        marks = {"workspace:7": {2: AttestedHash(rows[1].event_hash, "checkpoint 1")}}
        assert check(forged)[1] is None
        assert check(forged, marks)[1] == "2: checkpoint 1 names another row at this position"
        assert check(rows, marks)[0].confirmed == 1
