"""The chain of decisions (P42's counterpart on the signer's side)."""

from dataclasses import replace

import pytest

from signerd.core.audit import GENESIS, Entry, Note, first_fault, link


def chain(*subjects: str) -> list[Entry]:
    entries: list[Entry] = []
    for number, subject in enumerate(subjects, 1):
        previous = entries[-1].digest if entries else GENESIS
        entries.append(
            link(number, "2026-01-02T03:04:05.000Z", Note("approved", subject, {"fee": 2}), previous)
        )
    return entries


WHOLE = chain("p-1", "p-2", "p-3")
SECOND = WHOLE[1]


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([], None),
        (WHOLE, None),
        ([WHOLE[0], replace(SECOND, at="2026-01-02T03:04:06.000Z"), WHOLE[2]], (2, "entry 2 was changed")),
        ([WHOLE[0], replace(SECOND, note=Note("approved", "p-2", {"fee": 3}))], (2, "entry 2 was changed")),
        ([WHOLE[0], replace(SECOND, note=Note("declined", "p-2", {"fee": 2}))], (2, "entry 2 was changed")),
        ([WHOLE[0], replace(SECOND, note=Note("approved", "p-9", {"fee": 2}))], (2, "entry 2 was changed")),
        ([WHOLE[0], WHOLE[2]], (2, "entry 2 is missing")),
        # Written anew, with a hash of its own.
        ([*chain("p-1", "p-9"), WHOLE[2]], (3, "entry 3 does not follow the entry before it")),
    ],
)
def test_what_was_done_to_the_chain_is_named(entries: list[Entry], fault: tuple[int, str] | None) -> None:
    assert first_fault(entries) == fault
