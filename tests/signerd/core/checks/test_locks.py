"""Locks far ahead of the chain are held (S30, and beside S24); those that wallets set against fee sniping are
not.
"""

from datetime import UTC, datetime, timedelta

import pytest

from multisig import ChangeTo, Network, build_psbt, sats
from multisig.transaction import LOCKTIME_THRESHOLD, SEQUENCE_FINAL
from signerd.core.checks.case import Outcome, Verdict
from signerd.core.checks.locks import (
    BLOCKS_AHEAD,
    CHAIN_RATES,
    HIGHEST_REGTEST,
    ChainRate,
)
from signerd.core.review import review
from tests.support.desk import VAULT, review_context, snapshot_of
from tests.support.wallets import fund, pay

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def judged(lock: int, sequence: int = 0xFFFFFFFD, now: datetime | None = NOON) -> Verdict:
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
    verdict = judged(lock)
    assert (verdict.outcome is Outcome.WARN, verdict.acknowledge) == (held, held)
    assert lock == 0 or f"block {lock:,}" in verdict.sentence


def test_a_lock_that_no_input_lets_count_holds_nothing() -> None:
    assert judged(LOCKTIME_THRESHOLD - 1, SEQUENCE_FINAL).outcome is Outcome.ALLOW


def test_a_time_is_judged_by_the_clock() -> None:
    tomorrow = int((NOON + timedelta(days=1)).timestamp())
    assert judged(tomorrow).outcome is Outcome.ALLOW
    assert judged(tomorrow + 1).acknowledge
    assert judged(tomorrow, now=None).acknowledge
    assert judged(0xFFFFFFFF).acknowledge


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


IN_TIME = 1 << 22


@pytest.mark.parametrize(
    ("sequence", "age"),
    [
        (IN_TIME | 168, None),
        (1 << 31 | 0xFFFF, None),
        (52_560, "52,560 blocks"),
        (IN_TIME | 169, "24.0 hours"),
        (IN_TIME | 0xFFFF, "65,535 units of 512 s"),
    ],
)
def test_s30_a_coin_that_must_be_older_than_a_day_is_held_as_a_locktime_is(
    sequence: int, age: str | None
) -> None:
    verdict = judged(0, sequence)
    assert verdict.acknowledge is (age is not None)
    assert age is None or age in verdict.sentence
