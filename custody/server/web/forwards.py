"""Forwards of members' own money into the workspace's vaults."""

from custody.schemas.forwards import ForwardToVaultRequest
from custody.schemas.proposals import CreatePsbtResponse
from custody.schemas.users import PermissionName
from custody.server.domain.errors import (
    ChainUnavailable,
    Dust,
    InsufficientFunds,
    KeyIsRevoked,
    LockedFunds,
    WalletAddressMismatch,
)
from custody.server.service.proposals.forwarding import ForwardDraft
from custody.server.web.endpoint import Call, Endpoint, Unit


def forward_to_vault(call: Call[ForwardToVaultRequest]) -> CreatePsbtResponse:
    """Proposes to move the caller's own money, from their signing profile, into a vault. Only the caller signs it, through
    ``sign-psbt``; their signature finalises it, and it is broadcast.
    """
    return call.services.forwarding.create(call.db, call.caller, call.access, call.body, call.prepared)


def _draft(call: Call[ForwardToVaultRequest]) -> ForwardDraft:
    return call.services.forwarding.draft(call.db, call.caller, call.access, call.body)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/v1/forward-to-vault",
        forward_to_vault,
        CreatePsbtResponse,
        frozenset({PermissionName.PAYMENT_INIT}),
        Unit.WRITE,
        ForwardToVaultRequest,
        creates=True,
        prepares=_draft,
        refuses=(
            ChainUnavailable,
            Dust,
            InsufficientFunds,
            KeyIsRevoked,
            LockedFunds,
            WalletAddressMismatch,
        ),
    ),
)
