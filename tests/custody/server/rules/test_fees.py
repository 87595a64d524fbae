"""The fee of a replacement, by BIP-125 and by a signer's daemon."""

from hypothesis import given
from hypothesis import strategies as st

from custody.server.rules.fees import (
    PricedTransaction,
    least_fee,
    settle_replacement,
)
from custody.server.rules.selection import Plan
from multisig.units import FeeRate, Sats
from signerd.core.families import INCREMENTAL_RELAY as ASKED_BY_DAEMONS
from tests.support.selection import Candidate

SIZES = st.integers(110, 5_000)
PRICED = st.builds(PricedTransaction, st.integers(100, 500_000).map(Sats), SIZES)
INPUT, BASE, CHANGE_OUTPUT = 105, 60, 43


def plan(target: int, rate: int) -> Plan:
    def vsize(inputs: int, with_change: bool) -> int:
        return BASE + INPUT * inputs + CHANGE_OUTPUT * with_change

    return Plan(Sats(target), FeeRate(rate), vsize, Sats(330))


@given(st.lists(PRICED, min_size=1, max_size=5), SIZES)
def test_the_least_fee_outbids_every_rival_and_one_less_does_not(rivals, vsize):
    fee = least_fee(rivals, vsize)

    def outbids(paid: int) -> bool:
        """Rules 3 and 4, and a higher rate, in whole numbers."""
        return all(paid >= rival.fee + vsize and paid * rival.vsize > rival.fee * vsize for rival in rivals)

    assert outbids(fee)
    assert not outbids(fee - 1)


def test_a_node_asks_for_no_other_increment():
    assert FeeRate(1_000) == ASKED_BY_DAEMONS


@given(
    st.integers(1, 400_000),
    st.integers(1_000, 100_000),
    st.integers(1, 4),
    st.lists(PRICED, max_size=3),
    st.booleans(),
)
def test_what_is_settled_adds_up_and_outbids(target, rate, inputs, rivals, pays):
    total = 100_000 * inputs
    wanted = plan(target if pays else 0, rate)
    coins = [Candidate(f"{number:064x}", 0, Sats(100_000), 1, own_change=False) for number in range(inputs)]
    settled = settle_replacement(coins, wanted, rivals, pays=pays)
    if settled is None:
        spare, vsize = total - wanted.target, BASE + INPUT * inputs + CHANGE_OUTPUT
        fee = max(wanted.rate.fee_for(vsize), least_fee(rivals, vsize))
        assert spare - fee < wanted.minimum_change
        return
    assert wanted.target + settled.change + settled.fee == total
    assert settled.coins == tuple(coins)
    vsize = wanted.vsize(inputs, settled.change > 0)
    assert settled.fee >= max(wanted.rate.fee_for(vsize), least_fee(rivals, vsize))
    assert settled.change >= wanted.minimum_change or (pays and settled.change == 0)
