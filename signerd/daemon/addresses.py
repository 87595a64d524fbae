"""Accounts and addresses of this signer: from what was registered and pinned, derived on this machine."""

import asyncio
from dataclasses import dataclass

from firmware_bridge import Device
from multisig import CHANGE, MAX_INDEX, Policy, Profile
from signerd.account.vaults import seen_vault
from signerd.callers import Caller
from signerd.core.text import plain
from signerd.core.values import Pin
from signerd.daemon.devices import Devices, Place
from signerd.daemon.handling import asked_by
from signerd.daemon.prompts import Prompts
from signerd.daemon.showing import Showing
from signerd.daemon.views import account_keys
from signerd.errors import NoRegisteredKey, NotPinned
from signerd.feed import Feed
from signerd.journal import Journal
from signerd.shapes import AccountKeys, AddressPage, AddressShown, AddressView

PROFILE = "your profile"


@dataclass(frozen=True)
class Addresses:
    """One loop uses it. Addresses are derived here, from what was pinned and registered; the platform is not asked."""

    journal: Journal
    devices: Devices
    feed: Feed
    prompts: Prompts

    async def accounts(self) -> AccountKeys:
        """The registered keys of this signer. No device is needed."""
        return account_keys(self.journal.network, self.journal.own_keys())

    async def of_vault(self, vault_id: str, chain: int, start: int, count: int) -> AddressPage:
        """Raises UnknownVault, NotPinned."""
        pin = self._pinned(vault_id)
        return AddressPage(
            network=str(self.journal.network),
            vault_id=vault_id,
            name=plain(pin.name),
            addresses=await _derived(pin.vault, chain, start, count),
            fault=seen_vault(self.journal, vault_id).fault,
        )

    async def of_profile(self, chain: int, start: int, count: int) -> AddressPage:
        """Raises NoRegisteredKey."""
        profile = self._profile()
        return AddressPage(
            network=str(self.journal.network),
            vault_id=None,
            name=PROFILE,
            addresses=await _derived(profile, chain, start, count),
        )

    async def show_of_vault(self, vault_id: str, chain: int, index: int, caller: Caller) -> AddressShown:
        """Have the device show it, compared with ours.

        Raises:
            UnknownVault, NotPinned, AddressDiffers, TooManyPrompts; leaves of DeviceError.
        """
        pin = self._pinned(vault_id)
        device = await self.devices.of(pin.own_key.origin.fingerprint)
        place = Place(chain, index, f"{_words(chain, index)} of the vault '{plain(pin.name)}'")
        return await self._show(device, pin.vault, place, vault_id, caller)

    async def show_of_profile(self, chain: int, index: int, caller: Caller) -> AddressShown:
        """As ``show_of_vault``; NoRegisteredKey."""
        profile = self._profile()
        device = await self.devices.of(profile.key.origin.fingerprint)
        place = Place(chain, index, f"{_words(chain, index)} of {PROFILE}")
        return await self._show(device, profile, place, device.id, caller)

    async def _show(
        self, device: Device, policy: Policy, place: Place, subject: str, caller: Caller
    ) -> AddressShown:
        with self.prompts.turn(caller):
            if caller.app_id is not None:
                self.feed.add(subject, "progress", f"An address is shown{asked_by(caller)}.")
            screen = await Showing(self.journal, self.devices, self.feed).show(device, policy, place, subject)
        return AddressShown(
            network=str(self.journal.network),
            device_id=device.id,
            chain=place.chain,
            index=place.index,
            address=policy.address(place.chain, place.index),
            on_screen=screen,
        )

    def _pinned(self, vault_id: str) -> Pin:
        """Raises UnknownVault, NotPinned: whatever the platform shows otherwise is nobody's to pay to."""
        pin = self.journal.pin(vault_id)
        if pin is None:
            seen_vault(self.journal, vault_id)
            raise NotPinned("the vault is not pinned, so its addresses are not known to be right")
        return pin

    def _profile(self) -> Profile:
        """Raises NoRegisteredKey."""
        for own in self.journal.own_keys():
            if own.purpose == "profile":
                return Profile(self.journal.network, own.key)
        raise NoRegisteredKey("no profile key of a device of yours is registered")


async def _derived(policy: Policy, chain: int, start: int, count: int) -> tuple[AddressView, ...]:
    """Fewer where the chain ends."""
    found = []
    for index in range(start, min(start + count, MAX_INDEX + 1)):
        found.append(AddressView(chain=chain, index=index, address=policy.address(chain, index)))
        # Others are served between two of them.
        await asyncio.sleep(0)
    return tuple(found)


def _words(chain: int, index: int) -> str:
    return f"{'change' if chain == CHANGE else 'receive'} address {index}"
