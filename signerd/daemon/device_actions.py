"""What a device is made to do that signs nothing: show itself, tell its standard keys, give up; and how often an app may ask for it."""

import contextlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from firmware_bridge import Device
from multisig import OriginKey, multisig_account_path, profile_account_path
from signerd.callers import Caller
from signerd.core.text import plain
from signerd.core.values import OwnKey
from signerd.daemon.devices import Devices
from signerd.daemon.views import account_keys
from signerd.errors import TooManyPrompts
from signerd.feed import Feed
from signerd.journal import Journal
from signerd.shapes import AccountKeys

# A person compares an address in ten seconds or more: who asks oftener does not want it compared.
MOST_A_MINUTE = 6
_WINDOW_SECONDS = 60.0


class Prompts:
    """One loop uses it. What it remembers is bounded by the number of paired apps."""

    def __init__(self, clock: Callable[[], float], most: int = MOST_A_MINUTE) -> None:
        self._clock = clock
        self._most = most
        self._open: set[str] = set()
        self._taken: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=self._most))

    @contextlib.contextmanager
    def turn(self, caller: Caller) -> Iterator[None]:
        """Around what asks a device for this caller. Raises TooManyPrompts: the device was not asked."""
        if caller.app_id is None:
            yield
            return
        self._admit(caller.app_id)
        self._open.add(caller.app_id)
        try:
            yield
        finally:
            self._open.discard(caller.app_id)

    def _admit(self, app_id: str) -> None:
        if app_id in self._open:
            raise TooManyPrompts("a device is asked for this app already")
        taken, now = self._taken[app_id], self._clock()
        if len(taken) == self._most and now - taken[0] < _WINDOW_SECONDS:
            raise TooManyPrompts(f"an app may ask devices {self._most} times a minute")
        taken.append(now)


@dataclass(frozen=True)
class Handling:
    """One loop uses it. An app's turns at the devices are bounded (L6): each method that asks one for a caller raises TooManyPrompts."""

    journal: Journal
    devices: Devices
    feed: Feed
    prompts: Prompts

    async def identify(self, device_id: str, caller: Caller) -> None:
        """Returns when the person has seen it. Raises leaves of DeviceError."""
        device = await self.devices.chosen(device_id)
        with self.prompts.turn(caller):
            self._tell(device, f"shows itself{asked_by(caller)}. Press its button to end that.")
            await self.devices.identify(
                device_id, lambda note: self.feed.add(device_id, "progress", plain(note.text))
            )

    async def cancel(self, device_id: str) -> None:
        """Give up what runs on the device. Raises NoSuchDevice."""
        await self.devices.named(device_id)
        await self.devices.cancel(device_id)

    async def another_address(self, device_id: str) -> None:
        """The address on its screen is another one than here: the call that has it shown raises AddressDiffers.

        Raises NoSuchDevice, AddressNotShown.
        """
        await self.devices.named(device_id)
        await self.devices.another_address(device_id)

    async def account_keys(self, device_id: str, account: int, caller: Caller) -> AccountKeys:
        """The device's keys of this standard account. Two paths and no others: no caller names one (L5).

        Raises leaves of DeviceError.
        """
        device, network = await self.devices.chosen(device_id), self.journal.network
        paths = (multisig_account_path(network, account), profile_account_path(network, account))
        with self.prompts.turn(caller):
            self._tell(device, f"tells its keys of account {account}{asked_by(caller)}.")
            vault_key, profile_key = await self.devices.keys(device_id, paths)
        return account_keys(network, _owned(account, vault_key, profile_key))

    def _tell(self, device: Device, sentence: str) -> None:
        self.feed.add(device.id, "progress", f"{plain(device.label or device.model)} {sentence}")


def asked_by(caller: Caller) -> str:
    """Behind a sentence: the person knows what they asked for themselves, and must know what an app does."""
    return "" if caller.app_id is None else f", asked by {caller.shown}"


def _owned(account: int, vault_key: OriginKey, profile_key: OriginKey) -> tuple[OwnKey, ...]:
    return OwnKey(vault_key, "vault", account), OwnKey(profile_key, "profile", account)
