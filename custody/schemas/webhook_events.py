"""What a webhook can be told of. The names are what a receiver switches on: none is ever given another
meaning.
"""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints

from custody.schemas.common import (
    Int64,
    Label,
    Shape,
    TextId,
    Timestamp,
)

# All kinds, those of later versions too.
EVERY_KIND: Final = "*"


class EventKind(StrEnum):
    """A proposal's statuses each have theirs, named ``proposal.`` and the status in small letters."""

    # Asked for by POST /api/v1/test-webhook; it goes to that webhook whatever it wants otherwise.
    PING = "ping"

    PROPOSAL_CREATED = "proposal.created"
    # One signer's word; the threshold is met with proposal.signed, and lost with proposal.rejected.
    PROPOSAL_APPROVED = "proposal.approved"
    PROPOSAL_DECLINED = "proposal.declined"
    # Its signer's key was lost before the threshold was met: the approval counts no more.
    PROPOSAL_APPROVAL_WITHDRAWN = "proposal.approval_withdrawn"
    PROPOSAL_SIGNED = "proposal.signed"
    PROPOSAL_STALLED = "proposal.stalled"
    # Also after a reorganisation took its block away.
    PROPOSAL_BROADCASTING = "proposal.broadcasting"
    PROPOSAL_CONFIRMED = "proposal.confirmed"
    PROPOSAL_REPLACED = "proposal.replaced"
    PROPOSAL_REJECTED = "proposal.rejected"
    PROPOSAL_CANCELLED = "proposal.cancelled"
    PROPOSAL_EXPIRED = "proposal.expired"
    PROPOSAL_INVALIDATED = "proposal.invalidated"
    PROPOSAL_FAILED = "proposal.failed"

    # What comes to a vault otherwise than by a proposal of its own.
    DEPOSIT_SEEN = "deposit.seen"
    # In a block; again where a reorganisation puts it into another one.
    DEPOSIT_CONFIRMED = "deposit.confirmed"
    # A reorganisation put it back among the transactions that wait.
    DEPOSIT_UNCONFIRMED = "deposit.unconfirmed"
    # Replaced, evicted, or gone with its block.
    DEPOSIT_REMOVED = "deposit.removed"

    VAULT_CREATED = "vault.created"
    VAULT_LIMIT_CHANGED = "vault.limit_changed"
    ROLE_LIMIT_CHANGED = "role.limit_changed"

    MEMBER_ADDED = "member.added"
    MEMBER_ROLE_CHANGED = "member.role_changed"
    MEMBER_REMOVED = "member.removed"
    # Of a signer of one of the workspace's vaults.
    KEY_REVOKED = "key.revoked"


class WebhookEvent(Shape):
    """The body of a delivery. ``id`` is the same at every attempt: what was seen before is to be answered, and not done again.

    ``sequence`` counts the workspace's events in the order in which they happened. Deliveries overtake one another; a webhook
    that is told of some kinds only sees gaps. ``kind`` is text: a newer platform may know more kinds.
    """  # noqa: E501

    id: TextId
    sequence: Int64
    kind: Label
    workspace_id: Int64
    created_at: Timestamp
    data: dict[Label, Any]


Kinds = Annotated[
    tuple[Annotated[str, StringConstraints(pattern=r"^[a-z_.*]{1,40}$")], ...],
    Field(min_length=1, max_length=len(EventKind), examples=[["proposal.confirmed", "deposit.seen"]]),
]
