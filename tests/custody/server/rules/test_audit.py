"""The audit chain (P42) locates any change of a row."""

from dataclasses import replace
from hashlib import sha256
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.server.rules.audit import (
    GENESIS,
    AuditRow,
    ChainedRow,
    Event,
    chain_of,
    event_hash,
    find_fault,
    stored_facts,
)
from multisig.canonical_json import canonical_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def row(position: int, **changes: object) -> AuditRow:
    plain = AuditRow(
        event_uid=f"e{position}", chain_id="platform", position=position, org_uid="", workspace_uid="",
        timestamp="2026-03-01T12:00:00.000Z", category="SIGN_IN", action="SIGNED_IN", description="",
        facts='{"proof":"with a password"}',
        user_uuid=7, user_name="alice@example.org", role_uid="", trace_id="t",
    )  # fmt: skip
    return replace(plain, **changes)


def chain(length: int) -> list[ChainedRow]:
    rows, previous = [], GENESIS
    for position in range(1, length + 1):
        hashed = event_hash(previous, row(position))
        rows.append(ChainedRow(row(position), previous, hashed))
        previous = hashed
    return rows


def edited(chained: ChainedRow) -> ChainedRow:
    return replace(chained, row=replace(chained.row, description="edited"))


def fault_of(rows: list[ChainedRow], whole: list[ChainedRow]) -> int | None:
    head = whole[-1].event_hash if whole else GENESIS
    fault = find_fault("platform", rows, len(whole), head)
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
        assert [chain_of("", ""), chain_of("3", ""), chain_of("3", "7")] == [
            "platform",
            "organisation:3",
            "workspace:7",
        ]


class TestFindFault:
    @pytest.mark.parametrize("length", [0, 1, 5])
    def test_a_whole_chain_has_none(self, length: int) -> None:
        assert fault_of(chain(length), chain(length)) is None

    @pytest.mark.parametrize(
        "change",
        [
            lambda rows, at: [*rows[:at], edited(rows[at]), *rows[at + 1 :]],
            lambda rows, at: [*rows[:at], *rows[at + 1 :]],
            lambda rows, at: [*rows[:at], rows[at + 1], rows[at], *rows[at + 2 :]],
            lambda rows, at: rows[:at],
        ],
        ids=["edited", "removed", "moved", "cut"],
    )
    def test_the_first_row_that_is_not_as_it_was(self, change) -> None:
        assert [fault_of(change(chain(5), at), chain(5)) for at in range(4)] == [1, 2, 3, 4]

    def test_a_row_too_many(self) -> None:
        assert fault_of(chain(6), chain(5)) == 7

    def test_a_row_whose_hashes_were_made_again(self) -> None:
        """Of the last one, which no other follows; and of one that says that it stands elsewhere."""
        rows = chain(5)
        other = edited(rows[4]).row
        rows[4] = ChainedRow(other, rows[3].event_hash, event_hash(rows[3].event_hash, other))
        assert fault_of(rows, chain(5)) == 5
        moved = replace(other, position=6)
        rows[4] = ChainedRow(moved, rows[3].event_hash, event_hash(rows[3].event_hash, moved))
        assert fault_of(rows, rows) == 5

    def test_a_row_of_another_chain(self) -> None:
        assert find_fault("workspace:1", chain(2), 2, chain(2)[-1].event_hash).position == 1


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
    row = AuditRow(
        event_uid="event-1",
        chain_id="workspace:7",
        position=1,
        org_uid="3",
        workspace_uid="7",
        timestamp="2026-01-02T03:04:05.678Z",
        category="SIGNING",
        action="SIGNATURE_SUBMITTED",
        description="A signature of „p-1“ was submitted",
        facts='{"proposal":"p-1"}',
        user_uuid=5,
        user_name="Alice",
        role_uid="2",
        trace_id="trace",
    )
    digest = "fa2d7ba1cde26d66938d71e637981146ecfc944d136af1f668ca324daea79248"
    assert event_hash(GENESIS, row).hex() == digest
