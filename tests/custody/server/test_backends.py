"""A backend that goes and comes back is told of once each, however often it is asked."""

from structlog.testing import capture_logs

from custody.server.chain.backend import BlockRef
from custody.server.meters import Meters
from custody.server.network.backends import Reach, Reachability
from tests.support.platform import START, Clock

TIP = BlockRef(7, "ab" * 32, 0)


def test_each_change_is_told_once() -> None:
    clock, meters = Clock(), Meters()
    reachability = Reachability(clock, meters)
    with capture_logs() as lines:
        reachability.answered("regtest", TIP)
        reachability.answered("regtest", TIP)
        clock.advance(minutes=1)
        for _ in range(3):
            reachability.silent("regtest", "It hangs.")
        assert reachability.known == {
            "regtest": Reach(is_up=False, answered_at=START, tip=TIP, reason="It hangs.")
        }
        assert meters.registry.get_sample_value("custody_chain_backend_up", {"chain": "regtest"}) == 0
        reachability.answered("regtest", TIP)
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("backend down", "warning"),
        ("backend up", "info"),
    ]
    assert reachability.known["regtest"].answered_at == clock.now


def test_another_reason_is_told_too() -> None:
    reachability = Reachability(Clock(), Meters())
    with capture_logs() as lines:
        for reason in ("It is still fetching the chain.", "It has no index.", "It has no index."):
            reachability.silent("regtest", reason)
    assert [line["reason"] for line in lines] == ["It is still fetching the chain.", "It has no index."]


def test_one_that_never_answered_is_told_of_too() -> None:
    reachability = Reachability(Clock(), Meters())
    with capture_logs() as lines:
        reachability.silent("signet", "No answer.")
    assert [line["event"] for line in lines] == ["backend down"]
    assert reachability.known["signet"] == Reach(is_up=False, reason="No answer.")
