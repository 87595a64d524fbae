"""The audit chain (P42) locates any change of a row. Its export (P43) is safe in a spreadsheet, and exact for
a program that checks the chain.
"""

import csv
import io
import re
from dataclasses import replace
from hashlib import sha256
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.common.spreadsheets import csv_lines, neutralise
from custody.server.rules.audit import (
    GENESIS,
    AttestedHash,
    AuditRow,
    ChainedRow,
    Event,
    ExportSummary,
    NotAnExport,
    chain_of,
    event_hash,
    find_export_fault,
    find_fault,
    read_csv,
    restore,
    stored_facts,
    write_csv,
)
from multisig.canonical_json import canonical_json

CHAIN, FIVE = "workspace:7", "abcde"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def row(position: int, description: str = "", **changes: object) -> AuditRow:
    plain = AuditRow(
        event_uid=f"e{position}", chain_id=CHAIN, position=position, org_uid="3", workspace_uid="7",
        timestamp="2026-03-01T12:00:00.000Z", category="KEYS", action="KEY_REGISTERED",
        description=description, facts='{"key":1}', user_uuid=9, user_name="alice@example.org", role_uid="4",
        trace_id="t",
    )  # fmt: skip
    return replace(plain, **changes)


def chain(*descriptions: str) -> list[ChainedRow]:
    rows, previous = [], GENESIS
    for position, description in enumerate(descriptions, start=1):
        hashed = event_hash(previous, row(position, description))
        rows.append(ChainedRow(row(position, description), previous, hashed))
        previous = hashed
    return rows


def altered(chained: ChainedRow, **changes: str) -> ChainedRow:
    return replace(chained, row=replace(chained.row, **changes or {"description": "x"}))


def hashed_anew(chained: ChainedRow) -> ChainedRow:
    return replace(chained, event_hash=event_hash(chained.prev_hash, chained.row))


def fault_of(rows: list[ChainedRow], whole: list[ChainedRow]) -> int | None:
    head = whole[-1].event_hash if whole else GENESIS
    fault = find_fault(CHAIN, rows, len(whole), head)
    return None if fault is None else fault.position


class TestHash:
    def test_is_as_the_contract_writes_it(self) -> None:
        encoded = canonical_json(vars(row(1)))
        assert event_hash(GENESIS, row(1)) == sha256(b"audit-v1" + bytes(32) + encoded).digest()

    @given(st.sampled_from(sorted(vars(row(1)))), TEXT, st.integers(0, 2**53 - 1))
    def test_covers_every_field(self, name: str, text: str, number: int) -> None:
        value = number if isinstance(getattr(row(1), name), int) else text
        changed = replace(row(1), **{name: value})
        assert (event_hash(GENESIS, changed) == event_hash(GENESIS, row(1))) == (changed == row(1))

    def test_each_event_belongs_to_one_chain(self) -> None:
        chains = [chain_of("", ""), chain_of("3", ""), chain_of("3", "7")]
        assert chains == ["platform", "organisation:3", "workspace:7"]


class TestFindFault:
    @pytest.mark.parametrize("whole", ["", "a", "abcde"])
    def test_a_whole_chain_has_none(self, whole: str) -> None:
        assert fault_of(chain(*whole), chain(*whole)) is None

    @pytest.mark.parametrize(
        "change",
        [
            lambda rows, at: [*rows[:at], altered(rows[at]), *rows[at + 1 :]],
            lambda rows, at: [*rows[:at], *rows[at + 1 :]],
            lambda rows, at: [*rows[:at], rows[at + 1], rows[at], *rows[at + 2 :]],
            lambda rows, at: rows[:at],
        ],
        ids=["edited", "removed", "moved", "cut"],
    )
    def test_the_first_row_that_is_not_as_it_was(self, change) -> None:
        assert [fault_of(change(chain(*FIVE), at), chain(*FIVE)) for at in range(4)] == [1, 2, 3, 4]

    def test_a_row_too_many(self) -> None:
        assert fault_of(chain(*FIVE, "f"), chain(*FIVE)) == 7

    def test_a_row_whose_hashes_were_made_again(self) -> None:
        """Of the last one, which no other follows; and of one that says that it stands elsewhere."""
        rows = chain(*FIVE)
        rows[4] = hashed_anew(altered(rows[4]))
        assert fault_of(rows, chain(*FIVE)) == 5
        rows[4] = hashed_anew(replace(rows[4], row=replace(rows[4].row, position=6)))
        assert fault_of(rows, rows) == 5

    def test_a_row_of_another_chain(self) -> None:
        assert find_fault("workspace:1", chain("a"), 1, chain("a")[-1].event_hash).position == 1


class TestEvent:
    SENT = Event("SENT", "// {coins} to [{name}|nobody][{late}, late][; without {vaults}]: {limit}")
    LIMIT: Final = {"sats": 5, "per_cycle": True, "cycle_period": "W", "cycle_day": 2}

    @pytest.mark.parametrize(
        ("facts", "said"),
        [
            ({"name": "Ann", "late": False, "vaults": []}, "1 coin to Ann"),
            ({"name": None, "late": True, "vaults": ["a", "b"]}, "1 coin to nobody, late; without a, b"),
            ({"name": "[{late}|x]", "late": False, "vaults": []}, "1 coin to [{late}|x]"),
        ],
    )
    def test_its_description_is_made_of_its_facts(self, facts: dict, said: str) -> None:
        found = self.SENT.describe({"coins": 1, "limit": self.LIMIT, **facts})
        assert found == f"{said}: 0.00000005 BTC a cycle, W from day 2"

    @pytest.mark.parametrize(
        "text", [None, 5, b"{}", "nonsense", "[7]", '{"a": 1}', '{"a":1,"a":1}', "[" * 9999]
    )
    def test_facts_that_were_altered_are_none(self, text: object) -> None:
        assert stored_facts(text) == {}
        assert stored_facts('{"a":1}') == {"a": 1}


def test_the_chain_hashes_as_exports_that_were_made_say():
    known = row(
        1, "A signature of „p-1“ was submitted", event_uid="event-1", timestamp="2026-01-02T03:04:05.678Z",
        category="SIGNING", action="SIGNATURE_SUBMITTED", facts='{"proposal":"p-1"}', user_uuid=5,
        user_name="Alice", role_uid="2", trace_id="trace",
    )  # fmt: skip
    digest = "fa2d7ba1cde26d66938d71e637981146ecfc944d136af1f668ca324daea79248"
    assert event_hash(GENESIS, known).hex() == digest


CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


def _lines(text: str) -> list[str]:
    """As a file that is opened with newline=""."""
    return list(io.StringIO(text, newline=""))


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

    @given(st.lists(st.lists(CELL | st.sampled_from(FORMULAS), min_size=2, max_size=2)))
    def test_no_cell_of_any_file_begins_like_a_formula(self, rows: list[list[str]]) -> None:
        """Every file is written by this one function; a number may have its minus."""
        cells = [each for row in csv.reader(_lines("".join(csv_lines(["a", "b"], rows)))) for each in row][2:]
        assert [restore(cell) for cell in cells] == [cell for row in rows for cell in row]
        for cell in cells:
            is_number = re.fullmatch(r"-[0-9]+(\.[0-9]+)?", cell)
            assert is_number or not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


class TestFile:
    @given(st.lists(CELL, max_size=5))
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


class TestExport:
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
