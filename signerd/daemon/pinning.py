"""Pinning with the device: it is made to know the vault, and shows the first address, before anything is recorded (S13)."""

from collections.abc import Callable
from dataclasses import dataclass

from firmware_bridge import Device, Progress
from multisig import MultisigError, Network, Vault
from signerd.account.vaults import Quorum, SeenVault, Source, pin, pinnable, require_code, seen_vault, unpin
from signerd.core.events import Effect
from signerd.core.text import plain, said
from signerd.core.values import Pin
from signerd.daemon.addresses import Showing
from signerd.daemon.devices import FIRST, Devices
from signerd.errors import DeviceError, VaultDiffers
from signerd.feed import Feed
from signerd.journal import Journal
from signerd.journal.vaults import AtDevice
from signerd.shapes import BroughtQuorum

_DO_WITHOUT = "To pin without your device showing the first address: --without-device-address."


def imported_quorum(given: BroughtQuorum | None, network: Network) -> Quorum | None:
    """Raises VaultDiffers where what the person brings is no vault of this network."""
    if given is None:
        return None
    try:
        vault = Vault.from_descriptor(given.descriptor, network)
    except MultisigError as error:
        raise VaultDiffers(f"the vault from your {given.source} cannot be used: {said(error)}") from error
    return Quorum(vault, Source(given.source))


@dataclass(frozen=True)
class Pinning:
    """One loop uses it."""

    journal: Journal
    devices: Devices
    feed: Feed

    def preview(self, vault_id: str, given: BroughtQuorum | None) -> tuple[SeenVault, Source]:
        """What pinning would pin. Raises as ``account.vaults.pinnable``."""
        brought = imported_quorum(given, self.journal.network)
        pinnable(self.journal, vault_id, brought)
        return seen_vault(self.journal, vault_id), _source(brought)

    async def pin(
        self, vault_id: str, code: str, given: BroughtQuorum | None, *, without_device_address: bool
    ) -> tuple[SeenVault, tuple[Effect, ...]]:
        """Check, ask the device, check again and record.

        Raises:
            As ``account.vaults.pinnable``; WrongCode, AddressDiffers; leaves of DeviceError: nothing was pinned.
        """
        brought = imported_quorum(given, self.journal.network)
        wanted = pinnable(self.journal, vault_id, brought)
        require_code(wanted.vault, code)
        if without_device_address:
            at_device = await self._enrolled_if_there(wanted)
        else:
            at_device = await self._shown(wanted)
        pin(self.journal, wanted, _source(brought), at_device)
        return seen_vault(self.journal, vault_id), self.journal.reconsider()

    def unpin(self, vault_id: str, code: str) -> tuple[SeenVault, tuple[Effect, ...]]:
        """Raises as ``account.vaults.unpin``."""
        effects = unpin(self.journal, vault_id, code)
        return seen_vault(self.journal, vault_id), effects

    async def _shown(self, wanted: Pin) -> AtDevice:
        try:
            device = await self.devices.of(wanted.own_key.origin.fingerprint)
        except DeviceError as error:
            error.hint = f"{error.hint} {_DO_WITHOUT}"
            raise
        await self._enrol(device, wanted)
        await Showing(self.journal, self.devices, self.feed).show(
            device, wanted.vault, FIRST, wanted.vault_id
        )
        return AtDevice(enrolled=True, address_shown=True)

    async def _enrolled_if_there(self, wanted: Pin) -> AtDevice:
        device = await self.devices.ready(wanted.own_key.origin.fingerprint)
        if device is None:
            return AtDevice()
        await self._enrol(device, wanted)
        return AtDevice(enrolled=True)

    async def _enrol(self, device: Device, wanted: Pin) -> None:
        await self.devices.enrol(device.id, wanted.vault, wanted.name, self._teller(wanted.vault_id))

    def _teller(self, subject: str) -> Callable[[Progress], None]:
        return lambda progress: self.feed.add(subject, "progress", plain(progress.text))


def _source(brought: Quorum | None) -> Source:
    return Source.RECORD if brought is None else brought.source
