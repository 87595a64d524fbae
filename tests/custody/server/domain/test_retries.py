"""Deliveries are tried for three days, and one that fails takes no worker from the others."""

from datetime import UTC, datetime, timedelta

from custody.server.domain.retries import (
    AFTER_A_HANG,
    GIVEN_UP_AFTER,
    LONGEST_PAUSE,
    RETRIES,
    SHORTEST_PAUSE,
    is_hopeless,
    next_attempt,
    quiet_until,
)

START = datetime(2026, 3, 1, tzinfo=UTC)


def test_it_is_tried_eleven_times_in_three_days() -> None:
    now, attempts = START, 1
    while (following := next_attempt(attempts, START, now)) is not None:
        assert following > now
        now, attempts = following, attempts + 1
    assert attempts == len(RETRIES) + 1
    assert timedelta(days=2.9) < now - START <= GIVEN_UP_AFTER


def test_it_is_given_up_after_three_days_however_few_the_attempts() -> None:
    assert next_attempt(2, START, START + GIVEN_UP_AFTER) is None


def test_the_longer_a_receiver_fails_the_longer_it_is_left_in_peace() -> None:
    assert quiet_until(START, START) == START + SHORTEST_PAUSE
    assert quiet_until(START, START, hung=True) == START + AFTER_A_HANG
    later = START + timedelta(hours=1)
    assert quiet_until(START, later) == later + timedelta(minutes=7, seconds=30)
    days = START + timedelta(days=2)
    assert quiet_until(START, days) == days + LONGEST_PAUSE


def test_a_receiver_is_hopeless_after_five_days() -> None:
    assert not is_hopeless(START, START + timedelta(days=4, hours=23))
    assert is_hopeless(START, START + timedelta(days=5))
