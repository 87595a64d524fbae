"""Who gets in at the loopback: the guard, what it reads of a request and does to an answer; and the page's
sessions, how one is entered, how long it lasts, and what a code is worth.
"""

import re
import time

import anyio
import pytest

from signerd.callers import CallerKind, LoopbackCaller, Right
from signerd.errors import EntryRefused
from signerd.loopback.access import sessions as module
from signerd.loopback.access.gates import AT_ONCE, AppRates, SocketGate
from signerd.loopback.access.guard import Guard
from signerd.loopback.access.sessions import (
    ENTRY_SECONDS,
    IDLE_SECONDS,
    MAX_SESSIONS,
    SESSION_SECONDS,
    PageSessions,
)
from tests.support.served import ScriptedTokens

pytestmark = pytest.mark.anyio
GATE = SocketGate(ScriptedTokens(), AppRates(time.monotonic))


def with_a_program() -> tuple[ScriptedTokens, SocketGate]:
    tokens = ScriptedTokens(
        {("program", None): LoopbackCaller(CallerKind.APP, "Program", frozenset(Right), "a-1")}
    )
    return tokens, SocketGate(tokens, AppRates(time.monotonic))


def scope(**headers: str) -> dict:
    listed = [(name.encode(), value.encode()) for name, value in {"host": "signerd", **headers}.items()]
    return {"type": "http", "method": "POST", "path": "/v1/x", "headers": listed}


class Sent:
    def __init__(self) -> None:
        self.messages: list[dict] = []

    async def __call__(self, message: dict) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        return self.messages[0]["status"]


async def never_reached(*_args: object) -> None:
    raise AssertionError("the application was reached")


async def test_l11_a_body_that_never_comes_is_given_up():
    async def nothing_comes() -> dict:
        await anyio.sleep_forever()
        raise AssertionError

    sent = Sent()
    await Guard(never_reached, GATE, body_seconds=0.01)(scope(), nothing_comes, sent)
    assert sent.status == 408


async def test_a_caller_that_goes_in_the_middle_is_not_answered():
    messages = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> dict:
        return messages.pop(0)

    sent = Sent()
    await Guard(never_reached, GATE)(scope(), receive, sent)
    assert sent.messages == []


async def test_l13_what_ended_while_its_body_came_does_nothing():
    tokens, gate = with_a_program()

    async def receive() -> dict:
        tokens.paired.clear()
        return {"type": "http.request", "body": b"{}"}

    sent = Sent()
    await Guard(never_reached, gate)(scope(authorization="Bearer program"), receive, sent)
    assert sent.status == 401


async def test_l11_of_an_apps_requests_that_wait_for_their_turn_nothing_is_read():
    _tokens, gate = with_a_program()
    read, go = [0], anyio.Event()

    async def app(_scope: dict, _receive, _send) -> None:
        await go.wait()

    async def receive() -> dict:
        read[0] += 1
        return {"type": "http.request", "body": b"{}"}

    guard = Guard(app, gate)
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(guard, scope(authorization="Bearer program"), receive, Sent())
        await anyio.wait_all_tasks_blocked()
        assert read == [AT_ONCE]
        # The person's own are answered meanwhile.
        tasks.start_soon(guard, scope(), receive, Sent())
        await anyio.wait_all_tasks_blocked()
        assert read == [AT_ONCE + 1]
        go.set()
    assert read == [6]


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
