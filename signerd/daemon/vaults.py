"""Addresses, accounts and pinning of vaults, for the loopback API and the CLI.

Addresses are derived on this machine and compared with what a device shows; before a pin is recorded, the
device registers the vault and shows its first address (S13).
"""

import asyncio
from dataclasses import dataclass

from firmware_bridge import Device, Family
from firmware_bridge.makers import maker_of
from multisig import CHANGE, MAX_INDEX, MultisigError, Network, Policy, Profile, Vault
from signerd.account.vaults import GivenVault, SeenVault, Source, pin, pinnable, require_code, seen_vault
from signerd.callers import LoopbackCaller
from signerd.core.addresses import on_screen
from signerd.core.audit import Note
from signerd.core.events import JudgeAgain, News
from signerd.core.text import as_compared, foreign, plain, said
from signerd.core.values import Pin
from signerd.daemon.device_actions import Prompts, asked_by
from signerd.daemon.devices import FIRST, AddressToShow, Devices, teller
from signerd.daemon.views import account_keys
from signerd.errors import (
    AddressDiffers,
    AddressNotShown,
    DeviceError,
    NoRegisteredKey,
    NotPinned,
    VaultDiffers,
)
from signerd.feed import Feed
from signerd.journal import Journal
from signerd.journal.keys_and_vaults import AtDevice
from signerd.shapes import (
    AccountKeys,
    AddressPage,
    AddressShown,
    AddressView,
    Compared,
    ImportedQuorum,
)
from signerd.shapes.limits import RECEIVE, USUAL_COUNT

SAY_SO_HERE = "No button on it means no: if it is another one, say so on this computer."


async def shown_on(
    devices: Devices,
    journal: Journal,
    feed: Feed,
    device: Device,
    policy: Policy,
    place: AddressToShow,
    subject: str,
) -> str:
    """Have the device show the address, and compare; the address as its screen writes it. ``subject`` of the
    feed's lines is the vault's id, or the device's id for the profile.

    Raises:
        AddressDiffers, after it is journaled and in the feed; AddressNotShown; DeviceFailed.
    """
    screen = written_on(policy, place, device.family)
    address = as_compared(screen, policy.address(place.chain, place.index))
    otherwise = "" if maker_of(device.family).refuses_address else f" {SAY_SO_HERE}"
    feed.add(subject, "progress", f"Your device shows {place.words}. It must be {address}.{otherwise}")
    try:
        await devices.show_address(device.id, policy, place, teller(feed, subject))
    except AddressDiffers as error:
        journal.note(_differs(policy, place, device.id, subject, str(error)))
        feed.add(subject, "alarm", str(error))
        raise
    except AddressNotShown as error:
        feed.add(subject, "attention", str(error))
        raise
    return screen


def _differs(policy: Policy, place: AddressToShow, device: str, subject: str, sentence: str) -> Note:
    facts = {
        "address": policy.address(place.chain, place.index),
        "descriptor": policy.descriptor if isinstance(policy, Vault) else str(policy.key),
        "device": device,
        "sentence": plain(sentence),
    }
    return Note("address-differs", subject, facts)


def written_on(policy: Policy, place: AddressToShow, family: Family | None = None) -> str:
    """The address as a device of this family writes it; without a family, as most devices do."""
    if family is not None and maker_of(family).knows_regtest:
        return policy.address(place.chain, place.index)
    address = on_screen(policy.script_pubkey(place.chain, place.index), policy.network)
    assert address is not None, "P2WSH and P2WPKH have an address on every network"
    return address


PROFILE = "your profile"


