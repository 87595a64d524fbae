"""The page's sessions: how one is entered, how long it lasts, and what a code is worth."""

import re

import pytest

from signerd.errors import EntryRefused
from signerd.loopback.access import sessions as module
from signerd.loopback.access.sessions import (
    ENTRY_SECONDS,
    IDLE_SECONDS,
    MAX_SESSIONS,
    SESSION_SECONDS,
    PageSessions,
)


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def sessions(clock):
    return PageSessions(clock)


def test_a_code_is_good_once(sessions):
    code = sessions.entry()
    token = sessions.enter(code)
    assert sessions.find(token) is not None
    with pytest.raises(EntryRefused):
        sessions.enter(code)


def test_l7_a_code_has_fifty_bits_and_no_two_are_alike(sessions):
    codes = {PageSessions(sessions.clock).entry() for _ in range(200)}
    assert len(codes) == 200
    assert all(re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{5}-[0-9A-HJKMNP-TV-Z]{5}", code) for code in codes)


def test_a_code_may_be_typed_as_people_type(clock):
    sessions = PageSessions(clock, lambda count: bytes(range(count)))
    assert sessions.entry() == "01234-56789"
    assert sessions.enter("o i2 34--56789")


def test_a_code_is_good_for_half_a_minute(sessions, clock):
    code = sessions.entry()
    clock.now += ENTRY_SECONDS
    with pytest.raises(EntryRefused):
        sessions.enter(code)


def test_l16_no_number_of_wrong_codes_takes_the_persons_own_away(sessions):
    code = sessions.entry()
    for wrong in [code[:-1], *["AAAAA-AAAAA"] * 100]:
        with pytest.raises(EntryRefused):
            sessions.enter(wrong)
    assert sessions.enter(code)


def test_only_so_many_codes_are_open_at_once(sessions):
    codes = [sessions.entry() for _ in range(module.MAX_ENTRIES + 1)]
    with pytest.raises(EntryRefused):
        sessions.enter(codes[0])
    assert sessions.enter(codes[1])


@pytest.mark.parametrize(
    ("step", "seconds"), [(IDLE_SECONDS, IDLE_SECONDS), (IDLE_SECONDS - 1, SESSION_SECONDS)]
)
def test_a_session_ends_when_idle_and_at_the_end_of_the_day(sessions, clock, step, seconds):
    token, begun = sessions.enter(sessions.entry()), clock.now
    while clock.now + step < begun + seconds:
        clock.now += step
        assert sessions.find(token) is not None
    clock.now = begun + seconds
    assert sessions.find(token) is None
    assert not sessions.stands(token)


def test_to_ask_whether_it_stands_is_no_use_of_it(sessions, clock):
    token = sessions.enter(sessions.entry())
    clock.now += IDLE_SECONDS - 1
    assert sessions.stands(token)
    clock.now += 1
    assert not sessions.stands(token)


def test_one_session_more_ends_the_one_that_was_used_least_lately(sessions, clock):
    tokens = []
    for _ in range(MAX_SESSIONS):
        tokens.append(sessions.enter(sessions.entry()))
        clock.now += 1
    assert sessions.find(tokens[0])
    assert sessions.enter(sessions.entry())
    assert [token for token in tokens if not sessions.stands(token)] == [tokens[1]]


def test_l10_no_secret_is_kept_or_shown(sessions):
    code = sessions.entry()
    token = sessions.enter(code)
    assert token not in repr(sessions.find(token))
    assert token not in str(vars(sessions))
