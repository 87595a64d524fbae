"""Addresses, accounts and pinning of vaults, for the loopback API and the CLI.

Addresses are derived on this machine and compared with what a device shows; before a pin is recorded, the
device registers the vault and shows its first address (S13).
"""

import asyncio
import contextlib

from custody.common.text import foreign, plain, said
from firmware_bridge import Device
from firmware_bridge.makers import MAKERS
from multisig import MAX_INDEX, MultisigError, Network, Policy, Profile, Vault, wallet_policy
from multisig.vault_files import caravan_file
from signerd.account.vaults import pin as record_pin
from signerd.account.vaults import pinnable, require_code, seen_vault, seen_vaults
from signerd.account.vaults import unpin as forget_pin
from signerd.callers import LoopbackCaller
from signerd.core.addresses import on_screen
from signerd.core.audit import Note
from signerd.core.events import JudgeAgain
from signerd.core.states import RECORD
from signerd.core.text import as_compared, place_words
from signerd.core.values import Pin
from signerd.daemon.devices import FIRST, AddressToShow, differs_by_eye, teller, written_on
from signerd.daemon.service import Daemon
from signerd.daemon.unlocking import asked_by
from signerd.daemon.views import account_keys, pin_preview, vault_view
from signerd.errors import (
    AddressDiffers,
    AddressNotShown,
    NoRegisteredKey,
    NoSuchDevice,
    NotPinned,
    PlatformError,
    SignedOut,
    VaultDiffers,
)
from signerd.feed import in_turn
from signerd.journal.keys_and_vaults import AtDevice
from signerd.shapes import (
    AccountKeys,
    AddressPage,
    AddressShown,
    AddressView,
    Compared,
    DeviceRegistration,
    ImportedQuorum,
    PinPreview,
    VaultPolicy,
    VaultView,
)
from signerd.shapes.limits import RECEIVE, USUAL_COUNT

# An app that lists vaults repeatedly must not exhaust the platform's rate limit (L6).
LATELY_SECONDS = 15.0
SAY_SO_HERE = "No button on it means no: if it is another one, say so on this computer."


async def _shown_on(
    daemon: Daemon, device: Device, policy: Policy, place: AddressToShow, subject: str
) -> str:
    """Have the device show the address, and compare; the address as its screen writes it. ``subject`` of the
    feed's lines is the vault's id, or the device's id for the profile.

    Raises:
        AddressDiffers, after it is journaled and in the feed; AddressNotShown; DeviceFailed.
    """
    screen = written_on(policy, place, device.family)
    address = as_compared(screen, policy.address(place.chain, place.index))
    otherwise = "" if MAKERS[device.family].refuses_address else f" {SAY_SO_HERE}"
    feed = daemon.feed
    feed.add(subject, "progress", f"Your device shows {place.words}. It must be {address}.{otherwise}")
    try:
        await daemon.bridge_devices.show_address(device, policy, place, teller(feed, subject))
    except AddressDiffers as error:
        daemon.journal.note(_differs(policy, place, device.id, subject, str(error)))
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


PROFILE = "your profile"


async def accounts(daemon: Daemon) -> AccountKeys:
    """The registered keys of this signer. No device is needed."""
    return account_keys(daemon.journal.network, daemon.journal.own_keys())


async def vault_addresses(
    daemon: Daemon, vault_id: str, chain: int = RECEIVE, start: int = 0, count: int = USUAL_COUNT
) -> AddressPage:
    """Derived on this machine from the pinned vault; the platform is not asked. Raises UnknownVault,
    NotPinned.
    """
    pin = pinned(daemon, vault_id, "its addresses are not known to be right")
    return AddressPage(
        network=str(daemon.journal.network),
        vault_id=vault_id,
        name=pin.name,
        addresses=await _derived(pin.vault, chain, start, count),
        fault=seen_vault(daemon.journal, vault_id).fault,
    )


async def vault_policy(daemon: Daemon, vault_id: str) -> VaultPolicy:
    """Raises UnknownVault, NotPinned."""
    pin = pinned(daemon, vault_id, "its policy is not known to be right")
    policy, known = wallet_policy(pin.vault), daemon.bridge_devices.bridge.registrations_of(pin.vault)
    registrations = tuple(
        DeviceRegistration(fingerprint=str(one.fingerprint), name=one.name, hmac=one.hmac.hex())
        for one in known
    )
    name = registrations[0].name if registrations else pin.name
    of_name = {one.fingerprint: one.hmac for one in registrations if one.name == name}
    return VaultPolicy(
        name=pin.name,
        template=policy.template,
        keys=policy.keys,
        registrations=registrations,
        caravan=caravan_file(pin.vault, name, of_name),
    )


