"""A platform that fails, lies about what it sent, or says no: nothing is lost, nothing is made twice."""

from collections.abc import Callable
from functools import partial

import httpx
import pytest

from signerd.core.states import State
from tests.support.daemons import (
    PAUSES_OF_KEPT,
    approve,
    daemon_at,
    hurried_sleep,
    submits,
    until,
    until_state,
)
from tests.support.fake_platform import problem

pytestmark = pytest.mark.anyio


def fails_first(
    times: int, answer: Callable[[], httpx.Response]
) -> Callable[[httpx.Request], httpx.Response | None]:
    left = [times]

    def hook(request: httpx.Request) -> httpx.Response | None:
        if request.url.path == "/api/v1/sign-psbt" and left[0]:
            left[0] -= 1
            return answer()
        return None

    return hook


def dropped() -> httpx.Response:
    raise httpx.ReadError("connection dropped")


def too_slow() -> httpx.Response:
    raise httpx.ReadTimeout("no answer in time")


FAULTS = {
    "drops before": (dropped, False),
    "slow before": (too_slow, False),
    "slow after accepting": (too_slow, True),
    "drops after accepting": (dropped, True),
    "500": (lambda: problem(500, "INTERNAL"), False),
    "503": (lambda: problem(503, "BACKEND_UNAVAILABLE"), False),
    "garbage": (lambda: httpx.Response(200, content=b"<html>"), True),
    "401": (lambda: problem(401, "TOKEN_EXPIRED"), False),
    "in flight": (lambda: problem(409, "IDEMPOTENCY_IN_PROGRESS"), False),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_f_whatever_the_platform_does_the_same_bytes_arrive(daemon, platform, bridge, name):
    answer, after = FAULTS[name]
    hook = fails_first(6, answer)
    if after:
        platform.after = hook
    else:
        platform.before = hook
    await submits(daemon, "p-1")
    told = platform.signatures("p-1")
    assert len({(t["psbt"], t["key"]) for t in told}) == 1
    assert bridge.asked == 1


MAY_CHANGE = {
    "PERMISSION_DENIED": 403,
    "NOT_ORG_MEMBER": 403,
    "VAULT_FROZEN": 409,
    "NOT_IN_ADDRESS_BOOK": 403,
    "NOT_A_SIGNER": 403,
    "ROLE_LIMIT_EXCEEDED": 403,
    "VAULT_LIMIT_EXCEEDED": 403,
}


async def test_what_is_refused_for_now_is_kept_told_once_for_each_sentence_and_goes_again(
    prepared, platform, bridge
):
    """Each reason three times, with another trace and an outage in between, and then none."""
    answers = [
        answer
        for code, status in MAY_CHANGE.items()
        for answer in (
            partial(problem, status, code, trace="1"),
            dropped,
            partial(problem, status, code, trace="2"),
        )
    ]
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await hurried_sleep(seconds)

    platform.before = lambda r: answers.pop(0)() if answers and "sign-psbt" in r.url.path else None
    async with daemon_at(prepared, platform, bridge, sleep=sleep) as daemon:
        await submits(daemon, "p-1")
        lines = [line for line in daemon.feed.since(0, "p-1") if line.kind in {"attention", "state"}]
        entries = [entry.note for entry in daemon.journal.audit()]
    told = [line.text for line in lines if line.kind == "attention"]
    assert all(code in sentence for code, sentence in zip(MAY_CHANGE, told, strict=True))
    assert "signerd submits it again by itself, at least every 15 minutes" in told[0]
    assert [line.text for line in lines if line.kind == "state"][-3:] == ["submitting", "kept", "submitted"]
    after = [note.kind for note in entries if note.subject == "p-1"]
    assert after[after.index("signed") :] == ["signed", "submitting"] + ["kept"] * len(told) + ["submitted"]
    kept = [pause for pause in pauses if pause in PAUSES_OF_KEPT]
    assert kept[: len(PAUSES_OF_KEPT)] == list(PAUSES_OF_KEPT)
    assert PAUSES_OF_KEPT[-1] == 675.0, "a quarter of an hour at last, at the middle of the jitter"
    assert bridge.asked == 1


async def test_a_payment_that_was_replaced_is_not_submitted_when_it_comes_back(prepared, platform, bridge):
    """Approved while the treasurer took it back; that is rejected later, and the payment is pending again."""
    platform.before = lambda r: problem(409, "STATE_CONFLICT") if "sign-psbt" in r.url.path else None
    async with daemon_at(prepared, platform, bridge) as daemon:
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.WITHDRAWN)
        platform.before = lambda _request: None
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until(lambda: daemon.follower.reachable)
        assert daemon.journal.record("p-1").state is State.WITHDRAWN
    assert platform.signatures("p-1") == []
    assert bridge.asked == 1


async def test_f_an_unreachable_platform_is_said_and_waited_for(daemon, platform):
    await until_state(daemon, "p-1", State.WAITING_PERSON)

    def down(_request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    platform.before = down
    await until(lambda: not daemon.follower.reachable)
    assert any("platform" in note for note in (await daemon.status()).notes)
    platform.before = lambda _request: None
    await until(lambda: daemon.follower.reachable)


@pytest.mark.parametrize(
    "answer",
    [
        lambda: httpx.Response(200, content=b"<html>captive portal</html>"),
        lambda: httpx.Response(200, json={"not": "a list"}),
        lambda: httpx.Response(204),
        lambda: httpx.Response(500, content=b"oops"),
    ],
)
async def test_f_garbage_for_a_list_is_said_and_survived(prepared, platform, bridge, answer):
    platform.after = lambda r: answer() if r.url.path == "/api/v1/psbt" else None
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until(lambda: daemon.follower.trouble is not None)
        platform.after = lambda _request: None
        await until_state(daemon, "p-1", State.WAITING_PERSON)
