"""Requests for an organisation: an operator decides each once; the number of open requests is limited."""

from datetime import timedelta

from custody.schemas.onboarding import OnboardingStatus as Status
from custody.server.domain.errors import PermissionDenied, StateConflict

# One for each network, and one more.
MAX_PENDING_OF_ACCOUNT = 3
REQUESTS_PER_WINDOW = 10
REQUESTS_WINDOW = timedelta(days=1)

TRANSITIONS: dict[tuple[Status, str], Status] = {
    (Status.PENDING, "approve"): Status.APPROVED,
    (Status.PENDING, "reject"): Status.REJECTED,
}


class RequestDecided(StateConflict):
    hint = "Change the organisation itself where it was approved; the requester may send another request."

    def __init__(self, status: Status) -> None:
        super().__init__(f"This request was {status} already.")
        self.status = status


class TooManyRequests(StateConflict):
    hint = "Wait until an operator has decided about one of them."


class NotAnOperator(PermissionDenied):
    hint = "Only operators of the platform review requests; custody admin make-operator makes one."


def next_status(status: Status, decision: str) -> Status:
    """The status after a decision, ``approve`` or ``reject``. Raises RequestDecided."""
    try:
        return TRANSITIONS[status, decision]
    except KeyError:
        raise RequestDecided(status) from None
