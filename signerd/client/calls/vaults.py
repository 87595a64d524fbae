"""Vaults and their pins."""

from signerd import shapes
from signerd.client.flow import PERSON_SECONDS, Asked
from signerd.client.method import row


class VaultCalls:
    @row("GET", "/vaults", tuple[shapes.VaultView, ...])
    @staticmethod
    def vaults() -> Asked:
        return Asked()

    @row("GET", "/vaults/{vault_id}/tokens", shapes.VaultTokens)
    @staticmethod
    def vault_tokens(vault_id: str) -> Asked:
        return Asked({"vault_id": vault_id})

    @row("POST", "/vaults/{vault_id}/pin/preview", shapes.PinPreview)
    @staticmethod
    def preview_pin(vault_id: str, brought: shapes.BroughtQuorum | None = None) -> Asked:
        """What to compare before pinning; a vault brought from elsewhere must be the one in the platform's record."""
        return Asked({"vault_id": vault_id}, body={"brought": _dumped(brought)})

    @row("POST", "/vaults/{vault_id}/pin", shapes.VaultView, seconds=PERSON_SECONDS)
    @staticmethod
    def pin(
        vault_id: str,
        code: str,
        brought: shapes.BroughtQuorum | None = None,
        *,
        without_device_address: bool = False,
    ) -> Asked:
        """Answers when the device knows the vault and has shown its first address; follow the vault's id meanwhile."""
        body = {
            "code": code,
            "brought": _dumped(brought),
            "without_device_address": without_device_address,
        }
        return Asked({"vault_id": vault_id}, body=body)

    @row("POST", "/vaults/{vault_id}/unpin", shapes.VaultView)
    @staticmethod
    def unpin(vault_id: str, code: str) -> Asked:
        return Asked({"vault_id": vault_id}, body={"code": code})


def _dumped(brought: shapes.BroughtQuorum | None) -> dict[str, object] | None:
    return None if brought is None else brought.model_dump(mode="json")
