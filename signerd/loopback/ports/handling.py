"""What a device is made to do that signs nothing."""

from typing import Protocol

from signerd.callers import Caller
from signerd.shapes import AccountKeys


class HandlingPort(Protocol):
    """An app's turns at the devices are bounded (L6): each method raises TooManyPrompts for one that takes too many."""

    async def identify(self, device_id: str, caller: Caller) -> None:
        """Returns when the person has seen it. Raises leaves of DeviceError."""
        ...

    async def cancel(self, device_id: str) -> None:
        """Give up what runs on the device. Raises NoSuchDevice."""
        ...

    async def another_address(self, device_id: str) -> None:
        """The address on its screen is another one than here: whoever had it shown meets AddressDiffers.

        Raises NoSuchDevice, AddressNotShown.
        """
        ...

    async def account_keys(self, device_id: str, account: int, caller: Caller) -> AccountKeys:
        """The device's keys of this standard account. Raises leaves of DeviceError."""
        ...
