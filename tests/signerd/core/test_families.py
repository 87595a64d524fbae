"""When one takes another's place: every pair of a small world, against rules that are written down a second
time.
"""

from itertools import combinations, product

import pytest

from multisig import Psbt, estimate_vsize
from signerd.core.families import FamilyFigures, differences, outbids, read_figures
from tests.support.desk import NETWORK, VAULT
from tests.support.payments import COIN, spend_of
from tests.support.wallets import make_vault

COINS = [set(some) for count in (1, 2, 3) for some in combinations((1, 2, 3), count)]
# The coins whole, less the fee.
SWEEP = (("shop", None),)
PAID = (
    (),
    (("shop", 50_000),),
    (("shop", 50_000), ("cafe", 20_000)),
    (("shop", 20_000), ("cafe", 50_000)),
    SWEEP,
)
# Around what one more coin makes of the rate: an input of 2-of-3 has about 105 vB.
FEES = (1_000, 1_001, 1_300, 2_500)
WORLD = [(frozenset(coins), paid, fee) for coins, paid, fee in product(COINS, PAID, FEES)]
Plan = tuple[frozenset[int], tuple[tuple[str, int | None], ...], int]


def spend(plan: Plan) -> Psbt:
    coins, paid, fee = plan
    whole = COIN * len(coins) - fee
    return spend_of(sorted(coins), [(to, whole if sats is None else sats) for to, sats in paid], fee)


def figures(plan: Plan) -> FamilyFigures:
    found = read_figures(spend(plan).to_bytes(), VAULT)
    assert found is not None
    return found


def vsize(plan: Plan) -> int:
    scripts = [output.script_pubkey for output in spend(plan).outputs]
    return estimate_vsize(VAULT, len(plan[0]), scripts)


def is_bump(first: Plan, second: Plan) -> bool:
    """The same payments, every coin of the first, more satoshis in all and for each virtual byte. A sweep
    takes them out of its amount, and adds no coin.
    """
    return (
        first[1] == second[1]
        and (first[0] == second[0] if first[1] == SWEEP else first[0] <= second[0])
        and first[2] < second[2]
        and second[2] / vsize(second) > first[2] / vsize(first)
    )


def test_s11_every_pair_differs_in_more_than_the_fee_or_is_a_bump() -> None:
    seen = {plan: figures(plan) for plan in WORLD}
    bumps = 0
    for first, second in product(WORLD, repeat=2):
        told = differences(seen[first], seen[second], NETWORK)
        assert (not told) is is_bump(first, second), (first, second, told)
        bumps += not told
    assert 100 < bumps < 1_000


def test_the_rise_that_every_node_takes_pays_for_its_own_way() -> None:
    first = figures((frozenset({1}), PAID[1], 1_000))
    enough = 1_000 + first.vsize
    assert outbids(figures((frozenset({1}), PAID[1], enough)), first)
    assert not outbids(figures((frozenset({1}), PAID[1], enough - 1)), first)


def test_what_is_not_proven_has_no_figures() -> None:
    assert read_figures(b"garbage", VAULT) is None
    assert read_figures(b"", VAULT) is None
    assert read_figures(spend_of((1,), ()).to_bytes(), make_vault(account=1)) is None


@pytest.mark.parametrize(
    ("paid", "data", "cancel"), [((), None, True), ((), b"x", False), (PAID[1], None, False)]
)
def test_a_cancel_pays_no_one_and_says_nothing(
    paid: tuple[tuple[str, int], ...], data: bytes | None, cancel: bool
) -> None:
    found = read_figures(spend_of((1,), paid, data=data).to_bytes(), VAULT)
    assert found is not None
    assert found.takes_all_back is cancel
    assert found.fee == COIN - 99_000
