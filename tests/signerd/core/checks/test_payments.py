"""S29: change and self-payments far beyond every address that is known to be used are held; heavy use is not.
S12: a forward spends only coins that are proven the profile's, and pays only the pinned vault. S30: locks far
ahead of the chain are held; those that wallets set against fee sniping are not.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import CHANGE, RECEIVE, ChangeTo, Network, Psbt, TxOut, build_psbt, inspect, sats
from multisig.transaction import LOCKTIME_THRESHOLD, SEQUENCE_FINAL
from signerd.core.checks.case import Outcome, Verdict
from signerd.core.checks.locks import BLOCKS_AHEAD, CHAIN_RATES, HIGHEST_REGTEST, ChainRate
from signerd.core.checks.payments import RECEIVE_ADDRESSES
from signerd.core.places import GAP, NEW_CHAIN, NEW_POLICY, is_near, joined, merged, policy_code, used_by
from signerd.core.review import review
from signerd.core.states import State
from tests.support.desk import (
    NETWORK,
    VAULT,
    read_rules,
    refused_by,
    review_context,
    snapshot_of,
)
from tests.support.payments import PROFILE, forward_of, forward_psbt, neighbour_of, with_profile
from tests.support.wallets import fund, make_vault, pay

CODE = policy_code(VAULT)
NEW = make_vault(account=1)


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


def test_coins_within_the_gap_reach_on() -> None:
    coins = ((CHANGE, 900), (CHANGE, 1_700), (CHANGE, 2_650))
    assert not judged(spend((CHANGE, 3_600), coins=coins)).acknowledge
    assert judged(spend((CHANGE, 3_600), coins=(*coins[:1], *coins[2:]))).acknowledge
    assert judged(spend((RECEIVE, 3_600), coins=coins)).acknowledge


def test_the_highest_known_one_below_is_named() -> None:
    known = (NEW_CHAIN, merged([*NEW_CHAIN, (0, 0), (99_000, 99_000)]))
    sentence = judged(spend((CHANGE, 50_000)), known).sentence
    assert "below that this machine knows to be used is 0: " in sentence


# Of invented coins: signed, and never mined.
INVENTED = spend((CHANGE, 89_500), coins=tuple((CHANGE, index) for index in range(900, 90_000, 900)))
SIGNED_BEFORE = {
    "what was signed here is known": (spend((CHANGE, 999), (RECEIVE, 5)), (1_999,), (2_000,)),
    # A machine that signs again after years: one question, and no more.
    "far away it vouches for its neighbours alone": (
        spend((CHANGE, 50_000)), (49_000, 50_001, 51_000, 0, 999), (1_000, 48_999, 51_001)
    ),
    "no dust vouches later": (spend((CHANGE, 0), coins=((RECEIVE, 0), (CHANGE, 987_654))), (), (987_655,)),
    "coins reach on for their own transaction alone": (INVENTED, (1_900,), (89_501, 2_000)),
}  # fmt: skip


@pytest.mark.parametrize(("before", "near", "far"), SIGNED_BEFORE.values(), ids=SIGNED_BEFORE)
def test_s29_what_a_signed_transaction_makes_known(
    before: Psbt, near: tuple[int, ...], far: tuple[int, ...]
) -> None:
    known = signed(before)
    assert not any(judged(spend((CHANGE, index)), known).acknowledge for index in near)
    for index in far:
        assert judged(spend((CHANGE, index)), known).acknowledge
    assert not judged(INVENTED).acknowledge


def test_a_vault_in_heavy_use_is_never_held() -> None:
    """The platform gives each proposal the next change address, and at most 20 beyond the last that is used
    on chain.
    """
    known = NEW_POLICY
    for index in range(0, 2_500, 20):
        psbt = spend((CHANGE, index))
        assert not judged(psbt, known).acknowledge, index
        known = signed(psbt, known)
    assert known[CHANGE] == ((-1, 2_480),)


@given(st.lists(st.integers(0, 20_000), max_size=12), st.integers(0, 20_000))
def test_near_is_what_lies_within_the_gap_of_a_known_one_or_between_two_that_do(
    used: list[int], index: int
) -> None:
    spans = merged([*NEW_CHAIN, *((one, one) for one in used)])
    assert list(spans) == sorted(spans)
    context = sorted({-1, *used})
    close = any(abs(index - one) <= GAP for one in context)
    between = any(a < index < b and b - a <= GAP for a, b in pairwise(context))
    assert is_near(spans, index) is (close or between)


AROUND = with_profile()
HONEST = forward_of(forward_psbt())


def test_s12_every_receive_address_that_a_wallet_would_find_is_the_vaults_and_nothing_else() -> None:
    for index in (0, 1, RECEIVE_ADDRESSES - 1):
        assert review(forward_of(forward_psbt(to=VAULT.script_pubkey(RECEIVE, index))), AROUND).allowed
    for script in (
        VAULT.script_pubkey(RECEIVE, RECEIVE_ADDRESSES),
        VAULT.script_pubkey(CHANGE, 0),
        make_vault(account=1).script_pubkey(RECEIVE, 0),
        make_vault(threshold=1).script_pubkey(RECEIVE, 0),
        pay(1, "thief").script_pubkey,
    ):
        assert refused_by(forward_of(forward_psbt(to=script)), AROUND) == {"forward-destination"}


def test_s12_a_forward_is_one_payment_and_nothing_beside_it() -> None:
    for extra in (pay(1_000, "thief"), TxOut(sats(1_000), VAULT.script_pubkey(RECEIVE, 1))):
        assert refused_by(forward_of(forward_psbt(extra=(extra,))), AROUND) == {"forward-destination"}
    assert "forward-destination" in refused_by(
        forward_of(forward_psbt(to=PROFILE.script_pubkey(RECEIVE, 0))), AROUND
    )


def test_s6_a_second_forward_of_the_same_amount_is_held_and_a_bump_of_it_is_not() -> None:
    first = neighbour_of(HONEST, State.SUBMITTED)
    again = forward_of(forward_psbt(coins=(2,)), "f-2")
    assert review(again, replace(AROUND, neighbours=(first,))).to_acknowledge == {"paid-twice"}
    bump = forward_of(forward_psbt(fee=2_000), "f-2", replaces="f-1")
    assert review(bump, replace(AROUND, neighbours=(first,))).allowed
    assert not review(bump, replace(AROUND, neighbours=(first,))).to_acknowledge


def test_a_forward_is_nothing_that_the_vault_pays() -> None:
    """Its limits are those of money that leaves it; whom it pays is the vault."""
    text = '[refuse]\nabove_per_transaction = "1 sat"\nabove_per_day = "1 sat"\nexcept_to = ["{}"]\n'
    rules = read_rules(text.format(VAULT.address(CHANGE, 0)), NETWORK)
    found = review(HONEST, replace(AROUND, rules=rules))
    assert not {v.name for v in found.refusals} & {"rule-refuse-per-transaction", "rule-refuse-address"}


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def locked(lock: int, sequence: int = 0xFFFFFFFD, now: datetime | None = NOON) -> Verdict:
    psbt = build_psbt(
        VAULT, [fund(VAULT, 90_000)], [pay(50_000), ChangeTo(sats(39_000), 1, 0)], lock, sequence
    )
    found = review(snapshot_of(psbt), review_context(moment=now))
    (verdict,) = [v for v in found.verdicts if v.name == "locktime"]
    assert verdict.figures["locktime"] == lock
    return verdict


@pytest.mark.parametrize(
    ("lock", "held"),
    [
        (0, False),
        (500, False),
        (HIGHEST_REGTEST + BLOCKS_AHEAD, False),
        (HIGHEST_REGTEST + BLOCKS_AHEAD + 1, True),
        (LOCKTIME_THRESHOLD - 1, True),
    ],
)
def test_a_height_that_the_chain_cannot_have_reached_is_held_until_it_is_named(lock: int, held: bool) -> None:
    verdict = locked(lock)
    assert (verdict.outcome is Outcome.WARN, verdict.acknowledge) == (held, held)
    assert lock == 0 or f"block {lock:,}" in verdict.sentence


def test_a_lock_that_no_input_lets_count_holds_nothing() -> None:
    assert locked(LOCKTIME_THRESHOLD - 1, SEQUENCE_FINAL).outcome is Outcome.ALLOW


def test_a_time_is_judged_by_the_clock() -> None:
    tomorrow = int((NOON + timedelta(days=1)).timestamp())
    assert locked(tomorrow).outcome is Outcome.ALLOW
    assert locked(tomorrow + 1).acknowledge
    assert locked(tomorrow, now=None).acknowledge
    assert locked(0xFFFFFFFF).acknowledge


@pytest.mark.parametrize(
    ("network", "height", "at"),
    [
        # About as the chains stood then.
        (Network.MAINNET, 840_000, datetime(2024, 4, 20, 0, 10, tzinfo=UTC)),
        (Network.MAINNET, 877_000, datetime(2025, 1, 1, tzinfo=UTC)),
        (Network.SIGNET, 229_000, datetime(2025, 1, 1, tzinfo=UTC)),
        (Network.TESTNET4, 63_000, datetime(2025, 1, 1, tzinfo=UTC)),
    ],
)
def test_where_the_chains_stood_is_within_the_pace(network: Network, height: int, at: datetime) -> None:
    highest = CHAIN_RATES[network].highest(at)
    assert height <= highest + BLOCKS_AHEAD
    # And it is no bound that lets years pass.
    assert height > highest / 2


def test_a_pace_never_runs_backwards() -> None:
    pace = ChainRate(100, NOON, 600)
    assert [pace.highest(NOON + timedelta(hours=h)) for h in (-5, 0, 1)] == [100, 100, 106]
