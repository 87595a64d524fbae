"""The statuses of tokens and calls: what must hold of the table, and which version of a family decides."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.schemas.asset_tokens import CallStatus, ContractStatus
from custody.schemas.proposals import ProposalStatus as Proposal
from custody.server.rules.lifecycle import ENDED
from custody.server.rules.token_status import (
    TABLE,
    TAKEN_BACK,
    Mined,
    best_of,
    contract_status,
    failure_words,
    verdict,
)
from multisig.tokens.machine import TokenFailure


class Member(NamedTuple):
    status: Proposal
    carries: bool = True
    failure_reason: str | None = None


# A proof makes and calls no token.
OF_TOKENS = [status for status in Proposal if status is not Proposal.PROVEN]
MEMBERS = st.builds(Member, st.sampled_from(OF_TOKENS), st.booleans(), st.none())
FAMILIES = st.lists(MEMBERS, min_size=1, max_size=5).filter(lambda family: family[0].carries)


def test_p35_the_index_decides_of_a_confirmed_transaction_and_of_no_other():
    """It may be on a branch that the proposals have left already."""
    assert set(TABLE) == {(status, mined) for status in OF_TOKENS for mined in Mined}
    for status in OF_TOKENS:
        words = [TABLE[status, mined] for mined in (Mined.UNREAD, Mined.EFFECTIVE, Mined.WITHOUT_EFFECT)]
        if status is Proposal.CONFIRMED:
            assert words == [CallStatus.BROADCASTING, CallStatus.CONFIRMED, CallStatus.FAILED]
        else:
            assert len(set(words)) == 1
            assert CallStatus.CONFIRMED not in words
            assert (CallStatus.FAILED in words) is (status in ENDED)


def test_every_word_of_a_call_has_one_of_a_token_and_every_rule_a_sentence():
    assert {contract_status(word) for word in CallStatus} == set(ContractStatus)
    sentences = [failure_words(failure) for failure in TokenFailure]
    assert len(set(sentences)) == len(sentences)


@given(FAMILIES, st.sampled_from(Mined))
def test_a_reason_stands_beside_what_failed_and_nothing_else(family, mined):
    found = verdict(family, mined, "paused" if mined is Mined.WITHOUT_EFFECT else None)
    assert (found.reason is not None) is (found.status is CallStatus.FAILED)


@given(FAMILIES)
def test_an_ended_version_speaks_only_where_all_have_ended(family):
    best = best_of(family)
    assert best.carries
    if best.status in ENDED:
        assert all(member.status in ENDED for member in family if member.carries)


@pytest.mark.parametrize(
    ("family", "word"),
    [
        ([Proposal.REPLACED, Proposal.BROADCASTING], CallStatus.BROADCASTING),
        ([Proposal.STALLED, Proposal.PENDING], CallStatus.STALLED),
        ([Proposal.STALLED, Proposal.SIGNED], CallStatus.PENDING),
        ([Proposal.PENDING, Proposal.CANCELLED], CallStatus.PENDING),
        ([Proposal.CONFIRMED, Proposal.INVALIDATED], CallStatus.CONFIRMED),
    ],
)
def test_the_furthest_version_speaks_for_all(family, word):
    assert verdict([Member(status) for status in family], Mined.EFFECTIVE).status is word


def test_what_was_taken_back_has_failed_and_says_so_and_the_proposals_own_reason_goes_first():
    original, back = Member(Proposal.INVALIDATED), Member(Proposal.CONFIRMED, carries=False)
    assert verdict([original, back], Mined.UNREAD) == (CallStatus.FAILED, TAKEN_BACK)
    on_its_way = [Member(Proposal.REPLACED), Member(Proposal.BROADCASTING, carries=False)]
    assert verdict(on_its_way, Mined.UNREAD).status is CallStatus.BROADCASTING
    ended = Member(Proposal.FAILED, failure_reason="The script is invalid.")
    assert verdict([ended], Mined.UNREAD).reason == "The script is invalid."
