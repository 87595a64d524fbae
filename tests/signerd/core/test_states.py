"""The table of a proposal's life: what leads where, and what leads nowhere."""

from itertools import product

import pytest

from signerd.core.states import TABLE, ProposalMove, State, advance
from signerd.errors import IllegalEvent

NOT_ASKED_YET = {State.RECEIVED, State.WAITING_PERSON, State.WAITING_DEVICE, State.SIGNING}


def reachable(start: State) -> set[State]:
    found, front = set(), {start}
    while front:
        found |= front
        front = {after for (before, _), after in TABLE.items() if before in front} - found
    return found


def test_every_state_is_reached_and_every_move_is_used() -> None:
    assert reachable(State.RECEIVED) == set(State)
    assert {move for _, move in TABLE} == set(ProposalMove)


@pytest.mark.parametrize(
    ("into", "ways"),
    [
        # Only an approval leads to the device, and only from there is it asked.
        (State.SIGNING, {(State.WAITING_DEVICE, ProposalMove.ASK_DEVICE)}),
        (
            State.WAITING_DEVICE,
            {
                (State.WAITING_PERSON, ProposalMove.APPROVE),
                (State.INTERRUPTED, ProposalMove.APPROVE),
                (State.SIGNING, ProposalMove.DEVICE_NOT_READY),
            },
        ),
        (State.WAITING_PERSON, {(State.RECEIVED, ProposalMove.ALLOW)}),
        (
            State.EXPORTED,
            {
                (State.WAITING_DEVICE, ProposalMove.EXPORT),
                (State.EXPORTED, ProposalMove.EXPORT),
                (State.EXPORTED, ProposalMove.APPROVE),
            },
        ),
        # Only verified signatures are stored.
        (
            State.SIGNED,
            {
                (State.EXPORTED, ProposalMove.ANSWERED),
                (State.SIGNING, ProposalMove.VERIFIED),
                (State.SUBMITTING, ProposalMove.UNDELIVERED),
                (State.SUBMITTING, ProposalMove.RESTARTED),
            },
        ),
    ],
)
def test_no_other_way_leads_to_what_must_be_earned(
    into: State, ways: set[tuple[State, ProposalMove]]
) -> None:
    assert {key for key, after in TABLE.items() if after is into} == ways


def test_what_was_not_looked_at_is_not_declined() -> None:
    assert (State.RECEIVED, ProposalMove.DECLINE) not in TABLE


@pytest.mark.parametrize("signed", [State.SIGNED, State.QUARANTINED, State.EXPORTED])
def test_from_what_is_or_may_be_signed_and_from_what_is_set_aside_no_way_leads_to_a_device(
    signed: State,
) -> None:
    assert reachable(signed).isdisjoint(NOT_ASKED_YET)


def test_the_platforms_word_does_not_pull_a_proposal_from_under_the_device() -> None:
    words = "WENT_OUT CONFIRM EXPIRE SUPERSEDE WITHDRAW ALTERED"
    assert not {(State.SIGNING, ProposalMove[word]) for word in words.split()} & set(TABLE)


def test_what_the_table_does_not_have_is_refused() -> None:
    for state, move in set(product(State, ProposalMove)) - set(TABLE):
        with pytest.raises(IllegalEvent, match=str(move)):
            advance(state, move)
