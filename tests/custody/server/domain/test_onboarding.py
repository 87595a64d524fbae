"""A request for an organisation is decided once."""

import pytest

from custody.schemas.onboarding import OnboardingStatus as Status
from custody.server.domain.onboarding import TRANSITIONS, RequestDecided, next_status

DECISIONS = ("approve", "reject")


def test_a_pending_one_takes_either_decision() -> None:
    assert [next_status(Status.PENDING, each) for each in DECISIONS] == [Status.APPROVED, Status.REJECTED]


@pytest.mark.parametrize("status", [Status.APPROVED, Status.REJECTED])
@pytest.mark.parametrize("decision", DECISIONS)
def test_a_decided_one_takes_none(status: Status, decision: str) -> None:
    with pytest.raises(RequestDecided, match=f"was {status} already") as caught:
        next_status(status, decision)
    assert caught.value.code == "STATE_CONFLICT"


def test_the_table_leaves_pending_alone() -> None:
    assert {status for status, _ in TRANSITIONS} == {Status.PENDING}
    assert Status.PENDING not in TRANSITIONS.values()
