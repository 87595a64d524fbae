"""Vaults."""

from custody.schemas.queries import WorkspaceQuery
from custody.schemas.users import PermissionName
from custody.schemas.vault_exports import VaultExport, VaultExportQuery
from custody.schemas.vaults import CreateWalletRequest, Vault
from custody.server.domain.errors import KeyAccountsExhausted, StateConflict
from custody.server.service.limits.administration import vault_in
from custody.server.service.vaults.exporting import exported
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


def vault_export(call: Call[VaultExportQuery]) -> VaultExport:
    """The vault as other wallets import it: its descriptor with checksum and key origins, or a record of BIP-129 (BSMS)."""
    return exported(vault_in(call.db, call.access, call.body.vault_id), call.body)


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
    Endpoint("GET", "/api/v1/vault-export", vault_export, VaultExport, READERS, Unit.READ, VaultExportQuery),
)