async def profile_addresses(
    daemon: Daemon, chain: int = RECEIVE, start: int = 0, count: int = USUAL_COUNT
) -> AddressPage:
    """As ``vault_addresses``, from the registered key. Raises NoRegisteredKey."""
    return AddressPage(
        network=str(daemon.journal.network),
        vault_id=None,
        name=PROFILE,
        addresses=await _derived(_profile(daemon), chain, start, count),
    )


async def show_vault_address(
    daemon: Daemon, vault_id: str, chain: int, index: int, caller: LoopbackCaller
) -> AddressShown:
    """Have the device show it, compared with ours.

    Raises:
        UnknownVault, NotPinned, AddressDiffers, TooManyPrompts; leaves of DeviceError.
    """
    pin = pinned(daemon, vault_id, "its addresses are not known to be right")
    device = await daemon.bridge_devices.of(pin.own_key.origin.fingerprint)
    place = AddressToShow(chain, index, f"{place_words(chain, index)} of the vault '{foreign(pin.name)}'")
    return await _show(daemon, device, pin.vault, place, vault_id, caller)


async def show_profile_address(
    daemon: Daemon, chain: int, index: int, caller: LoopbackCaller
) -> AddressShown:
    """As ``show_vault_address``; NoRegisteredKey."""
    profile = _profile(daemon)
    device = await daemon.bridge_devices.of(profile.key.origin.fingerprint)
    place = AddressToShow(chain, index, f"{place_words(chain, index)} of {PROFILE}")
    return await _show(daemon, device, profile, place, device.id, caller)


async def _show(
    daemon: Daemon, device: Device, policy: Policy, place: AddressToShow, subject: str, caller: LoopbackCaller
) -> AddressShown:
    with daemon.prompts.turn(caller):
        if caller.app_id is not None:
            daemon.feed.add(subject, "progress", f"An address is shown{asked_by(caller)}.")
        screen = await _shown_on(daemon, device, policy, place, subject)
    return AddressShown(
        network=str(daemon.journal.network),
        device_id=device.id,
        chain=place.chain,
        index=place.index,
        address=policy.address(place.chain, place.index),
        on_screen=screen,
    )


def pinned(daemon: Daemon, vault_id: str, why: str) -> Pin:
    """Raises UnknownVault, and NotPinned also where the platform now shows another descriptor than the
    pinned one. ``why``: what is not known of one that is not pinned.
    """
    pin = daemon.journal.pin(vault_id)
    if pin is None:
        seen_vault(daemon.journal, vault_id)
        raise NotPinned(f"the vault is not pinned, so {why}")
    return pin


def _profile(daemon: Daemon) -> Profile:
    """Raises NoRegisteredKey."""
    for own in daemon.journal.own_keys():
        if own.purpose == "profile":
            return Profile(daemon.journal.network, own.key)
    raise NoRegisteredKey("no profile key of a device of yours is registered")


async def _derived(policy: Policy, chain: int, start: int, count: int) -> tuple[AddressView, ...]:
    """Fewer than ``count`` at the last index of the chain."""
    addresses = []
    for index in range(start, min(start + count, MAX_INDEX + 1)):
        screen = on_screen(policy.script_pubkey(chain, index), policy.network)
        address = policy.address(chain, index)
        addresses.append(AddressView(chain=chain, index=index, address=address, on_screen=screen or address))
        # Other requests are served between two of them.
        await asyncio.sleep(0)
    return tuple(addresses)


_DO_WITHOUT = "To pin without your device showing the first address: --without-device-address."


def _given(imported: ImportedQuorum | None, network: Network) -> tuple[Vault | None, str]:
    """The vault that the person gives, if any, and where it is from. Raises VaultDiffers where its
    descriptor is not a vault of this network.
    """
    if imported is None:
        return None, RECORD
    try:
        vault = Vault.from_descriptor(imported.descriptor, network)
    except MultisigError as error:
        raise VaultDiffers(f"the vault from your {imported.source} cannot be used: {said(error)}") from error
    return vault, imported.source