@dataclass(frozen=True)
class Addresses:
    """Addresses derived on this machine from pinned vaults and registered keys; the platform is not asked.
    Not thread-safe: for one event loop.
    """

    journal: Journal
    devices: Devices
    feed: Feed
    prompts: Prompts

    async def accounts(self) -> AccountKeys:
        """The registered keys of this signer. No device is needed."""
        return account_keys(self.journal.network, self.journal.own_keys())

    async def of_vault(
        self, vault_id: str, chain: int = RECEIVE, start: int = 0, count: int = USUAL_COUNT
    ) -> AddressPage:
        """Raises UnknownVault, NotPinned."""
        pin = self._pinned(vault_id)
        return AddressPage(
            network=str(self.journal.network),
            vault_id=vault_id,
            name=pin.name,
            addresses=await _derived(pin.vault, chain, start, count),
            fault=seen_vault(self.journal, vault_id).fault,
        )

    async def of_profile(self, chain: int = RECEIVE, start: int = 0, count: int = USUAL_COUNT) -> AddressPage:
        """Raises NoRegisteredKey."""
        profile = self._profile()
        return AddressPage(
            network=str(self.journal.network),
            vault_id=None,
            name=PROFILE,
            addresses=await _derived(profile, chain, start, count),
        )

    async def show_of_vault(
        self, vault_id: str, chain: int, index: int, caller: LoopbackCaller
    ) -> AddressShown:
        """Have the device show it, compared with ours.

        Raises:
            UnknownVault, NotPinned, AddressDiffers, TooManyPrompts; leaves of DeviceError.
        """
        pin = self._pinned(vault_id)
        device = await self.devices.of(pin.own_key.origin.fingerprint)
        place = AddressToShow(chain, index, f"{_words(chain, index)} of the vault '{foreign(pin.name)}'")
        return await self._show(device, pin.vault, place, vault_id, caller)

    async def show_of_profile(self, chain: int, index: int, caller: LoopbackCaller) -> AddressShown:
        """As ``show_of_vault``; NoRegisteredKey."""
        profile = self._profile()
        device = await self.devices.of(profile.key.origin.fingerprint)
        place = AddressToShow(chain, index, f"{_words(chain, index)} of {PROFILE}")
        return await self._show(device, profile, place, device.id, caller)

    async def _show(
        self, device: Device, policy: Policy, place: AddressToShow, subject: str, caller: LoopbackCaller
    ) -> AddressShown:
        with self.prompts.turn(caller):
            if caller.app_id is not None:
                self.feed.add(subject, "progress", f"An address is shown{asked_by(caller)}.")
            screen = await shown_on(self.devices, self.journal, self.feed, device, policy, place, subject)
        return AddressShown(
            network=str(self.journal.network),
            device_id=device.id,
            chain=place.chain,
            index=place.index,
            address=policy.address(place.chain, place.index),
            on_screen=screen,
        )

    def _pinned(self, vault_id: str) -> Pin:
        """Raises UnknownVault, and NotPinned also where the platform now shows another descriptor than the
        pinned one.
        """
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
    """Fewer than ``count`` at the last index of the chain."""
    found = []
    for index in range(start, min(start + count, MAX_INDEX + 1)):
        screen = on_screen(policy.script_pubkey(chain, index), policy.network)
        address = policy.address(chain, index)
        found.append(AddressView(chain=chain, index=index, address=address, on_screen=screen or address))
        # Other requests are served between two of them.
        await asyncio.sleep(0)
    return tuple(found)


def _words(chain: int, index: int) -> str:
    return f"{'change' if chain == CHANGE else 'receive'} address {index}"


_DO_WITHOUT = "To pin without your device showing the first address: --without-device-address."


def imported_quorum(given: ImportedQuorum | None, network: Network) -> GivenVault | None:
    """Raises VaultDiffers where the descriptor that the person gives is not a vault of this network."""
    if given is None:
        return None
    try:
        vault = Vault.from_descriptor(given.descriptor, network)
    except MultisigError as error:
        raise VaultDiffers(f"the vault from your {given.source} cannot be used: {said(error)}") from error
    return GivenVault(vault, Source(given.source))


def source_of(imported: GivenVault | None) -> Source:
    return Source.RECORD if imported is None else imported.source


@dataclass(frozen=True)
class Pinning:
    """Pins vaults. Not thread-safe: for one event loop."""

    journal: Journal
    devices: Devices
    feed: Feed

    async def pin(
        self,
        vault_id: str,
        code: str,
        given: ImportedQuorum | None,
        *,
        without_device_address: bool,
        airgapped: Compared | None = None,
    ) -> tuple[SeenVault, tuple[News, ...]]:
        """Check, ask the device, check again and record. ``airgapped``: the person compared the first address
        on a device without a cable, and found it so.

        Raises:
            As ``account.vaults.pinnable``; WrongCode, AddressDiffers, leaves of DeviceError. Nothing is
            pinned then.
        """
        imported = imported_quorum(given, self.journal.network)
        wanted = pinnable(self.journal, vault_id, imported)
        require_code(wanted.vault, code)
        if airgapped is not None:
            at_device = self._compared(wanted, airgapped)
        elif without_device_address:
            device = await self.devices.ready(wanted.own_key.origin.fingerprint)
            at_device = AtDevice(enrolled=device is not None)
            if device is not None:
                await self._enrol(device, wanted)
        else:
            at_device = await self._shown(wanted)
        pin(self.journal, wanted, source_of(imported), at_device, by_eye=airgapped is not None)
        return seen_vault(self.journal, vault_id), (JudgeAgain(),)

    def _compared(self, wanted: Pin, found: Compared) -> AtDevice:
        """What the person says a screen shows that this machine cannot read. Raises AddressDiffers."""
        if found == "another":
            address = as_compared(
                written_on(wanted.vault, FIRST), wanted.vault.address(FIRST.chain, FIRST.index)
            )
            sentence = (
                f"ALARM: you say that the device shows another address as {FIRST.words}; "
                f"this machine derives {address}"
            )
            note = _differs(wanted.vault, FIRST, "without a cable", wanted.vault_id, sentence)
            self.journal.note(note)
            self.feed.add(wanted.vault_id, "alarm", sentence)
            raise AddressDiffers(sentence)
        return AtDevice(enrolled=True, address_shown=True)

    async def _shown(self, wanted: Pin) -> AtDevice:
        try:
            device = await self.devices.of(wanted.own_key.origin.fingerprint)
        except DeviceError as error:
            error.hint = f"{error.hint} {_DO_WITHOUT}"
            raise
        await self._enrol(device, wanted)
        await shown_on(self.devices, self.journal, self.feed, device, wanted.vault, FIRST, wanted.vault_id)
        return AtDevice(enrolled=True, address_shown=True)

    async def _enrol(self, device: Device, wanted: Pin) -> None:
        await self.devices.enrol(device.id, wanted.vault, wanted.name, teller(self.feed, wanted.vault_id))
