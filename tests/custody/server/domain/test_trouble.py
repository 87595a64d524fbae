"""The troubles of a proposal, and the advice for each."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import get_args

import pytest

from custody.schemas.proposals import Advice, TroubleKind
from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.lifecycle import REPLACEABLE, Observation
from custody.server.domain.trouble import GRACE, PATIENCE, Rival, advice_for, kind_of, words_of
from multisig import FeeRate

MOMENT = timedelta(microseconds=1)
SEEN, ABSENT = Observation.IN_MEMPOOL, Observation.ABSENT
B, P, I = Status.BROADCASTING, Status.PENDING, Status.INVALIDATED  # noqa: E741


@pytest.mark.parametrize(
    ("status", "seen", "rival", "waited", "is_lost", "is_cheap", "expected"),
    [
        (B, SEEN, Rival.NONE, PATIENCE, False, True, "slow"),
        (B, SEEN, Rival.NONE, PATIENCE, False, False, None),
        (B, SEEN, Rival.NONE, PATIENCE - MOMENT, False, True, None),
        (B, ABSENT, Rival.NONE, GRACE, False, True, "not-in-mempool"),
        (B, ABSENT, Rival.NONE, GRACE - MOMENT, False, True, None),
        (B, ABSENT, Rival.VERSION, GRACE, False, False, "conflict"),
        (B, ABSENT, Rival.OTHER, MOMENT, False, False, "conflict"),
        (P, ABSENT, Rival.OTHER, MOMENT, False, False, "conflict"),
        (P, ABSENT, Rival.VERSION, PATIENCE, False, True, None),
        (P, ABSENT, Rival.NONE, PATIENCE, False, True, None),
        (I, ABSENT, Rival.OTHER, MOMENT, True, False, "double-spent"),
        (I, ABSENT, Rival.VERSION, MOMENT, False, False, None),
    ],
)
def test_the_table(status, seen, rival, waited, is_lost, is_cheap, expected):
    assert kind_of(status, seen, rival, waited, is_lost=is_lost, is_cheap=is_cheap) == expected


def test_what_is_over_or_mined_is_in_no_trouble():
    for status, seen, rival in product(set(Status) - REPLACEABLE - {I}, Observation, Rival):
        assert kind_of(status, seen, rival, PATIENCE, is_lost=True, is_cheap=True) is None


@pytest.mark.parametrize("kind", TroubleKind)
def test_each_has_words_and_an_advice(kind):
    since = datetime(2026, 3, 1, tzinfo=UTC)
    words = words_of(kind, rival="ab" * 32, pays=FeeRate(1_000), asked=FeeRate(5_000), since=since)
    assert words.endswith(".")
    assert "None" not in words
    told = {advice_for(kind, may_be_replaced=may) for may in (True, False)}
    assert told <= set(get_args(Advice))
    assert ("bump" in told) == (kind in {"conflict", "slow", "fee-too-low"})