async def vaults(daemon: Daemon, *, sparing: bool = False) -> tuple[VaultView, ...]:
    """Every vault that the platform has shown, refreshed if it is reachable.

    ``sparing``: a recent refresh is enough.
    """
    follower, network = daemon.follower, daemon.journal.network
    lately = daemon.looked is not None and daemon.outside.clock() - daemon.looked < LATELY_SECONDS
    if follower.reachable and not (sparing and lately):
        daemon.looked = daemon.outside.clock()
        with contextlib.suppress(PlatformError, SignedOut):
            for workspace in follower.workspaces:
                await follower.read_vaults(workspace)
    return tuple(await in_turn(lambda seen: vault_view(seen, network), seen_vaults(daemon.journal)))


async def preview_pin(daemon: Daemon, vault_id: str, imported: ImportedQuorum | None = None) -> PinPreview:
    """What the person compares before pinning. Raises as ``account.vaults.pinnable``."""
    given, source = _given(imported, daemon.journal.network)
    pinnable(daemon.journal, vault_id, given, source)
    return pin_preview(seen_vault(daemon.journal, vault_id), source, daemon.journal.network)


async def pin(
    daemon: Daemon,
    vault_id: str,
    code: str,
    imported: ImportedQuorum | None = None,
    *,
    without_device_address: bool = False,
    airgapped: Compared | None = None,
) -> VaultView:
    """Pin a vault whose code the person compared, once the device knows it and has shown its first address:
    check, ask the device, check again and record. ``airgapped``: what the person saw on a device without a
    cable. The person is then asked about proposals that waited for the pin.

    Raises:
        As ``account.vaults.pinnable``; WrongCode, AddressDiffers, leaves of DeviceError. Nothing is pinned
        then.
    """
    given, source = _given(imported, daemon.journal.network)
    wanted = pinnable(daemon.journal, vault_id, given, source)
    require_code(wanted.vault, code)
    if airgapped is not None:
        at_device = _compared(daemon, wanted, airgapped)
    elif without_device_address:
        device = await daemon.bridge_devices.ready(wanted.own_key.origin.fingerprint)
        at_device = AtDevice(enrolled=device is not None)
        if device is not None:
            await _enrol(daemon, device, wanted)
    else:
        at_device = await _shown(daemon, wanted)
    record_pin(daemon.journal, wanted, source, at_device, by_eye=airgapped is not None)
    seen = seen_vault(daemon.journal, vault_id)
    try:
        if daemon.account.signed_in.is_set() and daemon.follower.reachable:
            for workspace in daemon.follower.workspaces:
                if workspace.id == seen.workspace_id:
                    with contextlib.suppress(PlatformError, SignedOut):
                        await daemon.follower.others.read(workspace)
    finally:
        daemon.runner.announce((JudgeAgain(),))
    return vault_view(seen, daemon.journal.network)


def _compared(daemon: Daemon, wanted: Pin, answer: Compared) -> AtDevice:
    """What the person says a screen shows that this machine cannot read. Raises AddressDiffers."""
    if answer == "another":
        error = differs_by_eye(wanted.vault, FIRST)
        daemon.journal.note(_differs(wanted.vault, FIRST, "without a cable", wanted.vault_id, str(error)))
        daemon.feed.add(wanted.vault_id, "alarm", str(error))
        raise error
    return AtDevice(enrolled=True, address_shown=True)


async def _shown(daemon: Daemon, wanted: Pin) -> AtDevice:
    try:
        device = await daemon.bridge_devices.of(wanted.own_key.origin.fingerprint)
    except NoSuchDevice as error:
        error.hint = f"{error.hint} {_DO_WITHOUT}"
        raise
    await _enrol(daemon, device, wanted)
    await _shown_on(daemon, device, wanted.vault, FIRST, wanted.vault_id)
    return AtDevice(enrolled=True, address_shown=True)


async def _enrol(daemon: Daemon, device: Device, wanted: Pin) -> None:
    progress = teller(daemon.feed, wanted.vault_id)
    await daemon.bridge_devices.enrol(device.id, wanted.vault, wanted.name, progress)


async def unpin(daemon: Daemon, vault_id: str, code: str) -> VaultView:
    """Remove a pin. Raises as ``account.vaults.unpin``."""
    effects = forget_pin(daemon.journal, vault_id, code)
    daemon.feed.add(vault_id, "attention", "The vault is not pinned any more: nothing of it is signed.")
    daemon.runner.announce(effects)
    return vault_view(seen_vault(daemon.journal, vault_id), daemon.journal.network)
