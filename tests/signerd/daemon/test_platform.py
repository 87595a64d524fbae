"""A platform that fails, lies about what it sent, or says no: nothing is lost, nothing is made twice."""

from collections.abc import Callable

import httpx
import pytest

from signerd.core.states import State
from signerd.errors import IllegalEvent
from tests.support.daemons import approve, daemon_at, until, until_state
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
    "frozen": (lambda: problem(409, "VAULT_FROZEN"), False),
    "unfit": (lambda: problem(409, "REPLACEMENT_UNFIT"), False),
    "in flight": (lambda: problem(409, "IDEMPOTENCY_IN_PROGRESS"), False),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_f_whatever_the_platform_does_the_same_bytes_arrive(prepared, platform, bridge, name):
    answer, after = FAULTS[name]
    hook = fails_first(6, answer)
    if after:
        platform.after = hook
    else:
        platform.before = hook
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.SUBMITTED)
    told = platform.signatures("p-1")
    assert len({(t["psbt"], t["key"]) for t in told}) == 1
    assert bridge.asked == 1


async def test_a_final_no_is_kept_and_told(prepared, platform, bridge):
    platform.before = lambda r: problem(403, "KEY_REVOKED") if "sign-psbt" in r.url.path else None
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.QUARANTINED)
        assert daemon.journal.record("p-1").signature is not None
        with pytest.raises(IllegalEvent):
            await approve(daemon, "p-1")


async def test_a_payment_that_was_replaced_is_not_submitted_when_it_comes_back(prepared, platform, bridge):
    """Approved while the treasurer took it back; that is rejected later, and the payment is pending again."""
    platform.before = lambda r: problem(409, "STATE_CONFLICT") if "sign-psbt" in r.url.path else None
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.WITHDRAWN)
        platform.before = lambda _request: None
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until(lambda: daemon.follower.state.reachable)
        assert daemon.journal.record("p-1").state is State.WITHDRAWN
    assert platform.signatures("p-1") == []
    assert bridge.asked == 1


async def test_f_an_unreachable_platform_is_said_and_waited_for(prepared, platform, bridge):
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)

        def down(_request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("refused")

        platform.before = down
        await until(lambda: not daemon.follower.state.reachable)
        assert any("platform" in note for note in (await daemon.status()).notes)
        platform.before = lambda _request: None
        await until(lambda: daemon.follower.state.reachable)


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
        await until(lambda: daemon.follower.state.trouble is not None)
        platform.after = lambda _request: None
        await until_state(daemon, "p-1", State.WAITING_PERSON)
