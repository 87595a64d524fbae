"""The explorer's estimates: a wish of its own, which the platform keeps between a floor and a ceiling."""

from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal

from custody.server.chain.esplora.pace import Pace
from custody.server.chain.esplora.shapes import read
from custody.server.chain.esplora.wire import Wire
from multisig.errors import InvalidAmount
from multisig.units import FeeRate


class FeeEstimates:
    """Raises ChainUnavailable."""

    def __init__(self, wire: Wire, pace: Pace, clock: Callable[[], float]) -> None:
        self._wire = wire
        self._pace = pace
        self._clock = clock
        self._known: tuple[float, dict[int, Decimal]] | None = None

    def rate(self, target_blocks: int) -> FeeRate | None:
        """That of the slowest target that is fast enough; None where there is none."""
        rates = self._rates()
        targets = [target for target in rates if target <= target_blocks]
        return _rate(rates[max(targets)]) if targets else None

    def _rates(self) -> dict[int, Decimal]:
        """Sat/vB by target; none where the explorer's node has too little to go by."""
        if self._known is not None and self._clock() - self._known[0] < self._pace.fees_seconds:
            return self._known[1]
        body = self._wire.find("/fee-estimates")
        rates = {} if body is None else read(body, dict[int, Decimal])
        self._known = (self._clock(), rates)
        return rates


def _rate(sat_per_vb: Decimal) -> FeeRate | None:
    """Rounded up to a thousandth; None for what is no rate."""
    if not sat_per_vb.is_finite() or not 0 < sat_per_vb < 10**9:
        return None
    try:
        return FeeRate(int((sat_per_vb * 1000).to_integral_value(ROUND_CEILING)))
    except InvalidAmount:
        return None
