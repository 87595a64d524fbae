"""The table of what the chain shows: every pair leads along the table of a proposal's life, and nowhere else."""

import pytest

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.lifecycle import ENDED, ENDED_UNSENT, next_status
from custody.server.domain.observation import EVENTS, Sight, events_for

PAIRS = sorted(EVENTS)


def end_of(status, sight):
    for event in events_for(status, sight):
        status = next_status(status, event)
    return status


@pytest.mark.parametrize(("status", "sight"), PAIRS)
def test_every_row_can_happen(status, sight):
    end_of(status, sight)


@pytest.mark.parametrize("status", list(Status))
def test_whatever_is_in_a_block_is_confirmed(status):
    assert end_of(status, Sight.MINED) is Status.CONFIRMED


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.CONFIRMED])
def test_whatever_is_in_the_mempool_is_on_its_way(status):
    assert end_of(status, Sight.IN_MEMPOOL) is Status.BROADCASTING


@pytest.mark.parametrize("status", [status for status in Status if status not in ENDED])
def test_whoever_lost_a_coin_for_good_has_ended(status):
    assert end_of(status, Sight.COIN_SPENT) is Status.INVALIDATED
    assert end_of(status, Sight.INPUT_GONE) is Status.INVALIDATED


@pytest.mark.parametrize("status", sorted(ENDED_UNSENT))
@pytest.mark.parametrize("sight", [Sight.ABSENT, Sight.OUTBID, Sight.COIN_SPENT, Sight.INPUT_GONE])
def test_what_ended_unsent_stays_so_unless_it_is_seen_itself(status, sight):
    assert end_of(status, sight) is status


@pytest.mark.parametrize(
    ("status", "sight", "end"),
    [
        (Status.BROADCASTING, Sight.OUTBID, Status.REPLACED),
        (Status.SIGNED, Sight.OUTBID, Status.REPLACED),
        (Status.STALLED, Sight.OUTBID, Status.REPLACED),
        (Status.PENDING, Sight.OUTBID, Status.PENDING),
        (Status.REPLACED, Sight.OUTBID, Status.REPLACED),
        (Status.REPLACED, Sight.ABSENT, Status.BROADCASTING),
        (Status.CONFIRMED, Sight.OUTBID, Status.REPLACED),
        (Status.INVALIDATED, Sight.OUTBID, Status.REPLACED),
        (Status.INVALIDATED, Sight.ABSENT, Status.BROADCASTING),
        (Status.BROADCASTING, Sight.ABSENT, Status.BROADCASTING),
    ],
)
def test_versions_of_one_payment(status, sight, end):
    assert end_of(status, sight) is end
