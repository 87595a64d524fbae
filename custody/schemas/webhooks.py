"""Webhooks of a workspace, the events they are told of, how a delivery is signed, and the log of deliveries.

A receiver switches on the names of events: none ever gets another meaning.
"""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, StrictBool, StringConstraints

from custody.common.text import without_unseen
from custody.schemas.call import WORKSPACE_MANAGERS, Call, Way, few, pages
from custody.schemas.common import (
    Count,
    Done,
    Few,
    Int64,
    Label,
    PageSize,
    Prose,
    Shape,
    TextId,
    Timestamp,
    WorkspaceQuery,
    WorkspaceRequest,
)
from custody.schemas.errors import ErrorCode

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
    PROPOSAL_PROVEN = "proposal.proven"
    # A question, to the webhook alone that the vault names for it, which answers with a `ScreeningAnswer`.
    PROPOSAL_SCREENING = "proposal.screening"
    # Something is wrong with its transaction, or something else than before; and all is well again, or it has
    # ended.
    PROPOSAL_TROUBLED = "proposal.troubled"
    PROPOSAL_TROUBLE_ENDED = "proposal.trouble_ended"

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
    # By one; unfrozen by two.
    VAULT_FROZEN = "vault.frozen"
    VAULT_UNFROZEN = "vault.unfrozen"
    VAULT_CONTROLS_CHANGED = "vault.controls_changed"
    VAULT_REPLACED = "vault.replaced"
    ROLE_LIMIT_CHANGED = "role.limit_changed"

    # A token's deployment, and calls of tokens, by the statuses of their records. The first one is told of by
    # proposal.created; pending: it waits again.
    TOKEN_PENDING = "token.pending"  # noqa: S105 - no secret
    TOKEN_BROADCASTING = "token.broadcasting"  # noqa: S105 - no secret
    TOKEN_CONFIRMED = "token.confirmed"  # noqa: S105 - no secret
    TOKEN_FAILED = "token.failed"  # noqa: S105 - no secret
    CALL_PENDING = "call.pending"
    CALL_STALLED = "call.stalled"
    CALL_BROADCASTING = "call.broadcasting"
    # Mined, and with its effect; failed, too, where it was mined without any.
    CALL_CONFIRMED = "call.confirmed"
    CALL_FAILED = "call.failed"

    # What needs a second person, in the workspace that it is about.
    CHANGE_REQUESTED = "change.requested"
    CHANGE_CONFIRMED = "change.confirmed"
    CHANGE_DECLINED = "change.declined"
    CHANGE_EXPIRED = "change.expired"

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


# Of the body that answers a ``proposal.screening``.
MAX_SCREENING_ANSWER: Final = 4_096


class ScreeningAnswer(Shape):
    """Of ``reason``, 200 characters are kept, without what a reader cannot see. What else stands there never undoes a decision."""  # noqa: E501

    decision: Literal["allow", "refuse", "hold"]
    reason: Annotated[
        str | None,
        BeforeValidator(
            lambda given: (without_unseen(given)[:200] if isinstance(given, str) else "") or None
        ),
    ] = None


Kinds = Annotated[
    tuple[
        Annotated[
            str,
            StringConstraints(pattern=r"^[a-z_.*]{1,40}$"),
            Field(json_schema_extra={"enum": [EVERY_KIND, *EventKind]}),
        ],
        ...,
    ],
    Field(min_length=1, max_length=len(EventKind), examples=[["proposal.confirmed", "deposit.seen"]]),
]


# As standardwebhooks.com says, so that a receiver can use the library of its language. The id is the event's.
ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"
# In a log or a repository it shows what it is. The key follows it in base64.
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what a secret begins with is none


def signed_headers(secrets: Sequence[str], event_id: str, body: bytes, now: datetime) -> dict[str, str]:
    """Signed with each of the secrets."""
    timestamp = str(int(now.timestamp()))
    signatures = (signature_of(secret, event_id, timestamp, body) for secret in secrets)
    return {ID_HEADER: event_id, TIMESTAMP_HEADER: timestamp, SIGNATURE_HEADER: " ".join(signatures)}


def signature_of(secret: str, event_id: str, timestamp: str, body: bytes) -> str:
    """As the header has it. Raises ValueError for what is no secret."""
    key = b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    signed = f"{event_id}.{timestamp}.".encode() + body
    return f"v1,{b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


# GitHub lets a repository have twenty for each event; each event is written once for each webhook that wants
# it.
MAX_WEBHOOKS: Final = 10

