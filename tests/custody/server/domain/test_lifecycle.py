"""The state table of proposals: its transitions happen, all others raise and change nothing. And what
troubles a transaction that makes no progress.
"""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import get_args

import pytest

from custody.schemas.proposals import Advice, TroubleKind
from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.lifecycle import (
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
    threshold_lost,
    words_of,
)
from multisig import FeeRate

# A proof that is complete is never sent, and nothing on the chain is about it.
SENT = [status for status in Status if status is not Status.PROVEN]


def test_p93_nothing_that_happens_on_the_chain_moves_a_complete_proof():
    assert not any(status is Status.PROVEN for status, _event in TRANSITIONS)
    assert not any(status is Status.PROVEN for status, _sight in EVENTS)


@pytest.mark.parametrize(("status", "event"), list(product(Status, LifecycleEvent)))
def test_what_the_table_names_happens_and_all_else_is_refused(status, event):
    if (status, event) in TRANSITIONS:
        assert next_status(status, event) is TRANSITIONS[status, event]
        return
    with pytest.raises(IllegalTransition) as caught:
        next_status(status, event)
    assert (caught.value.status, caught.value.event) == (status, event)
    assert caught.value.code == "STATE_CONFLICT"


@pytest.mark.parametrize(
    ("events", "end"),
    [
        (
            [LifecycleEvent.THRESHOLD_MET, LifecycleEvent.REACHED_NETWORK, LifecycleEvent.MINED],
            Status.CONFIRMED,
        ),
        (
            [
                LifecycleEvent.THRESHOLD_MET,
                LifecycleEvent.BACKEND_DOWN,
                LifecycleEvent.REACHED_NETWORK,
                LifecycleEvent.MINED,
            ],
            Status.CONFIRMED,
        ),
        (
            [
                LifecycleEvent.THRESHOLD_MET,
                LifecycleEvent.REACHED_NETWORK,
                LifecycleEvent.MINED,
                LifecycleEvent.REORGANISED,
                LifecycleEvent.MINED,
            ],
            Status.CONFIRMED,
        ),
        ([LifecycleEvent.THRESHOLD_LOST], Status.REJECTED),
        ([LifecycleEvent.CANCEL], Status.CANCELLED),
        ([LifecycleEvent.EXPIRE], Status.EXPIRED),
        ([LifecycleEvent.COIN_SPENT], Status.INVALIDATED),
        ([LifecycleEvent.THRESHOLD_MET, LifecycleEvent.REFUSED_FOR_GOOD], Status.FAILED),
        (
            [
                LifecycleEvent.THRESHOLD_MET,
                LifecycleEvent.REACHED_NETWORK,
                LifecycleEvent.REPLACED,
                LifecycleEvent.REACHED_NETWORK,
            ],
            Status.BROADCASTING,
        ),
        (
            [
                LifecycleEvent.THRESHOLD_MET,
                LifecycleEvent.REACHED_NETWORK,
                LifecycleEvent.COIN_SPENT,
                LifecycleEvent.REOPENED,
            ],
            Status.BROADCASTING,
        ),
    ],
)
def test_the_contracts_paths(events, end):
    status = Status.PENDING
    for event in events:
        status = next_status(status, event)
    assert status is end


def test_only_a_pending_proposal_can_be_signed_off_or_expire():
    for event in (LifecycleEvent.THRESHOLD_MET, LifecycleEvent.THRESHOLD_LOST, LifecycleEvent.EXPIRE):
        assert [status for status, what in TRANSITIONS if what is event] == [Status.PENDING]


def test_what_has_ended_stays_ended_but_for_what_the_chain_shows():
    """A reorganisation brings a coin back; and signers may finish among
    themselves what the platform gave up.
    """
    living = {pair: to for pair, to in TRANSITIONS.items() if pair[0] in ENDED and to not in ENDED}
    assert living == {
        (Status.INVALIDATED, LifecycleEvent.REOPENED): Status.BROADCASTING,
        **{(status, LifecycleEvent.REACHED_NETWORK): Status.BROADCASTING for status in ENDED_UNSENT},
    }
    assert {Status.INVALIDATED} == ENDED - ENDED_UNSENT


def test_what_a_cancelled_one_kept_is_released_and_it_stays_cancelled():
    assert [pair for pair in TRANSITIONS if pair[1] is LifecycleEvent.RELEASED] == [
        (Status.CANCELLED, LifecycleEvent.RELEASED)
    ]
    assert TRANSITIONS[Status.CANCELLED, LifecycleEvent.RELEASED] is Status.CANCELLED


def test_an_input_that_can_be_no_more_ends_whatever_waits_for_it():
    waiting = {status for status, event in TRANSITIONS if event is LifecycleEvent.INPUT_GONE}
    assert waiting == set(SENT) - ENDED - {Status.CONFIRMED}


@pytest.mark.parametrize(
    ("declines", "m", "n", "lost"),
    [(1, 2, 3, False), (2, 2, 3, True), (1, 3, 3, True), (0, 1, 1, False), (1, 1, 1, True)],
)
def test_the_threshold_is_lost_with_more_declines_than_spare_signers(declines, m, n, lost):
    assert threshold_lost(declines, m, n) is lost


OBSERVATIONS = sorted(EVENTS)


def end_of(status, sight):
    for event in events_for(status, sight):
        status = next_status(status, event)
    return status


@pytest.mark.parametrize(("status", "sight"), OBSERVATIONS)
def test_every_row_can_happen(status, sight):
    end_of(status, sight)


@pytest.mark.parametrize("status", SENT)
def test_whatever_is_in_a_block_is_confirmed(status):
    assert end_of(status, Observation.MINED) is Status.CONFIRMED


@pytest.mark.parametrize("status", [status for status in SENT if status is not Status.CONFIRMED])
def test_whatever_is_in_the_mempool_is_on_its_way(status):
    assert end_of(status, Observation.IN_MEMPOOL) is Status.BROADCASTING


@pytest.mark.parametrize("status", [status for status in SENT if status not in ENDED])
def test_a_proposal_that_lost_a_coin_for_good_has_ended(status):
    assert end_of(status, Observation.COIN_SPENT) is Status.INVALIDATED
    assert end_of(status, Observation.INPUT_GONE) is Status.INVALIDATED


@pytest.mark.parametrize("status", sorted(ENDED_UNSENT))
@pytest.mark.parametrize(
    "sight", [Observation.ABSENT, Observation.OUTBID, Observation.COIN_SPENT, Observation.INPUT_GONE]
)
def test_what_ended_unsent_stays_so_unless_it_is_seen_itself(status, sight):
    assert end_of(status, sight) is status


@pytest.mark.parametrize(
    ("status", "sight", "end"),
    [
        (Status.BROADCASTING, Observation.OUTBID, Status.REPLACED),
        (Status.SIGNED, Observation.OUTBID, Status.REPLACED),
        (Status.STALLED, Observation.OUTBID, Status.REPLACED),
        (Status.PENDING, Observation.OUTBID, Status.PENDING),
        (Status.REPLACED, Observation.OUTBID, Status.REPLACED),
        (Status.REPLACED, Observation.ABSENT, Status.BROADCASTING),
        (Status.CONFIRMED, Observation.OUTBID, Status.REPLACED),
        (Status.INVALIDATED, Observation.OUTBID, Status.REPLACED),
        (Status.INVALIDATED, Observation.ABSENT, Status.BROADCASTING),
        (Status.BROADCASTING, Observation.ABSENT, Status.BROADCASTING),
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
