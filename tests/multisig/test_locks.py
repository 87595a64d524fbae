"""Relative locks as consensus reads a sequence (BIP-68, "Specification")."""

from datetime import timedelta

import pytest

from multisig import RelativeLock, relative_lock

DISABLED, IN_TIME = 1 << 31, 1 << 22


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        (1, RelativeLock(blocks=1)),
        (52_560, RelativeLock(blocks=52_560)),
        (0xFFFF, RelativeLock(blocks=0xFFFF)),
        (IN_TIME | 1, RelativeLock(units=1)),
        (IN_TIME | 0xFFFF, RelativeLock(units=0xFFFF)),
        # Bits that mean nothing are masked out, and do not hide the lock.
        (0x7FBF_0000 | 7, RelativeLock(blocks=7)),
        (0, None),
        (IN_TIME, None),
        (DISABLED | 52_560, None),
        (0xFFFF_FFFD, None),
        (0xFFFF_FFFF, None),
    ],
)
def test_a_sequence_is_read_as_consensus_reads_it(sequence: int, expected: RelativeLock | None) -> None:
    assert relative_lock(sequence, 2) == expected
    assert relative_lock(sequence, 0xFFFF_FFFF) == expected


@pytest.mark.parametrize("version", [0, 1])
def test_before_version_2_no_coin_has_to_wait(version: int) -> None:
    assert relative_lock(52_560, version) is None


def test_a_lock_in_time_is_in_units_of_512_seconds_and_in_words() -> None:
    assert RelativeLock(units=0xFFFF).time == timedelta(seconds=33_553_920)
    assert str(RelativeLock(units=169)) == "24.0 hours (169 units of 512 s)"
    assert str(RelativeLock(blocks=52_560)) == "52,560 blocks"
    assert str(RelativeLock(blocks=1)) == "1 block"