Url = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1_000),
    Field(examples=["https://receiver.example.org/custody"]),
]


class DisabledReason(StrEnum):
    BY_A_MEMBER = "by-a-member"
    # It answered 410.
    GONE = "gone"
    # It failed for days.
    UNANSWERED = "unanswered"


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class CreateWebhookRequest(WorkspaceRequest):
    """``kinds``: `EventKind`s, or ``*`` for all there are and will be."""

    url: Url
    kinds: Kinds


class Webhook(Shape):
    """``failing_since``: no delivery was taken since then. ``old_secret_until``: until then the old secret signs as well."""  # noqa: E501

    webhook_id: TextId
    workspace_id: Int64
    url: Prose
    kinds: Few[Label]
    enabled: bool
    disabled_at: Timestamp | None
    disabled_reason: DisabledReason | None
    failing_since: Timestamp | None
    old_secret_until: Timestamp | None
    created_by: Int64
    created_at: Timestamp


class WebhookWithSecret(Webhook):
    """``secret`` is shown here and never again; null where no new one was made."""

    secret: Prose | None = Field(repr=False)


class WebhookRequest(WorkspaceRequest):
    webhook_id: TextId


class UpdateWebhookRequest(WebhookRequest):
    """What is left out stays. ``rotate_secret`` makes a new secret; deliveries carry the signatures of both for a day."""  # noqa: E501

    kinds: Kinds | None = None
    enabled: StrictBool | None = None
    rotate_secret: StrictBool = False


class RedeliverWebhookRequest(WorkspaceRequest):
    delivery_id: TextId


class WebhookDeliveriesQuery(WorkspaceQuery):
    """``after`` is the last id seen."""

    webhook_id: TextId
    after: TextId | None = None
    limit: PageSize = 100


class WebhookDelivery(Shape):
    """``response_status`` and ``error`` are the last attempt's. Of what the receiver answered, nothing else is kept."""  # noqa: E501

    delivery_id: TextId
    webhook_id: TextId
    event_id: TextId
    sequence: Int64
    kind: Label
    status: DeliveryStatus
    attempts: Count
    response_status: Count | None
    error: Prose | None
    attempted_at: Timestamp | None
    next_attempt_at: Timestamp | None
    created_at: Timestamp


CREATE_WEBHOOK = Call(
    "POST", "/api/v1/create-webhook", CreateWebhookRequest, WebhookWithSecret,
    "An address on the Internet that is told of the workspace's events. Its secret is shown here and never "
    "again.",
    WORKSPACE_MANAGERS, creates=True, second_person="Make a webhook", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
WEBHOOKS = Call(
    "GET", "/api/v1/webhooks", WorkspaceQuery, few(Webhook),
    "The workspace's webhooks, the oldest first.",
    WORKSPACE_MANAGERS, attempt="see the webhooks",
)  # fmt: skip
UPDATE_WEBHOOK = Call(
    "POST", "/api/v1/update-webhook", UpdateWebhookRequest, WebhookWithSecret,
    "Changes the kinds, enables or disables, makes a new secret. While a new secret takes the old one's "
    "place, both sign.",
    WORKSPACE_MANAGERS, creates=True, second_person="Change a webhook", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
DELETE_WEBHOOK = Call(
    "POST", "/api/v1/delete-webhook", WebhookRequest, Done,
    "Deletes a webhook and the log of its deliveries.",
    WORKSPACE_MANAGERS, second_person="Delete a webhook", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
WEBHOOK_DELIVERIES = Call(
    "GET", "/api/v1/webhook-deliveries", WebhookDeliveriesQuery, pages(WebhookDelivery, by="delivery_id"),
    "What a webhook was told in the last thirty days, the newest first, and how it answered.",
    WORKSPACE_MANAGERS, attempt="see the webhooks", open_to=frozenset({Way.PROGRAM}),
)  # fmt: skip
REDELIVER_WEBHOOK = Call(
    "POST", "/api/v1/redeliver-webhook", RedeliverWebhookRequest, WebhookDelivery,
    "Sends an event once more, with the same id, however the delivery ended.",
    WORKSPACE_MANAGERS, attempt="send a webhook's delivery again", open_to=frozenset({Way.PROGRAM}),
    refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
TEST_WEBHOOK = Call(
    "POST", "/api/v1/test-webhook", WebhookRequest, WebhookDelivery,
    "Sends an event of the kind ``ping``.",
    WORKSPACE_MANAGERS, attempt="test a webhook", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
