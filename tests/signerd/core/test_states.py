"""The table of a proposal's life: what leads where, and what leads nowhere."""

from itertools import product

import pytest

from signerd.core.states import TABLE, ProposalMove, State, advance
from signerd.errors import IllegalEvent


def reachable(start: State) -> set[State]:
    found, front = set(), {start}
    while front:
        found |= front
        front = {after for (before, _), after in TABLE.items() if before in front} - found
    return found


def moves_into(target: State) -> set[tuple[State, ProposalMove]]:
    return {key for key, after in TABLE.items() if after is target}


def test_every_state_is_reached_from_the_first() -> None:
    assert reachable(State.RECEIVED) == set(State)


def test_every_move_is_used() -> None:
    assert {move for _, move in TABLE} == set(ProposalMove)


def test_only_an_approval_leads_to_the_device_and_only_from_there_is_it_asked() -> None:
    assert moves_into(State.SIGNING) == {(State.WAITING_DEVICE, ProposalMove.ASK_DEVICE)}
    assert moves_into(State.WAITING_DEVICE) == {
        (State.WAITING_PERSON, ProposalMove.APPROVE),
        (State.INTERRUPTED, ProposalMove.APPROVE),
        (State.SIGNING, ProposalMove.DEVICE_NOT_READY),
    }


def test_an_approval_is_only_taken_after_an_allow_or_an_interruption() -> None:
    assert moves_into(State.WAITING_PERSON) == {(State.RECEIVED, ProposalMove.ALLOW)}
    assert {before for before, _ in moves_into(State.INTERRUPTED)} == {State.SIGNING}


def test_from_a_stored_signature_there_is_no_way_back_to_the_device() -> None:
    assert State.SIGNING not in reachable(State.SIGNED)
    assert State.WAITING_DEVICE not in reachable(State.SIGNED)


def test_nothing_quarantined_is_ever_signed() -> None:
    assert State.SIGNING not in reachable(State.QUARANTINED)


def test_what_was_exported_is_never_asked_about_again_and_goes_to_no_device() -> None:
    assert moves_into(State.EXPORTED) == {
        (State.WAITING_DEVICE, ProposalMove.EXPORT),
        (State.EXPORTED, ProposalMove.EXPORT),
        (State.EXPORTED, ProposalMove.APPROVE),
    }
    left = reachable(State.EXPORTED) - {State.EXPORTED}
    assert left.isdisjoint({State.RECEIVED, State.WAITING_PERSON, State.WAITING_DEVICE, State.SIGNING})


def test_only_verified_signatures_are_stored() -> None:
    assert moves_into(State.SIGNED) == {
        (State.EXPORTED, ProposalMove.ANSWERED),
        (State.SIGNING, ProposalMove.VERIFIED),
        (State.SUBMITTING, ProposalMove.UNDELIVERED),
        (State.SUBMITTING, ProposalMove.RESTARTED),
    }


def test_the_platforms_word_does_not_pull_a_proposal_from_under_the_device() -> None:
    word = {
        ProposalMove.WENT_OUT,
        ProposalMove.CONFIRM,
        ProposalMove.EXPIRE,
        ProposalMove.SUPERSEDE,
        ProposalMove.WITHDRAW,
        ProposalMove.ALTERED,
    }
    assert not {(State.SIGNING, move) for move in word} & set(TABLE)


def test_a_reorganisation_takes_a_confirmation_back() -> None:
    assert advance(State.CONFIRMED, ProposalMove.WENT_OUT) is State.BROADCAST
    assert advance(State.BROADCAST, ProposalMove.CONFIRM) is State.CONFIRMED


def test_a_missing_row_raises() -> None:
    for state, move in product(State, ProposalMove):
        if (state, move) in TABLE:
            assert advance(state, move) is TABLE[state, move]
        else:
            with pytest.raises(IllegalEvent, match=str(move)):
                advance(state, move)
