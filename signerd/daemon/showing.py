"""An address on a device's screen beside ours: where the two differ, that is written down and told as an alarm (S13)."""

from dataclasses import dataclass

from firmware_bridge import Device
from firmware_bridge.families import maker_of
from multisig import Network, Policy, Vault, encode_address
from signerd.core.audit import Note
from signerd.core.text import plain
from signerd.daemon.devices import Devices, Place
from signerd.errors import AddressDiffers, AddressNotShown
from signerd.feed import Feed
from signerd.journal import Journal

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
