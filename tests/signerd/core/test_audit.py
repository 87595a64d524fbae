"""The chain of decisions (P42's counterpart on the signer's side)."""

from dataclasses import replace

import pytest

from signerd.core.audit import GENESIS, Entry, Note, first_fault, link


def chain(length: int = 4) -> list[Entry]:
    entries: list[Entry] = []
    for number in range(1, length + 1):
        previous = entries[-1].digest if entries else GENESIS
        note = Note("approved", f"p-{number}", {"fee_sats": number, "names": ["a", "b"]})
        entries.append(link(number, "2026-01-02T03:04:05.000Z", note, previous))
    return entries


def test_a_whole_chain_has_no_fault() -> None:
    assert first_fault(chain()) is None
    assert first_fault([]) is None


@pytest.mark.parametrize(
    "change",
    [
        {"at": "2026-01-02T03:04:06.000Z"},
        {"note": Note("approved", "p-2", {"fee_sats": 3, "names": ["a", "b"]})},
        {"note": Note("declined", "p-2", {"fee_sats": 2, "names": ["a", "b"]})},
        {"note": Note("approved", "p-3", {"fee_sats": 2, "names": ["a", "b"]})},
    ],
)
def test_an_edited_entry_is_named(change: dict[str, object]) -> None:
    entries = chain()
    entries[1] = replace(entries[1], **change)
    assert first_fault(entries) == (2, "entry 2 was changed")


def test_a_deleted_entry_is_named() -> None:
    entries = chain()
    del entries[1]
    assert first_fault(entries) == (2, "entry 2 is missing")


def test_a_rewritten_entry_breaks_the_next_one() -> None:
    entries = chain()
    entries[1] = link(2, entries[1].at, Note("approved", "p-9"), entries[0].digest)
    assert first_fault(entries) == (3, "entry 3 does not follow the entry before it")
