"""What each kind of event carries: ids, statuses, amounts. What has words in it is read through the API, by
who may.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from custody.schemas.proposals import ProposalStatus
from custody.schemas.webhook_events import EVERY_KIND, EventKind

_PROPOSAL: Final = (
    "psbt_id", "vault_id", "tx_type", "status", "txid", "amount_sats", "fee_sats",
    "block_height", "block_hash",
)  # fmt: skip
_DEPOSIT: Final = ("vault_id", "txid", "vout", "amount_sats", "block_height", "block_hash")

# A field that is not listed here does not leave the platform, even if a use case passes it.
CARRIES: Final[Mapping[EventKind, tuple[str, ...]]] = {
    EventKind.PING: ("webhook_id",),
    **{kind: _PROPOSAL for kind in EventKind if kind.startswith("proposal.")},
    EventKind.PROPOSAL_APPROVED: (*_PROPOSAL, "user_id", "is_complete"),
    EventKind.PROPOSAL_DECLINED: (*_PROPOSAL, "user_id"),
    EventKind.PROPOSAL_APPROVAL_WITHDRAWN: (*_PROPOSAL, "user_id"),
    **{kind: _DEPOSIT for kind in EventKind if kind.startswith("deposit.")},
    EventKind.VAULT_CREATED: ("vault_id",),
    EventKind.VAULT_LIMIT_CHANGED: ("vault_id",),
    EventKind.ROLE_LIMIT_CHANGED: ("role_id",),
    EventKind.MEMBER_ADDED: ("user_id", "role_id"),
    EventKind.MEMBER_ROLE_CHANGED: ("user_id", "role_id"),
    EventKind.MEMBER_REMOVED: ("user_id",),
    EventKind.KEY_REVOKED: ("key_id", "user_id", "reason", "vault_ids"),
}  # fmt: skip

# Recording one of these in a workspace's log also notifies its webhooks, so no use case can forget it.
TOLD_BY_AUDIT: Final[Mapping[str, EventKind]] = {
    "PROPOSAL_CREATED": EventKind.PROPOSAL_CREATED,
    "FORWARD_PROPOSED": EventKind.PROPOSAL_CREATED,
    "SIGNATURE_SUBMITTED": EventKind.PROPOSAL_APPROVED,
    "PROPOSAL_DECLINED": EventKind.PROPOSAL_DECLINED,
    "SIGNATURE_WITHDRAWN": EventKind.PROPOSAL_APPROVAL_WITHDRAWN,
    "VAULT_CREATED": EventKind.VAULT_CREATED,
    "VAULT_POLICY_REPLACED": EventKind.VAULT_LIMIT_CHANGED,
    "ROLE_POLICY_REPLACED": EventKind.ROLE_LIMIT_CHANGED,
    "MEMBER_ADDED": EventKind.MEMBER_ADDED,
    "INVITATION_ACCEPTED": EventKind.MEMBER_ADDED,
    "MEMBER_ROLE_CHANGED": EventKind.MEMBER_ROLE_CHANGED,
    "MEMBER_REMOVED": EventKind.MEMBER_REMOVED,
    "MEMBER_LEFT": EventKind.MEMBER_REMOVED,
}


def kind_of_status(status: ProposalStatus) -> EventKind:
    """Of a proposal that has come to it."""
    return EventKind(f"proposal.{status.lower()}")


def wants(kinds: Iterable[str], kind: EventKind) -> bool:
    """Whether a webhook with those kinds is told."""
    return kind in kinds or EVERY_KIND in kinds


def carried(kind: EventKind, data: Mapping[str, Any]) -> dict[str, Any]:
    """Just what the kind carries. Raises KeyError where the teller leaves something out."""
    return {name: data[name] for name in CARRIES[kind]}
