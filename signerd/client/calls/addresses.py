"""Accounts and addresses of this signer, and their addresses on the device's screen."""

from signerd import shapes
from signerd.client.flow import PERSON_SECONDS, Asked
from signerd.client.method import row


class AddressCalls:
    @row("GET", "/accounts", shapes.AccountKeys)
    @staticmethod
    def accounts() -> Asked:
        """The registered keys. No device is needed."""
        return Asked()

    @row("GET", "/vaults/{vault_id}/addresses", shapes.AddressPage)
    @staticmethod
    def vault_addresses(
        vault_id: str, chain: int | None = None, start: int | None = None, count: int | None = None
    ) -> Asked:
        """Of a pinned vault. ``chain``: 0 for receiving, 1 for change."""
        return Asked({"vault_id": vault_id}, {"chain": chain, "start": start, "count": count})

    @row("GET", "/profile/addresses", shapes.AddressPage)
    @staticmethod
    def profile_addresses(
        chain: int | None = None, start: int | None = None, count: int | None = None
    ) -> Asked:
        return Asked(query={"chain": chain, "start": start, "count": count})

    @row("POST", "/vaults/{vault_id}/addresses/show", shapes.AddressShown, seconds=PERSON_SECONDS)
    @staticmethod
    def show_vault_address(vault_id: str, index: int, chain: int = 0) -> Asked:
        """Answers when the device has shown it, and the same one as this machine derives; follow the vault's id meanwhile."""
        return Asked({"vault_id": vault_id}, body={"chain": chain, "index": index})

    @row("POST", "/profile/addresses/show", shapes.AddressShown, seconds=PERSON_SECONDS)
    @staticmethod
    def show_profile_address(index: int, chain: int = 0) -> Asked:
        """As ``show_vault_address``; what happens meanwhile is told under the device's id."""
        return Asked(body={"chain": chain, "index": index})
