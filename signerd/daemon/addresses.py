"""Accounts and addresses of this signer: derived on this machine, and compared with what a device shows (S13)."""

import asyncio
from dataclasses import dataclass

from firmware_bridge import Device
from firmware_bridge.families import maker_of
from multisig import CHANGE, MAX_INDEX, Network, Policy, Profile, Vault, encode_address
from signerd.account.vaults import seen_vault
from signerd.callers import Caller
from signerd.core.audit import Note
from signerd.core.text import plain
from signerd.core.values import Pin
from signerd.daemon.device_actions import Prompts, asked_by
from signerd.daemon.devices import Devices, Place
from signerd.daemon.views import account_keys
from signerd.errors import AddressDiffers, AddressNotShown, NoRegisteredKey, NotPinned
from signerd.feed import Feed
from signerd.journal import Journal
from signerd.shapes import AccountKeys, AddressPage, AddressShown, AddressView

SAY_SO_HERE = "No button on it means no: if it is another one, say so on this computer."


@dataclass(frozen=True)
class Showing:
    """One loop uses it. ``subject`` is the vault's id, or the device's for the profile: the feed tells under it."""

    journal: Journal
    devices: Devices
    feed: Feed

    async def show(self, device: Device, policy: Policy, place: Place, subject: str) -> str:
        """The address, as the device's screen has it.

        Raises:
            AddressDiffers, journaled and told; AddressNotShown; DeviceFailed.
        """
        screen = on_screen(policy, place)
        self.feed.add(subject, "progress", _to_compare(device, policy, place, screen))
        try:
            await self.devices.show_address(
                device.id, policy, place, lambda note: self.feed.add(subject, "progress", plain(note.text))
            )
        except AddressDiffers as error:
            self._alarm(device, policy, place, subject, error)
            raise
        except AddressNotShown as error:
            self.feed.add(subject, "attention", plain(str(error)))
            raise
        return screen

    def _alarm(
        self, device: Device, policy: Policy, place: Place, subject: str, error: AddressDiffers
    ) -> None:
        facts = {
            "address": policy.address(place.chain, place.index),
            "descriptor": policy.descriptor if isinstance(policy, Vault) else str(policy.key),
            "device": device.id,
            "sentence": plain(str(error)),
        }
        self.journal.note(Note("address-differs", subject, facts))
        self.feed.add(subject, "alarm", plain(str(error)))


def on_screen(policy: Policy, place: Place) -> str:
    """How devices write the address: none knows regtest's own form."""
    network = Network.TESTNET4 if policy.network is Network.REGTEST else policy.network
    address = encode_address(policy.script_pubkey(place.chain, place.index), network)
    assert address is not None, "P2WSH and P2WPKH have an address on every network"
    return address


def _to_compare(device: Device, policy: Policy, place: Place, screen: str) -> str:
    """What the person looks for on the device's screen."""
    address = policy.address(place.chain, place.index)
    form = "" if screen == address else f", which devices show as {screen}"
    otherwise = "" if maker_of(device.family).refuses_address else f" {SAY_SO_HERE}"
    return f"Your device shows {place.words}. It must be {address}{form}.{otherwise}"


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
