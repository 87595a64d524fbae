"""What the fake answers: `firmware_bridge.operations`, done with the seed; and where fakes
are plugged in: a listing that sees them, and workers that are threads of this process.

Signatures are those that a real device gives, unless a fault is asked for.
"""

import asyncio
import base64
import contextlib
import hmac
import json
import socket
import threading
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from device_simulators.fake import device
from device_simulators.fake.device import DeviceLink, FakeDevice
from device_simulators.faults import Faults, Phase
from device_simulators.panel import Prompt
from device_simulators.seed import Seed
from firmware_bridge import operations
from firmware_bridge.bridge import Bridge
from firmware_bridge.errors import (
    Cancelled,
    Locked,
    NeedsPassphrase,
    NotEnrolled,
    RefusedByPerson,
    Unsupported,
    WrongDevice,
)
from firmware_bridge.model import Endpoint, Listing, Sighting
from firmware_bridge.protocol import DriverHost, Question, WorkerCall
from firmware_bridge.worker import Process, Server, Spawner
from multisig import (
    SIGHASH_ALL,
    DerivationPath,
    Network,
    OriginKey,
    Policy,
    Profile,
    Psbt,
    SighashCache,
    TxOut,
    Vault,
    hash160,
    message_hash,
    p2pkh,
)
from multisig.proofs import proven_output

_LABEL: Final = b"fake device, registrations"


def parse(policy: operations.PolicyText, network: Network) -> Policy:
    keys = tuple(OriginKey.parse(key, network) for key in policy.keys)
    return Vault(network, policy.threshold, keys) if policy.is_vault else Profile(network, keys[0])


def digest(policy: operations.PolicyText) -> bytes:
    """Of the vault alone, whatever its name and the order of its keys."""
    return sha256(json.dumps([policy.threshold, *sorted(policy.keys)]).encode()).digest()


def proof(wallet: Seed, policy: operations.PolicyText) -> bytes:
    """What only this device can have said of this vault under this name."""
    return hmac.digest(wallet.symmetric_key(_LABEL), policy.name.encode() + digest(policy), "sha256")


def sign(psbt: Psbt, wallet: Seed, faults: Faults) -> Psbt:
    """With every key of the wallet that an input names. The bridge lets no unsound PSBT come this far."""
    hashes = SighashCache(psbt.tx)
    return psbt.with_signatures(
        {at: _signatures(psbt, at, wallet, hashes, faults) for at in range(len(psbt.inputs))}
    )


def _signatures(
    psbt: Psbt, at: int, wallet: Seed, hashes: SighashCache, faults: Faults
) -> dict[bytes, bytes]:
    item = psbt.inputs[at]
    coin = proven_output(item)
    assert isinstance(coin, TxOut), "the bridge lets no other input pass"
    signatures = {}
    for key, origin in item.derivations.items():
        if origin.fingerprint != wallet.fingerprint or wallet.public_key(origin.path) != key:
            continue
        code = item.witness_script or p2pkh(hash160(key))
        digest = hashes.segwit_v0(at, code, coin.amount, SIGHASH_ALL)
        signature = faults.signature(wallet, origin.path, at, digest)
        if signature is not None:
            signatures[key] = signature + bytes([SIGHASH_ALL])
    return signatures


_GARBAGE: Final = "\ufffd" * 8


class _Garbled(Exception):
    """The answer has to be garbage."""


