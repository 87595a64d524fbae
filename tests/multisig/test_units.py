from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import MAX_MONEY, FeeRate, InvalidAmount, Sats, format_btc, parse_btc, sats
from tests.support.policies import AMOUNTS


@given(AMOUNTS)
def test_btc_round_trip(amount):
    assert parse_btc(format_btc(amount)) == amount


NO_DECIMALS = (
    "", " ", " 1", "1 ", "1\n", "+1", "-1", "-0", "1e3", "1E3", "NaN", "inf", "0x10", "1_000", "1,5",
    "1.", ".5", "01", "00", "0.000000001", "0." + "0" * 30, "21000000.00000001", "99999999", "123456789",
    "١", "1.٥", "１",
)  # fmt: skip
NO_RATES = (
    Decimal("0.0001"), Decimal("1.00000000000000000000000000000001"), Decimal("NaN"), Decimal("sNaN"),
    Decimal("Infinity"), Decimal(-1), Decimal("1E+999999"), Decimal("1E-999999"), -1, True, 1.5, "2",
)  # fmt: skip


@pytest.mark.parametrize(
    ("make", "args"),
    [
        *((parse_btc, (text,)) for text in NO_DECIMALS),
        *((sats, (value,)) for value in (-1, MAX_MONEY + 1, 2**64, True, 1.0, "1", None)),
        *((FeeRate.from_sat_per_vb, (rate,)) for rate in NO_RATES),
        (format_btc, (Sats(-1),)),
        (FeeRate, (-1,)),
        (FeeRate.of, (Sats(1), 0)),
        (FeeRate(1).fee_for, (-1,)),
    ],
)
def test_p21_what_is_no_amount_and_no_rate(make, args):
    with pytest.raises(InvalidAmount):
        make(*args)


def test_sats_takes_the_bounds():
    assert (sats(0), sats(MAX_MONEY)) == (0, MAX_MONEY)


@pytest.mark.parametrize(
    ("rate", "per_kvb"),
    [(1, 1_000), (Decimal("1.5"), 1_500), (Decimal("0.001"), 1), (Decimal("1E+2"), 100_000), (0, 0)],
)
def test_rate_from_sat_per_vb(rate, per_kvb):
    assert FeeRate.from_sat_per_vb(rate).sat_per_kvb == per_kvb


@given(st.integers(0, 10_000_000), st.integers(1, 100_000))
def test_the_fee_for_a_rate_is_the_least_that_reaches_it(per_kvb, vsize):
    rate = FeeRate(per_kvb)
    fee = rate.fee_for(vsize)
    assert fee * 1000 >= per_kvb * vsize
    assert fee == 0 or (fee - 1) * 1000 < per_kvb * vsize


def test_rate_of_a_fee_is_rounded_down():
    assert FeeRate.of(Sats(1_000), 333) == FeeRate(3_003)


def test_rates_compare_and_read():
    assert FeeRate(999) < FeeRate(1_000)
    assert str(FeeRate(1_500)) == "1.5 sat/vB"
    assert str(FeeRate(10_000)) == "10 sat/vB"
    assert FeeRate(1_500).sat_per_vb == Decimal("1.5")
