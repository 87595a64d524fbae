"""Invitations: an answer is final, and so is time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.schemas.invitations import InvitationStatus as Status
from custody.server.rules.invitations import (
    InvitationDecided,
    require_pending,
    status_at,
)

DECIDED = [status for status in Status if status is not Status.PENDING]
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_p46_one_that_is_decided_stays_what_it_is() -> None:
    """The sentence tells what became of it."""
    require_pending(Status.PENDING)
    for status in DECIDED:
        with pytest.raises(InvitationDecided, match=r"accepted already|declined|expired|revoked"):
            require_pending(status)


@given(st.sampled_from(list(Status)), st.integers(-3, 3))
def test_time_ends_a_pending_one_only(status: Status, seconds: int) -> None:
    """At its very end it is over; what was decided before stays what it was."""
    seen = status_at(status, NOW, NOW + timedelta(seconds=seconds))
    over = status is Status.PENDING and seconds >= 0
    assert seen is (Status.EXPIRED if over else status)
