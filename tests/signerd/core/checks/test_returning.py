"""S29: change and self-payments far beyond every address that is known to be used are held; heavy use is not."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import CHANGE, RECEIVE, ChangeTo, Psbt, build_psbt, inspect, sats
from signerd.core.checks.case import Outcome, Verdict
from signerd.core.places import GAP, NEW_CHAIN, NEW_POLICY, is_near, joined, merged, policy_code, used_by
from signerd.core.review import review
from tests.support.desk import NETWORK, VAULT, review_context, snapshot_of
from tests.support.wallets import fund, pay

CODE = policy_code(VAULT)


def spend(*back: tuple[int, int], coins: tuple[tuple[int, int], ...] = ((0, 0),)) -> Psbt:
    """Coins of these places, one payment, and as much back to each of the others."""
    inputs = [
        fund(VAULT, 900_000, chain=chain, index=index, salt=n) for n, (chain, index) in enumerate(coins)
    ]
    outputs = [ChangeTo(sats(100_000), chain, index) for chain, index in back]
    paid = len(coins) * 900_000 - 100_000 * len(back) - 2_000
    return build_psbt(VAULT, inputs, [pay(paid), *outputs], 0)


def judged(psbt: Psbt, known=NEW_POLICY) -> Verdict:
    found = review(snapshot_of(psbt), review_context(places={CODE: known}))
    (verdict,) = [v for v in found.verdicts if v.name == "change-index"]
    return verdict


def signed(psbt: Psbt, known=NEW_POLICY):
    return joined(known, used_by(inspect(psbt, VAULT, network=NETWORK), known))


@pytest.mark.parametrize("chain", [RECEIVE, CHANGE])
def test_a_new_vault_reaches_to_the_gap_and_no_further(chain: int) -> None:
    assert judged(spend((chain, 0), (chain, GAP - 1))).outcome is Outcome.ALLOW
    held = judged(spend((chain, GAP), coins=((1 - chain, 0),)))
    assert (held.outcome, held.acknowledge) == (Outcome.WARN, True)
    assert held.figures["address_index"] == GAP
    assert "address 1,000" in held.sentence
    assert "none of that chain" in held.sentence


@pytest.mark.parametrize("index", [987_654, 1_000_000])
@pytest.mark.parametrize("chain", [RECEIVE, CHANGE])
def test_s29_an_index_where_nobody_looks_is_held_and_named(chain: int, index: int) -> None:
    held = judged(spend((chain, index)))
    assert held.acknowledge
    assert f"{'change' if chain else 'receive'} address {index:,}" in held.sentence
    assert held.figures == {"chain": chain, "address_index": index, "outputs": "1"}


def test_s29_outputs_of_one_transaction_do_not_vouch_for_one_another() -> None:
    held = judged(spend(*((CHANGE, index) for index in (900, 1_800, 2_700, 3_600, 4_500))))
    assert held.acknowledge
    assert held.figures["outputs"] == "2, 3, 4, 5"
    assert "and 1 more" in held.sentence


def test_s29_dust_at_a_far_address_vouches_for_none() -> None:
    assert judged(spend((CHANGE, 987_655), coins=((RECEIVE, 0), (CHANGE, 987_654)))).acknowledge


def test_coins_within_the_gap_reach_on() -> None:
    coins = ((CHANGE, 900), (CHANGE, 1_700), (CHANGE, 2_650))
    assert not judged(spend((CHANGE, 3_600), coins=coins)).acknowledge
    assert judged(spend((CHANGE, 3_600), coins=(*coins[:1], *coins[2:]))).acknowledge
    assert judged(spend((RECEIVE, 3_600), coins=coins)).acknowledge


def test_what_was_signed_here_is_known_from_then_on() -> None:
    known = signed(spend((CHANGE, 999), (RECEIVE, 5)))
    assert not judged(spend((CHANGE, 1_999)), known).acknowledge
    held = judged(spend((CHANGE, 2_000)), known)
    assert held.acknowledge
    assert "is 999:" in held.sentence


def test_an_address_far_away_that_was_approved_vouches_for_its_neighbours_alone() -> None:
    """A machine that signs again after years: one question, and no more."""
    known = signed(spend((CHANGE, 50_000)))
    for index in (49_000, 50_001, 51_000, 0, 999):
        assert not judged(spend((CHANGE, index)), known).acknowledge
    for index in (1_000, 48_999, 51_001):
        assert judged(spend((CHANGE, index)), known).acknowledge


def test_a_signed_transaction_lets_no_dust_vouch_later() -> None:
    known = signed(spend((CHANGE, 0), coins=((RECEIVE, 0), (CHANGE, 987_654))))
    assert judged(spend((CHANGE, 987_655)), known).acknowledge


def test_s29_coins_that_need_not_exist_reach_on_for_their_own_transaction_alone() -> None:
    """A transaction of invented coins is signed and never mined: what it says of far addresses must not stay."""
    coins = tuple((CHANGE, index) for index in range(900, 90_000, 900))
    invented = spend((CHANGE, 89_500), coins=coins)
    assert not judged(invented).acknowledge
    known = signed(invented)
    assert judged(spend((CHANGE, 89_501)), known).acknowledge
    assert judged(spend((CHANGE, 2_000)), known).acknowledge
    assert not judged(spend((CHANGE, 1_900)), known).acknowledge


def test_another_policys_places_are_not_the_vaults() -> None:
    far = ((0, 987_654),)
    found = review(
        snapshot_of(spend((CHANGE, 987_655))), review_context(places={"another": (NEW_CHAIN, far)})
    )
    assert "change-index" in found.to_acknowledge


def test_a_vault_in_heavy_use_is_never_held() -> None:
    """The platform gives each proposal the next change address, and at most 20 beyond the last that is used on chain."""
    known = NEW_POLICY
    for index in range(0, 5_000, 20):
        psbt = spend((CHANGE, index))
        assert not judged(psbt, known).acknowledge, index
        known = signed(psbt, known)
    assert known[CHANGE] == ((-1, 4_980),)


@given(st.lists(st.integers(0, 20_000), max_size=12), st.integers(0, 20_000))
def test_near_is_what_lies_within_the_gap_of_a_known_one_or_between_two_that_do(
    used: list[int], index: int
) -> None:
    spans = merged([*NEW_CHAIN, *((one, one) for one in used)])
    assert list(spans) == sorted(spans)
    around = sorted({-1, *used})
    close = any(abs(index - one) <= GAP for one in around)
    between = any(a < index < b and b - a <= GAP for a, b in pairwise(around))
    assert is_near(spans, index) is (close or between)
