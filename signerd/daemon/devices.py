"""The bridge as the daemon uses it: devices by fingerprint, and outcomes as the core's events."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from custody.common.text import foreign, plain, said
from firmware_bridge import (
    AddressMismatch,
    Ask,
    Bridge,
    BridgeError,
    Busy,
    Device,
    DeviceFault,
    DeviceState,
    Family,
    Locked,
    NeedsPassphrase,
    NoPermission,
    NotEnrolled,
    OnProgress,
    Uninitialised,
    Unsupported,
    WrongApp,
    data_screen,
)
from firmware_bridge.enrolment import fitting_name
from firmware_bridge.makers import MAKERS, why_no_proof
from multisig import RECEIVE, DerivationPath, Fingerprint, MultisigError, OriginKey, Policy, Vault
from signerd.core import events
from signerd.core.addresses import on_screen
from signerd.core.signing import SigningPolicy
from signerd.core.text import as_compared
from signerd.core.tokens import ModelScreen
from signerd.core.values import psbt_of
from signerd.errors import AddressDiffers, AddressNotShown, DeviceFailed, DeviceUnready, NoSuchDevice
from signerd.feed import Feed, unforeseen
from signerd.runtime import FaultPoint, no_fault

_log = logging.getLogger(__name__)
UNFORESEEN = "Asking the device failed unexpectedly: signerd's own messages say how."

# Raised before the device showed anything: the approval stays, and the device is asked when it is ready.
NOT_ASKED = (Locked, Uninitialised, WrongApp, NeedsPassphrase, Busy, NoPermission)


KEEP_AWAY = (
    "Send nothing to either address. Compare the vault's verification code with the other signers; "
    "try another device of yours or another machine."
)
PIN_AGAIN = "Pin the vault once more with `signerd pin`, which makes the device know it."


@dataclass(frozen=True)
class AddressToShow:
    """An address of a policy, with words for the person; the hints are None to use those of the error."""

    chain: int
    index: int
    words: str
    hint_where_it_differs: str | None = KEEP_AWAY
    hint_where_not_shown: str | None = "Compare the address with another signer's machine or device instead."


# Shown before a vault is pinned; the errors' own hints fit.
FIRST = AddressToShow(RECEIVE, 0, "the vault's first address", None, None)


def name_of(device: Device) -> str:
    """What its person calls it, else its model: in every sentence and on every page."""
    return foreign(device.label or device.model)


def to_confirm(device: Device, text: str) -> str:
    """What the person is to find on the device before it signs a message."""
    style = MAKERS[device.family].style
    shown = ", then ".join(() if style is None else style.message)
    words = f"shows {shown}" if shown else "asks in screens that are not known here"
    return f"Look at your device, which {words}. Say no there if the text is not this one: `{text}`"


# The least time in which a person compares an address.
COMPARING_SECONDS = 2.0


def teller(feed: Feed, subject: str) -> OnProgress:
    return lambda progress: feed.add(subject, "progress", progress.text)


@dataclass(eq=False)
class OnScreen:
    """An address that a person compares, in ``words`` and as the device writes it. ``another``: they said
    here that the device shows another one.
    """

    words: str
    address: str
    another: bool = False


@dataclass(frozen=True)
class Devices:
    """Raises leaves of DeviceError, and AddressDiffers; ``sign`` answers with an event instead."""

    bridge: Bridge
    fault: FaultPoint = no_fault
    clock: Callable[[], float] = time.monotonic
    on_screen: dict[str, list[OnScreen]] = field(default_factory=dict)
    """By device: the address that it shows, and those that it shows next."""
    over: dict[str, float] = field(default_factory=dict)
    """By device: when it last stopped showing one."""

    async def all(self) -> tuple[Device, ...]:
        """The connected devices. Raises DeviceFailed where the library fails."""
        try:
            listed = await self.bridge.list()
        except Exception as error:
            _log.exception("the devices could not be listed")
            raise DeviceFailed(unforeseen("Listing the devices")) from error
        return tuple(device for device in listed if device.state is not DeviceState.ABSENT)

    async def ready(self, fingerprint: Fingerprint) -> Device | None:
        """The device that holds this master key and can be asked now."""
        for device in await self.all():
            if device.fingerprint == fingerprint and device.state is DeviceState.READY:
                return device
        return None

    async def of(self, fingerprint: Fingerprint) -> Device:
        """The ready device with this master key, or why there is none."""
        device = await self.ready(fingerprint)
        if device is None:
            # One that shows an old question does not say which it is.
            _require_idle(one for one in await self.all() if one.fingerprint in {fingerprint, None})
            raise NoSuchDevice(f"the device {fingerprint} is not connected, or not ready")
        return device

    async def named(self, device_id: str) -> Device:
        """The connected device with this id, in any state. Raises NoSuchDevice."""
        for device in await self.all():
            if device.id == device_id:
                return device
        raise NoSuchDevice(f"there is no device '{device_id}'")

    async def chosen(self, device_id: str | None) -> Device:
        """The named device, or the only one that is ready."""
        if device_id is not None:
            device = await self.named(device_id)
            if device.state is not DeviceState.READY:
                why = f": {device.detail}" if device.detail else ""
                raise DeviceUnready(f"the device is {device.state}{why}")
            return device
        listed = await self.all()
        ready = [device for device in listed if device.state is DeviceState.READY]
        if len(ready) == 1:
            return ready[0]
        if not ready:
            _require_idle(listed)
            raise NoSuchDevice("no device is ready")
        raise NoSuchDevice("several devices are ready", hint="Name one with --device.")

    async def sign(
        self, device_id: str, psbt: bytes, signing: SigningPolicy, on_progress: OnProgress
    ) -> events.ProposalEvent:
        """Ask the device for the signatures of one proposal."""
        self.fault("device:before:sign")
        try:
            signer = signing.key.origin.fingerprint
            signed = await self.bridge.sign(
                device_id, psbt_of(psbt), signing.policy, signer=signer, on_progress=on_progress
            )
        except BridgeError as error:
            reached = not isinstance(error, NOT_ASKED)
            return events.NoSignature(error.code, f"{plain(error.words)} {error.hint}", asked=reached)
        except MultisigError as error:
            return events.NoSignature(error.code, said(error), asked=True)
        except Exception:  # noqa: BLE001 - the library raises only BridgeError: anything else is a bug in it
            # A bug in the library fails this call only.
            _log.exception("asking the device %s failed in an unforeseen way", device_id)
            return events.NoSignature(DeviceFault.code, UNFORESEEN, asked=True)
        self.fault("device:after:sign")
        return events.DeviceReturned(signed.to_bytes())

    async def keys(self, device_id: str, paths: Sequence[DerivationPath]) -> tuple[OriginKey, ...]:
        with _failing():
            return await self.bridge.xpubs(device_id, paths)

    async def sign_text(
        self, device_id: str, text: str, path: DerivationPath, on_progress: OnProgress
    ) -> bytes:
        self.fault("device:before:sign_text")
        with _failing():
            signature = await self.bridge.sign_message(device_id, text, path, on_progress=on_progress)
        self.fault("device:after:sign_text")
        return signature

    async def enrol(self, device_id: str, vault: Vault, name: str, on_progress: OnProgress) -> None:
        with _failing():
            device = await self.chosen(device_id)
            label = fitting_name(device.family, name, vault)
            self.fault("device:before:enrol")
            await self.bridge.enrol(device_id, vault, label, on_progress=on_progress)
            self.fault("device:after:enrol")

    async def show_address(
        self, device: Device, policy: Policy, place: AddressToShow, on_progress: OnProgress
    ) -> None:
        """Have the device show the address, which the bridge compares with ours.

        Raises:
            AddressDiffers: it shows another one, or the person says so. AddressNotShown: the device cannot.
            DeviceFailed.
        """
        shown = OnScreen(place.words, written_on(policy, place, device.family))
        requests = self.on_screen.setdefault(device.id, [])
        requests.append(shown)
        try:
            await self._show_address(device.id, policy, place, on_progress)
        except DeviceFailed:
            if not shown.another:
                raise
        finally:
            requests.remove(shown)
            self.over[device.id] = self.clock()
            if not requests:
                del self.on_screen[device.id]
        if shown.another:
            raise differs_by_eye(policy, place)

    async def another_address(self, device_id: str) -> None:
        """The person says that this device's screen shows another address: the question is cancelled as a
        mismatch.

        A Trezor has no button to refuse an address: the call that shows it raises AddressDiffers. Raises
        NoSuchDevice, and AddressNotShown where it shows none.
        """
        await self.named(device_id)
        requests = self.on_screen.get(device_id)
        if requests is None:
            raise AddressNotShown(
                "this device shows no address that is to be compared",
                hint="Have it show the address again, and say so while it does.",
            )
        if self.clock() - self.over.get(device_id, -math.inf) < COMPARING_SECONDS:
            # Meant for the previous address.
            raise AddressNotShown(
                "the device has just gone on to another address",
                hint="Compare what it shows now: if that differs, say so again.",
            )
        requests[0].another = True
        await self.bridge.cancel(device_id)

    async def _show_address(
        self, device_id: str, policy: Policy, place: AddressToShow, on_progress: OnProgress
    ) -> None:
        self.fault("device:before:show_address")
        try:
            await self.bridge.show_address(
                device_id, policy, place.chain, place.index, on_progress=on_progress
            )
            self.fault("device:after:show_address")
        except AddressMismatch as error:
            ours, theirs = _ours(policy, place), foreign(error.detail or "another one")
            raise AddressDiffers(
                f"ALARM: the device shows {theirs} as {place.words}; this machine derives {ours}",
                hint=place.hint_where_it_differs,
            ) from error
        except Unsupported as error:
            raise AddressNotShown(
                f"the device cannot show {place.words}: {plain(error.words)}", hint=place.hint_where_not_shown
            ) from error
        except BridgeError as error:
            hint = PIN_AGAIN if isinstance(error, NotEnrolled) else error.hint
            raise DeviceFailed(plain(error.words), hint=hint) from error

    # --- by hand --------------------------------------------------------------------------------------------

    async def unlock(self, device_id: str, ask: Ask, on_progress: OnProgress) -> Device:
        """The device, unlocked with what ``ask`` answers. Raises DeviceFailed."""
        try:
            with _failing():
                return await self.bridge.unlock(device_id, ask, on_progress=on_progress)
        except DeviceFailed:
            raise
        except Exception as error:  # noqa: BLE001 - the library raises only BridgeError: anything else is a bug in it
            # Its text and traceback may contain what the person typed (L10): only its type is logged.
            _log.error("unlocking the device %s failed with %s", device_id, type(error).__name__)
            raise DeviceFailed(UNFORESEEN) from None

    async def identify(self, device_id: str, on_progress: OnProgress) -> None:
        """Have the device identify itself. Raises DeviceFailed."""
        with _failing():
            await self.bridge.identify(device_id, on_progress=on_progress)

    async def cancel(self, device_id: str) -> None:
        """Cancel the operation on the device, if any. Raises NoSuchDevice."""
        await self.named(device_id)
        await self.bridge.cancel(device_id)


def _require_idle(devices: Iterable[Device]) -> None:
    """Raises DeviceUnready where one of them shows a question."""
    for device in devices:
        if device.state is DeviceState.BUSY:
            hint = "Answer what is on its screen first."
            raise DeviceUnready(f"{name_of(device)} is asked something now", hint=hint)


def differs_by_eye(policy: Policy, place: AddressToShow) -> AddressDiffers:
    return AddressDiffers(
        f"ALARM: you say that the device shows another address as {place.words}; "
        f"this machine derives {_ours(policy, place)}",
        hint=place.hint_where_it_differs,
    )


def written_on(policy: Policy, place: AddressToShow, family: Family | None = None) -> str:
    """The address as a device of this family writes it; without a family, as most devices do."""
    if family is not None and MAKERS[family].knows_regtest:
        return policy.address(place.chain, place.index)
    address = on_screen(policy.script_pubkey(place.chain, place.index), policy.network)
    assert address is not None, "P2WSH and P2WPKH have an address on every network"
    return address


def _ours(policy: Policy, place: AddressToShow) -> str:
    return as_compared(written_on(policy, place), policy.address(place.chain, place.index))


def screen_of(device: Device) -> ModelScreen:
    """How much of a token's data the device shows, and which messages it signs, by model and firmware."""
    name = plain(" ".join(filter(None, (device.model, device.firmware))))
    known = data_screen(device.family, device.model, device.firmware)
    whole, first = (None, 0) if known is None else (known.whole, known.first)
    no_proof, no_funds = (
        why_no_proof(device.family, device.model, device.firmware, coins=coins) for coins in (0, 1)
    )
    return ModelScreen(name, whole, first, no_proof, no_funds)


@contextmanager
def _failing() -> Iterator[None]:
    """The library's errors as DeviceFailed."""
    try:
        yield
    except BridgeError as error:
        raise DeviceFailed(plain(error.words), hint=error.hint) from error
