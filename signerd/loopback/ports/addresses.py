"""The signer's accounts, and the addresses of pinned vaults and of the profile."""

from typing import Protocol

from signerd.callers import Caller
from signerd.shapes import AccountKeys, AddressPage, AddressShown


class AddressPort(Protocol):
    """Addresses are derived here, from what was pinned and registered; the platform is not asked."""

    async def accounts(self) -> AccountKeys:
        """The registered keys of this signer. No device is needed."""
        ...

    async def of_vault(self, vault_id: str, chain: int, start: int, count: int) -> AddressPage:
        """Raises UnknownVault, NotPinned."""
        ...

    async def of_profile(self, chain: int, start: int, count: int) -> AddressPage:
        """Raises NoRegisteredKey."""
        ...

    async def show_of_vault(self, vault_id: str, chain: int, index: int, caller: Caller) -> AddressShown:
        """Have the device show it, compared with ours.

        Raises:
            UnknownVault, NotPinned, AddressDiffers, TooManyPrompts; leaves of DeviceError.
        """
        ...

    async def show_of_profile(self, chain: int, index: int, caller: Caller) -> AddressShown:
        """As ``show_of_vault``; NoRegisteredKey."""
        ...
