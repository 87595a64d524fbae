"""The state table of invitations: an answer is final."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.schemas.invitations import InvitationStatus as Status
from custody.server.domain.invitations import (
    InvitationDecided,
    InvitationMove,
    next_status,
    status_at,
)

DECIDED = [status for status in Status if status is not Status.PENDING]
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (InvitationMove.ACCEPT, Status.ACCEPTED),
        (InvitationMove.DECLINE, Status.DECLINED),
        (InvitationMove.REVOKE, Status.REVOKED),
        (InvitationMove.EXPIRE, Status.EXPIRED),
    ],
)
def test_a_pending_one_takes_every_event_once(event: InvitationMove, status: Status) -> None:
    assert next_status(Status.PENDING, event) is status


@pytest.mark.parametrize(("status", "event"), list(product(DECIDED, InvitationMove)))
def test_a_decided_one_takes_none(status: Status, event: InvitationMove) -> None:
    """P46: twice among them. The sentence tells what became of it."""
    with pytest.raises(InvitationDecided, match=r"accepted already|declined|expired|revoked") as caught:
        next_status(status, event)
    assert caught.value.code == "STATE_CONFLICT"
    assert caught.value.status is status


@given(st.sampled_from(list(Status)), st.integers(-3, 3))
def test_time_ends_a_pending_one_only(status: Status, seconds: int) -> None:
    """At its very end it is over; what was decided before stays what it was."""
    seen = status_at(status, NOW, NOW + timedelta(seconds=seconds))
    over = status is Status.PENDING and seconds >= 0
    assert seen is (Status.EXPIRED if over else status)
