"""The port for what the platform says of a vault's tokens."""

from typing import Protocol

from signerd.shapes import VaultTokens


class TokenPort(Protocol):
    async def of_vault(self, vault_id: str) -> VaultTokens:
        """Raises UnknownVault, SignedOut, and leaves of PlatformError."""
        ...