class FakeClient:
    """One open conversation. It runs in the thread that serves it, and waits for the screen in the loop that
    has it.
    """

    def __init__(self, device: FakeDevice, line: DeviceLink, caller: DriverHost, request: WorkerCall) -> None:
        self._device = device
        self._line = line
        self._caller = caller
        self._session = request.session

    def call(self, op: str, args: Mapping[str, Any]) -> Any:
        self._device.join(self._line)
        if op not in operations.OPERATIONS:
            raise Unsupported(detail=f"a fake knows no {op}")
        self._device.asked[op] += 1
        shape, operation = operations.OPERATIONS[op], getattr(self, f"_{op}")
        try:
            return operation() if shape is None else operation(shape(**args))
        except _Garbled:
            return _GARBAGE

    def cancel(self) -> None:
        self._line.interrupt(Cancelled())

    def close(self) -> None:
        """The conversation may go on with another client."""

    def _probe(self) -> operations.Probed:
        self._strike(Phase.PROBE)
        wallet, obstacle = self._device.wallet(self._session), None
        if self._device.locked:
            obstacle = Locked.code
        elif wallet is None:
            obstacle = NeedsPassphrase.code
        return operations.Probed(
            self._device.model,
            self._device.label,
            fingerprint=None if wallet is None or obstacle else str(wallet.fingerprint),
            obstacle=obstacle,
        )

    def _fingerprint(self) -> str:
        return str(self._wallet().fingerprint)

    def _xpubs(self, request: operations.Xpubs) -> operations.Keys:
        wallet = self._wallet()
        self._strike(Phase.XPUB)
        keys = (wallet.xpub(DerivationPath.parse(path), self._device.network) for path in request.paths)
        return operations.Keys(str(wallet.fingerprint), tuple(map(str, keys)))

    def _sign(self, request: operations.Sign) -> str:
        """What was cut off is forgotten."""
        wallet = self._wallet()
        self._strike(Phase.RECEIVE)
        subject = self._known_policy(wallet, request.policy)
        received = Psbt.parse(request.psbt)
        for prompt in device.transaction(received, subject):
            self._confirm(*operations.CONFIRM_TRANSACTION, prompt)
        self._strike(Phase.SIGN)
        signed = sign(received, wallet, self._device.faults)
        self._strike(Phase.RETURN)
        return signed.to_base64()

    def _sign_message(self, request: operations.SignMessage) -> str:
        wallet = self._wallet()
        prompt = device.message(request.text, request.path)
        self._confirm(*operations.CONFIRM_MESSAGE, prompt)
        self._strike(Phase.SIGN)
        signature = wallet.sign_recoverable(DerivationPath.parse(request.path), message_hash(request.text))
        self._strike(Phase.RETURN)
        return base64.b64encode(signature).decode()

    def _enrol(self, request: operations.Enrol) -> str | None:
        wallet, policy = self._wallet(), request.policy
        subject = parse(policy, self._device.network)
        _require_cosigner(wallet, subject)
        if request.again or not self._knows(wallet, policy):
            prompt = device.enrolment(policy.name, subject)
            self._confirm(*operations.CONFIRM_ENROLMENT, prompt)
        if self._device.keeps_vaults:
            self._device.remember(digest(policy))
            return None
        return proof(wallet, policy).hex()

    def _show_address(self, request: operations.ShowAddress) -> str:
        subject = self._known_policy(self._wallet(), request.policy)
        address = subject.address(request.chain, request.index)
        self._confirm(*operations.CONFIRM_ADDRESS, device.address(address))
        return address

    def _identify(self) -> None:
        self._confirm("identify", "The device shows itself: press a button on it", device.greeting())

    def _unlock(self) -> operations.Unlocked:
        if self._device.locked and not self._device.takes_pin(self._caller.ask(Question.PIN)):
            raise Locked(detail="the PIN was wrong, or none was given")
        if self._device.wants_passphrase:
            passphrase = self._caller.ask(Question.PASSPHRASE)
            if passphrase is None:
                raise NeedsPassphrase
            self._session = self._device.open_wallet(passphrase)
        return operations.Unlocked(str(self._wallet().fingerprint), self._session)

    def _wallet(self) -> Seed:
        """:raises BridgeError: the device is locked, or waits for a passphrase."""
        self._strike(Phase.PROBE)
        if self._device.locked:
            raise Locked
        wallet = self._device.wallet(self._session)
        if wallet is None:
            raise NeedsPassphrase
        return wallet

    def _known_policy(self, wallet: Seed, policy: operations.PolicyText) -> Policy:
        """:raises BridgeError: the device does not know it, or has no key in it."""
        subject = parse(policy, self._device.network)
        _require_cosigner(wallet, subject)
        if self._device.enrols and policy.is_vault and not self._knows(wallet, policy):
            raise NotEnrolled
        return subject

    def _knows(self, wallet: Seed, policy: operations.PolicyText) -> bool:
        if self._device.keeps_vaults:
            return self._device.knows(digest(policy))
        return policy.hmac == proof(wallet, policy).hex()

    def _confirm(self, step: str, text: str, prompt: Prompt) -> None:
        """:raises BridgeError: the person said no, or did not decide."""
        self._caller.tell(step, text)
        with self._line.showing(self._device.panel.ask(prompt)) as waiting:
            self._strike(Phase.PROMPT)
            approved = self._line.answer(waiting)
        if not approved:
            raise RefusedByPerson

    def _strike(self, phase: Phase) -> None:
        """Misbehave, if that is due at this phase."""
        faults = self._device.faults
        if faults.vanish_at is phase:
            self._device.unplug()
        if faults.stall_at is phase:
            self._line.say_nothing()
        self._line.require_whole()
        if faults.garbage_at is phase:
            raise _Garbled


def _require_cosigner(wallet: Seed, subject: Policy) -> None:
    if subject.cosigner_for(wallet.fingerprint) is None:
        raise WrongDevice


def bridge_to(*devices: FakeDevice, network: Network, **options: Any) -> Bridge:
    """A bridge with these devices and no others; `options` are those of `Bridge`. To be called where an event
    loop runs.
    """
    return Bridge(
        network=network, usb=False, listings=[listing_of(*devices)], spawner=spawner_of(*devices), **options
    )


def listing_of(*devices: FakeDevice) -> Listing:
    """Sees those that are plugged in."""

    async def look(_in_use: Collection[Endpoint]) -> Sequence[Sighting]:
        return [
            Sighting(device.endpoint, device.model, incarnation=str(device.incarnation))
            for device in devices
            if device.present
        ]

    return look


def spawner_of(*devices: FakeDevice) -> Spawner:
    """Starts a thread for each conversation. The loop that runs now has the devices' screens."""
    loop = asyncio.get_running_loop()
    by_endpoint = {str(device.endpoint): device for device in devices}

    def spawn(channel: socket.socket, endpoint: str, _network: str) -> Process:
        return _Thread(channel.dup(), by_endpoint[endpoint], DeviceLink(loop))

    return spawn


class _Thread:
    """Stands for a worker process: once killed, it sends nothing more."""

    pid = None

    def __init__(self, channel: socket.socket, device: FakeDevice, line: DeviceLink) -> None:
        self._channel = channel
        self._device = device
        self._line = line
        self._killed = False
        self._thread = threading.Thread(target=self._serve, name="fake-device", daemon=True)
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive() and not self._killed

    def kill(self) -> None:
        self._killed = True
        # A socket that its thread has closed meanwhile cannot be shut down, and need not be.
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._line.cut()

    def _serve(self) -> None:
        def open_device(caller: DriverHost, request: WorkerCall) -> FakeClient:
            return FakeClient(self._device, self._line, caller, request)

        # The bridge may have gone in the middle of an answer.
        with contextlib.suppress(OSError):
            Server(self._channel, open_device, end_process=_keep_process).serve(preloaded=True)
        self._device.leave(self._line)
        self._channel.close()


def _keep_process(_status: int) -> None:
    """A thread ends with its conversation; there is no process to end."""
