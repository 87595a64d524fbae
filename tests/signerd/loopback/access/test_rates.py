"""L6: how much of the daemon an app gets, however it asks."""

import pytest

from signerd.errors import TooManyRequests
from signerd.loopback.access.gates import AppRates


def test_l6_requests_cost_one_token_each_which_comes_back_with_time():
    now = [0.0]
    rates = AppRates(lambda: now[0])
    for _ in range(int(rates.burst)):
        rates.take("a-1")
    with pytest.raises(TooManyRequests) as refused:
        rates.take("a-1")
    assert refused.value.seconds == 1
    # No other caller is limited for it.
    rates.take("a-2")
    now[0] += 1
    for _ in range(int(rates.per_second)):
        rates.take("a-1")
    with pytest.raises(TooManyRequests):
        rates.take("a-1")
