"""The tables of a proposal's states: what must hold of them, whatever they name. And what troubles a
transaction that makes no progress.
"""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import get_args

import pytest

from custody.schemas.proposals import Advice, TroubleKind
from custody.schemas.proposals import ProposalStatus as Status
from custody.server.rules.lifecycle import (
    ENDED,
    ENDED_UNSENT,
    EVENTS,
    GRACE,
    PATIENCE,
    REPLACEABLE,
    TRANSITIONS,
    IllegalTransition,
    LifecycleEvent,
    Observation,
    Rival,
    advice_for,
    events_for,
    kind_of,
    next_status,
    words_of,
)
from multisig import FeeRate

# A proof that is complete is never sent, and nothing on the chain is about it.
SENT = [status for status in Status if status is not Status.PROVEN]


def end_of(status, sight):
    for event in events_for(status, sight):
        status = next_status(status, event)
    return status


def test_p93_nothing_that_happens_on_the_chain_moves_a_complete_proof():
    assert not any(status is Status.PROVEN for status, _ in (*TRANSITIONS, *EVENTS))


def test_what_the_table_does_not_name_is_refused():
    for status, event in set(product(Status, LifecycleEvent)) - set(TRANSITIONS):
        with pytest.raises(IllegalTransition) as caught:
            next_status(status, event)
        assert (caught.value.status, caught.value.event) == (status, event)
        assert caught.value.code == "STATE_CONFLICT"


def test_only_a_pending_proposal_can_be_signed_off_or_expire():
    for event in (LifecycleEvent.THRESHOLD_MET, LifecycleEvent.THRESHOLD_LOST, LifecycleEvent.EXPIRE):
        assert [status for status, what in TRANSITIONS if what is event] == [Status.PENDING]


def test_what_has_ended_stays_ended_but_for_what_the_chain_shows():
    """A reorganisation brings a coin back; and signers may finish among themselves what the platform gave
    up.
    """
    living = {pair: to for pair, to in TRANSITIONS.items() if pair[0] in ENDED and to not in ENDED}
    assert living == {
        (Status.INVALIDATED, LifecycleEvent.REOPENED): Status.BROADCASTING,
        **{(status, LifecycleEvent.REACHED_NETWORK): Status.BROADCASTING for status in ENDED_UNSENT},
    }
    for status, sight in product(ENDED_UNSENT, Observation):
        seen = {Observation.MINED: Status.CONFIRMED, Observation.IN_MEMPOOL: Status.BROADCASTING}
        assert end_of(status, sight) is seen.get(sight, status)


def test_whatever_is_seen_the_status_says_it():
    """In a block, in the mempool, or without a coin for good."""
    for status in SENT:
        assert end_of(status, Observation.MINED) is Status.CONFIRMED
        if status is not Status.CONFIRMED:
            assert end_of(status, Observation.IN_MEMPOOL) is Status.BROADCASTING
        if status not in ENDED:
            assert end_of(status, Observation.COIN_SPENT) is Status.INVALIDATED
            assert end_of(status, Observation.INPUT_GONE) is Status.INVALIDATED


@pytest.mark.parametrize(
    ("status", "sight", "end"),
    [
        (Status.BROADCASTING, Observation.OUTBID, Status.REPLACED),
        (Status.PENDING, Observation.OUTBID, Status.PENDING),
        (Status.REPLACED, Observation.OUTBID, Status.REPLACED),
        (Status.REPLACED, Observation.ABSENT, Status.BROADCASTING),
        (Status.CONFIRMED, Observation.OUTBID, Status.REPLACED),
        (Status.INVALIDATED, Observation.OUTBID, Status.REPLACED),
        (Status.INVALIDATED, Observation.ABSENT, Status.BROADCASTING),
    ],
)
def test_versions_of_one_payment(status, sight, end):
    assert end_of(status, sight) is end


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
        (P, ABSENT, Rival.OTHER, MOMENT, False, False, "conflict"),
        (P, ABSENT, Rival.VERSION, PATIENCE, False, True, None),
        (P, ABSENT, Rival.NONE, PATIENCE, False, True, None),
        (I, ABSENT, Rival.OTHER, MOMENT, True, False, "double-spent"),
        (I, ABSENT, Rival.VERSION, MOMENT, False, False, None),
    ],
)
def test_what_troubles_it(status, seen, rival, waited, is_lost, is_cheap, expected):
    assert kind_of(status, seen, rival, waited, is_lost=is_lost, is_cheap=is_cheap) == expected


def test_what_is_over_or_mined_is_in_no_trouble():
    for status, seen, rival in product(set(Status) - REPLACEABLE - {I}, Observation, Rival):
        assert kind_of(status, seen, rival, PATIENCE, is_lost=True, is_cheap=True) is None


@pytest.mark.parametrize("kind", TroubleKind)
def test_each_has_words_and_an_advice(kind):
    since = datetime(2026, 3, 1, tzinfo=UTC)
    words = words_of(kind, rival="ab" * 32, pays=FeeRate(1_000), required_rate=FeeRate(5_000), since=since)
    assert words.endswith(".")
    assert "None" not in words
    told = [advice_for(kind, may_be_replaced=may) for may in (True, False)]
    assert set(told) <= set(get_args(Advice))
    assert [each == "bump" for each in told] == [kind in {"conflict", "slow", "fee-too-low"}, False]
