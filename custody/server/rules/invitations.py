"""The status of an invitation, its lifetime, and the limits on how many may be sent."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from custody.schemas.invitations import InvitationStatus as Status
from custody.server.errors import PermissionDenied, StateConflict

# As long as GitHub's to an organisation.
INVITATION_LIFETIME = timedelta(days=7)
# Each one is a mail to a person who did not ask for it.
MAX_PENDING_IN_WORKSPACE = 100


@dataclass(frozen=True)
class Rate:
    """At most ``limit`` invitations in any ``window``, whatever their status."""

    limit: int
    window: timedelta


# For a whole organisation, so that more workspaces do not allow more mails.
ORGANISATION_RATE = Rate(100, timedelta(hours=1))
# To one address from one organisation: revoking and inviting again must not fill a mailbox.
ADDRESS_RATE = Rate(5, timedelta(days=1))


_IN_WORDS = {
    Status.ACCEPTED: "was accepted already",
    Status.DECLINED: "was declined",
    Status.EXPIRED: "has expired",
    Status.REVOKED: "was revoked",
}


class InvitationDecided(StateConflict):
    hint = "Ask an administrator of the workspace for a new one, if it is still wanted."

    def __init__(self, status: Status) -> None:
        super().__init__(f"This invitation {_IN_WORDS[status]}.")
        self.status = status


class AlreadyInvited(StateConflict):
    hint = "Wait for the answer, or take the invitation back before you invite again."


class TooManyPending(StateConflict):
    hint = "Revoke what is no longer wanted with POST /api/v1/revoke-invite."


class NoLongerGranted(StateConflict):
    hint = "Ask an administrator of the workspace for a new invitation."


class NotTheInvitee(PermissionDenied):
    """P46. The answer does not tell the invited address."""

    hint = "Sign in with the account of the address that the invitation was sent to."


def require_pending(status: Status) -> None:
    """An answer, a revocation or an end is final. Raises InvitationDecided."""
    if status is not Status.PENDING:
        raise InvitationDecided(status)


def status_at(stored: Status, expires_at: datetime, now: datetime) -> Status:
    """The effective status: a pending invitation is expired at ``expires_at``, even before that is stored."""
    return Status.EXPIRED if stored is Status.PENDING and now >= expires_at else stored
