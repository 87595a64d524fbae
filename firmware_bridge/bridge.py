"""The facade: devices, and the operations on them."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from typing import Final, Self

from firmware_bridge import calls, conversation, presence, sanitised_psbt
from firmware_bridge.conversation import Ask, Conversation, OnProgress
from firmware_bridge.enrolment import Registration, Registrations, RegistrationsInMemory
from firmware_bridge.errors import BadDeviceSignature
from firmware_bridge.lane import Lane
from firmware_bridge.makers import MAKERS
from firmware_bridge.model import Deadlines, Device, DeviceEvent, Endpoint, Listing
from firmware_bridge.operations import ShowAddress, SignMessage, Unlocked
from firmware_bridge.presence.holders import Turn, no_turns
from firmware_bridge.record import Clock
from firmware_bridge.roster import Roster
from firmware_bridge.worker import Spawner, spawn, unconfined
from multisig import (
    DerivationPath,
    Fingerprint,
    Network,
    OriginKey,
    Policy,
    Psbt,
    Vault,
    WrongNetwork,
)

LOOK_SECONDS: Final = 2.0


class Bridge:
    """The devices of one program. Use it as an async context manager; leaving it ends every worker process.

    `endpoints` are virtual devices and emulators; `usb` adds USB devices. `registrations` stores what a
    Ledger returns when it registers a vault; by default it is kept until the program ends. No device is
    opened before `refresh`, `watch` or an operation, and nothing waits without a deadline. `turn` coordinates
    with other programs that use the same devices (`turns_in`). `sandbox`: each worker gives up what its
    device does not need, before it opens it (docs/understand/sandboxes.md); a `spawner` decides for itself.

    Every operation raises leaves of `BridgeError`. After any of them the next operation works.
    """

    def __init__(
        self,
        *,
        network: Network,
        endpoints: Sequence[Endpoint] = (),
        usb: bool = True,
        registrations: Registrations | None = None,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
        clock: Clock = time.monotonic,
        listings: Sequence[Listing] | None = None,
        sandbox: bool = True,
        spawner: Spawner | None = None,
        turn: Turn = no_turns,
    ) -> None:
        self._deadlines = deadlines
        start = spawner or (spawn if sandbox else unconfined)
        if listings is None:
            listing = presence.endpoint_listing(endpoints)
            listings = [listing, presence.usb_listing()] if usb else [listing]
        self._roster = Roster(
            listings=listings,
            make_lane=lambda endpoint: Lane(endpoint, network, deadlines=deadlines, spawner=start),
            deadlines=deadlines,
            clock=clock,
            turn=turn,
        )
        self._network = network
        self._registrations = RegistrationsInMemory() if registrations is None else registrations

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._roster.close()

    async def list(self) -> tuple[Device, ...]:
        """The connected devices, as last noticed. No device is touched."""
        return self._roster.devices()

    async def refresh(self) -> tuple[Device, ...]:
        """Notice which devices came and left, probe the new and idle ones, and wait for their answers."""
        await self._roster.look()
        probes = self._roster.start_probes()
        if probes:
            # Other tasks may wait for the same probes: a cancel here must not end them.
            await asyncio.wait(probes)
        return self._roster.devices()

    async def watch(self, seconds: float = LOOK_SECONDS) -> None:
        """Keep the list up to date until cancelled or the bridge closes; run it as a task. A slow device
        delays no other. `seconds`: between two looks, none of which touches a device.
        """
        while not self._roster.closed:
            await self._roster.look()
            self._roster.start_probes()
            await asyncio.sleep(seconds)

    def events(self) -> AsyncIterator[DeviceEvent]:
        """Every change of state from this call on, until the bridge closes."""
        return self._roster.hub.stream()

    async def unlock(self, device_id: str, ask: Ask, *, on_progress: OnProgress | None = None) -> Device:
        """Give the device its PIN and passphrase: `ask` is called with each `Question`.

        If `ask` returns None, or raises (which is logged), the person answers on the device where that is
        possible. The keys of a passphrase stay available until the device is unplugged or forgets them.

        :raises Locked: the PIN was wrong, or none was given.
        :raises NeedsPassphrase: none was given.
        :raises Unsupported: devices of this family are unlocked by their own buttons only.
        """
        async with self._talk(device_id, on_progress, ask) as talk:
            answer = await talk.call("unlock", deadline=self._deadlines.person)
            unlocked = calls.answer(Unlocked, answer)
            # Another device may have taken its place; the session is not for that one.
            talk.record.require_wanted()
            talk.record.lane.session = unlocked.session
            self._roster.identify(talk.record, Fingerprint.from_hex(unlocked.fingerprint))
        return talk.record.device

    async def identify(self, device_id: str, *, on_progress: OnProgress | None = None) -> None:
        """Make the device show something harmless, so that the person sees which one it is."""
        async with self._talk(device_id, on_progress) as talk:
            await talk.ask_person("identify")

    async def fingerprint(self, device_id: str) -> Fingerprint:
        """The master key's fingerprint, read again: a passphrase may have changed it."""
        async with self._talk(device_id) as talk:
            fingerprint = await talk.read_fingerprint()
            self._roster.identify(talk.record, fingerprint)
            return fingerprint

    async def xpub(self, device_id: str, path: DerivationPath) -> OriginKey:
        """The extended public key at one path; see `xpubs`."""
        (key,) = await self.xpubs(device_id, [path])
        return key

    async def xpubs(self, device_id: str, paths: Sequence[DerivationPath]) -> tuple[OriginKey, ...]:
        """The extended public keys at these paths, with their origins, in one call to the device.

        :raises WrongApp: the device is set to another kind of network.
        :raises Unsupported: this family does not give the key at such a path.
        """
        calls.require_paths(paths)
        async with self._talk(device_id) as talk:
            return await talk.read_xpubs(paths)

    async def sign_message(
        self, device_id: str, text: str, path: DerivationPath, *, on_progress: OnProgress | None = None
    ) -> bytes:
        """The signature of `text` with the key at `path`: 65 bytes (BIP-137), verified against that key.

        :raises Unsupported: this family does not accept the text or the path: a Coldcard takes 2 to 240
            printable ASCII characters.
        :raises BadDeviceSignature: it is by another key, or over another text.
        """
        calls.require_paths([path])
        async with self._talk(device_id, on_progress) as talk:
            (key,) = await talk.read_xpubs([path])
            answer = await talk.ask_person("sign_message", SignMessage(text, str(path)))
            signature = calls.signature(answer)
            if not calls.is_by(key.xpub.public_key, text, signature):
                raise BadDeviceSignature
            return signature

    async def enrol(
        self, device_id: str, vault: Vault, name: str, *, on_progress: OnProgress | None = None
    ) -> None:
        """Enrol the vault on the device under this name, if its family keeps vaults; the person confirms on
        it.

        A device that knows the vault already does not ask again, and keeps its name. A Ledger's registration
        is stored in the bridge's registrations. Of a device that keeps no vaults, only the fingerprint is
        read.

        :raises WrongNetwork: the vault is for another kind of network than the bridge.
        :raises WrongDevice: it is not a cosigner of the vault.
        :raises Unsupported: this family does not accept the name or the vault.
        """
        self._require_network(vault)
        async with self._talk(device_id, on_progress) as talk:
            family, code = talk.record.device.family, vault.verification_code
            calls.enrol(family, vault, name, None, again=False)
            signer = await talk.read_signer(vault)
            if not MAKERS[family].enrols:
                return
            again = (signer, code) in talk.record.unknown_vaults
            known = talk.registration(signer, vault)
            args = calls.enrol(family, vault, name, known, again=again)
            proof = calls.registration(await talk.ask_person("enrol", args))
            if proof is not None:
                talk.keep(Registration(signer, code, args.policy.name, proof))
            talk.record.unknown_vaults.discard((signer, code))

    def registrations_of(self, vault: Vault) -> tuple[Registration, ...]:
        """What Ledgers returned for it: any program may show it to the same device."""
        code, store = vault.verification_code, self._registrations
        return tuple(filter(None, (store.find(key.fingerprint, code) for key in vault.cosigners)))

    async def show_address(
        self,
        device_id: str,
        policy: Policy,
        chain: int,
        index: int,
        *,
        on_progress: OnProgress | None = None,
    ) -> str:
        """Make the device show the policy's address at this place, compare it with ours, and return ours.

        On regtest and signet devices show the address in testnet's form.

        :raises AddressMismatch: the device shows another one.
        :raises NotEnrolled: the device does not know the vault.
        :raises WrongDevice: it is not a signer of the policy.
        :raises MultisigError: no such place, or the policy is for another kind of network than the bridge.
        """
        self._require_network(policy)
        policy.script_pubkey(chain, index)
        async with self._talk(device_id, on_progress) as talk:
            signer = await talk.read_signer(policy)
            answer = await talk.call_about(
                policy,
                signer,
                "show_address",
                lambda known: ShowAddress(known, chain, index),
                deadline=self._deadlines.work,
                person=self._deadlines.person,
            )
            return calls.require_address(answer, policy, chain, index)

    async def sign(
        self,
        device_id: str,
        psbt: Psbt,
        policy: Policy,
        *,
        signer: Fingerprint | None = None,
        on_progress: OnProgress | None = None,
    ) -> Psbt:
        """The same PSBT with this device's signatures added, verified. Nothing else of the device's answer is
        used (S19).

        `signer`: the fingerprint that the device must have, if the caller knows it. Inputs that the device
        left unsigned are reported by a `Progress` of step "incomplete", and by `multisig.signer_progress`. If
        this signer has signed everything already, the device is not asked.

        :raises MultisigError: the PSBT does not prove its inputs to be coins of the policy (S4, S5), or
            carries a bad signature, or the policy is for another kind of network than the bridge. The device
            was not touched.
        :raises WrongDevice: the device is not a signer of the policy, or changed its keys meanwhile (S18).
        :raises NotEnrolled: the device does not know the vault.
        :raises BadDeviceSignature: a signature that came back does not verify.
        """
        self._require_network(policy)
        sanitised_psbt.require_sound(psbt, policy)
        async with self._talk(device_id, on_progress) as talk:
            return await conversation.sign(talk, psbt, policy, signer)

    async def cancel(self, device_id: str) -> None:
        """Cancel the operation on the device; its caller gets `Cancelled`. A Trezor's screen is cleared, a
        Coldcard's is not.
        """
        await self._roster.cancel(device_id)

    def _require_network(self, policy: Policy) -> None:
        """Signatures do not depend on the network, but the device would show the addresses of another one.

        :raises WrongNetwork: the policy is for another kind of network than the bridge.
        """
        if policy.network.kind != self._network.kind:
            raise WrongNetwork(f"The devices are used for {self._network}, and this is for {policy.network}.")

    @contextlib.asynccontextmanager
    async def _talk(
        self, device_id: str, on_progress: OnProgress | None = None, ask: Ask | None = None
    ) -> AsyncIterator[Conversation]:
        async with self._roster.using(device_id) as record:
            yield Conversation(
                self._network, self._deadlines, self._roster, self._registrations, record, on_progress, ask
            )
