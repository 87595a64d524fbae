"""Vaults."""

from custody.schemas.queries import WorkspaceQuery
from custody.schemas.users import PermissionName
from custody.schemas.vaults import CreateWalletRequest, Vault
from custody.server.domain.errors import KeyAccountsExhausted, StateConflict
from custody.server.web.endpoint import Call, Endpoint, Unit

READERS = frozenset(
    {PermissionName.MANAGE_WORKSPACE, PermissionName.PAYMENT_APPROVE, PermissionName.VIEW_BALANCES}
)


def create_wallet(call: Call[CreateWalletRequest]) -> Vault:
    """Creates an M-of-N vault. Its signers, threshold, name and network are fixed from then on."""
    return call.services.vaults.create(call.db, call.caller, call.access, call.body)


def list_wallets(call: Call[WorkspaceQuery]) -> list[Vault]:
    """The workspace's vaults, the oldest first."""
    return call.services.vaults.in_workspace(call.db, call.access)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/v1/create_wallet",
        create_wallet,
        Vault,
        frozenset({PermissionName.MANAGE_WORKSPACE}),
        Unit.WRITE,
        CreateWalletRequest,
        creates=True,
        refuses=(KeyAccountsExhausted, StateConflict),
    ),
    Endpoint("GET", "/api/v1/list-wallets", list_wallets, list[Vault], READERS, Unit.READ, WorkspaceQuery),
)
