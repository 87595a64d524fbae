"""Vaults."""

from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import idempotency, method
from custody.schemas.common import Many
from custody.schemas.vault_exports import ExportForm, VaultExport
from custody.schemas.vaults import CreateWalletRequest, Vault

_VAULTS = TypeAdapter(Many[Vault])


class VaultCalls:
    @method
    @staticmethod
    def create_wallet(
        core: Core, body: CreateWalletRequest, *, idempotency_key: str | None = None
    ) -> Plan[Vault]:
        """``POST /api/v1/create_wallet``."""
        request = core.build("POST", "/api/v1/create_wallet", body, headers=idempotency(idempotency_key))
        return read((yield from call(core, request, repeatable=idempotency_key is not None)), Vault)

    @method
    @staticmethod
    def list_wallets(core: Core, workspace_id: int) -> Plan[list[Vault]]:
        """``GET /api/v1/list-wallets``."""
        request = core.build("GET", "/api/v1/list-wallets", query={"workspace_id": workspace_id})
        return read((yield from call(core, request, repeatable=True)), _VAULTS)

    @method
    @staticmethod
    def vault_export(
        core: Core, workspace_id: int, vault_id: str, form: ExportForm = "descriptor"
    ) -> Plan[VaultExport]:
        """``GET /api/v1/vault-export``."""
        query = {"workspace_id": workspace_id, "vault_id": vault_id, "format": form}
        request = core.build("GET", "/api/v1/vault-export", query=query)
        return read((yield from call(core, request, repeatable=True)), VaultExport)
