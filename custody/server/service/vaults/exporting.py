"""A vault for other wallets: whoever holds M of its keys and this text can spend its coins without the platform."""

from custody.schemas.vault_exports import ExportForm, VaultExport, VaultExportQuery
from custody.server.service.stored_vaults import policy_of
from custody.server.store.models import Vault
from multisig import Vault as Policy
from multisig import bsms_record


def exported(vault: Vault, query: VaultExportQuery) -> VaultExport:
    policy = policy_of(vault)
    return VaultExport(
        vault_id=vault.id,
        name=vault.name,
        format=query.format,
        text=_text(policy, query.format),
        verification_code=policy.verification_code,
    )


def _text(policy: Policy, form: ExportForm) -> str:
    return policy.descriptor if form == "descriptor" else bsms_record(policy)
