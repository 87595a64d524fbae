"""The guard: what it reads of a request, and what it does to an answer."""

import time

import anyio
import pytest

from signerd.callers import CallerKind, LoopbackCaller, Right
from signerd.loopback.access.gates import AT_ONCE, AppRates, SocketGate
from signerd.loopback.access.guard import Guard
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
