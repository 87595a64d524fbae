"""A backend that goes and comes back is told of once each, however often it is asked."""

from contextlib import suppress

from structlog.testing import capture_logs

from custody.server.chain.backend import BlockRef
from custody.server.errors import ChainUnavailable
from custody.server.meters import Meters
from custody.server.network.backends import Market, Reach
from tests.support.platform import START, Clock

TIP = BlockRef(7, "ab" * 32, 0)


class Backend:
    """``trouble``: why it does not answer."""

    trouble: str | None = None

    def fee_estimate(self, _target_blocks: int) -> None:
        if self.trouble is not None:
            raise ChainUnavailable(self.trouble)

    def tip(self) -> BlockRef:
        return TIP


def ask(market: Market, *troubles: str | None) -> None:
    for trouble in troubles:
        market._backends["regtest"].trouble = trouble
        with suppress(ChainUnavailable):
            market.refresh("regtest")


def test_each_change_is_told_once() -> None:
    clock, meters = Clock(), Meters()
    market = Market({"regtest": Backend()}, clock, meters)
    with capture_logs() as lines:
        ask(market, None, None)
        clock.advance(minutes=1)
        ask(market, *["It hangs."] * 3)
        assert market.reached == {
            "regtest": Reach(is_up=False, answered_at=START, tip=TIP, reason="It hangs.")
        }
        assert meters.registry.get_sample_value("custody_chain_backend_up", {"chain": "regtest"}) == 0
        ask(market, None)
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("backend down", "warning"),
        ("backend up", "info"),
    ]
    assert market.reached["regtest"].answered_at == clock.now
