"""The statuses of tokens and calls: what must hold of the table, and which version of a family decides."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.schemas.asset_tokens import CallStatus
from custody.schemas.proposals import ProposalStatus as Proposal
from custody.server.rules.lifecycle import ENDED
from custody.server.store.models import ProposalRow
from custody.server.tokens.status import (
    TAKEN_BACK,
    IndexedOutcome,
    best_of,
    family_of,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNREAD, EFFECTIVE, WITHOUT_EFFECT = None, IndexedOutcome("b", NOW, None), IndexedOutcome("b", NOW, "paused")


def member(status: Proposal, carries: bool = True, failure_reason: str | None = None) -> ProposalRow:
    data, rest = "43" if carries else None, {"txid_expected": "txid", "updated_at": NOW}
    return ProposalRow(status=status.value, op_return_hex=data, failure_reason=failure_reason, **rest)


# A proof makes and calls no token.
OF_TOKENS = [status for status in Proposal if status is not Proposal.PROVEN]
MEMBERS = st.builds(member, st.sampled_from(OF_TOKENS), st.booleans(), st.none())
FAMILIES = st.lists(MEMBERS, min_size=1, max_size=5).filter(lambda family: family[0].op_return_hex)


def test_p35_the_index_decides_of_a_confirmed_transaction_and_of_no_other():
    """It may be on a branch that the proposals have left already."""
    for status in OF_TOKENS:
        words = [family_of([member(status)], judged).status for judged in (UNREAD, EFFECTIVE, WITHOUT_EFFECT)]
        if status is Proposal.CONFIRMED:
            assert words == [CallStatus.BROADCASTING, CallStatus.CONFIRMED, CallStatus.FAILED]
        else:
            assert len(set(words)) == 1
            assert CallStatus.CONFIRMED not in words
            assert (CallStatus.FAILED in words) is (status in ENDED)


@given(FAMILIES, st.sampled_from((UNREAD, EFFECTIVE, WITHOUT_EFFECT)))
def test_a_reason_stands_beside_what_failed_and_nothing_else(family, judged):
    found = family_of(family, judged if best_of(family).status is Proposal.CONFIRMED else UNREAD)
    assert (found.reason is not None) is (found.status is CallStatus.FAILED)


@given(FAMILIES)
def test_an_ended_version_speaks_only_where_all_have_ended(family):
    best = best_of(family)
    assert best.op_return_hex
    if best.status in ENDED:
        assert all(member.status in ENDED for member in family if member.op_return_hex)


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
    assert family_of([member(status) for status in family], EFFECTIVE).status is word


def test_what_was_taken_back_has_failed_and_says_so_and_the_proposals_own_reason_goes_first():
    original, back = member(Proposal.INVALIDATED), member(Proposal.CONFIRMED, carries=False)
    taken = family_of([original, back], UNREAD)
    assert (taken.status, taken.reason) == (CallStatus.FAILED, TAKEN_BACK)
    on_its_way = [member(Proposal.REPLACED), member(Proposal.BROADCASTING, carries=False)]
    assert family_of(on_its_way, UNREAD).status is CallStatus.BROADCASTING
    ended = member(Proposal.FAILED, failure_reason="The script is invalid.")
    assert family_of([ended], UNREAD).reason == "The script is invalid."
