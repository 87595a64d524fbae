"""The facade: devices and what can be done with them, in plain values and typed outcomes."""

import asyncio
import base64
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from firmware_bridge import answers, enrolment, handover, presence
from firmware_bridge.errors import (
    BadDeviceSignature,
    Cancelled,
    DeviceFault,
    Disconnected,
    NotEnrolled,
    TimedOut,
    WorkerCrashed,
    WrongDevice,
)
from firmware_bridge.lane import Lane, OnNote
from firmware_bridge.model import Deadlines, Device, DeviceEvent, Endpoint, Family, Progress
from firmware_bridge.process import Spawner, spawn
from firmware_bridge.roster import Clock, Record, Roster
from firmware_bridge.sighting import Listing
from multisig import (
    DerivationPath,
    Fingerprint,
    Network,
    OriginKey,
    Policy,
    Psbt,
    Vault,
    signer_progress,
)

OnProgress = Callable[[Progress], None]

# How an operation can end while the device may still wait for the person, or hold the answer.
_UNANSWERED: Final = (TimedOut, Cancelled, WorkerCrashed, Disconnected)
_WATCH_SECONDS: Final = 1.0
_log = logging.getLogger(__name__)


class Bridge:
    """The devices of one program. Use it as an async context manager; leaving it ends every worker process.

    `endpoints` are virtual devices and emulators; `usb` adds what is plugged in. Nothing is opened before `refresh`,
    `watch` or an operation, and nothing waits without a deadline.

    Every operation raises the leaves of `BridgeError`; the next operation works, whatever happened to the one before.
    """

    def __init__(
        self,
        *,
        network: Network,
        endpoints: Sequence[Endpoint] = (),
        usb: bool = True,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
        clock: Clock = time.monotonic,
        listings: Sequence[Listing] | None = None,
        spawner: Spawner = spawn,
    ) -> None:
        self._network = network
        self._deadlines = deadlines
        self._roster = Roster(
            listings=_default_listings(endpoints, usb=usb) if listings is None else listings,
            make_lane=lambda endpoint: Lane(endpoint, network, deadlines=deadlines, spawner=spawner),
            deadlines=deadlines,
            clock=clock,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._roster.close()

    async def list(self) -> tuple[Device, ...]:
        """What is there, as last noticed. No device is touched, nothing is waited for."""
        return self._roster.devices()

    async def refresh(self) -> tuple[Device, ...]:
        """Notice who came and who left, ask who is new and idle, and wait for their answers."""
        await self._roster.look()
        await asyncio.gather(*self._roster.start_probes())
        return self._roster.devices()

    async def watch(self, seconds: float = _WATCH_SECONDS) -> None:
        """Keep noticing, until cancelled; run it as a task. A device that answers slowly does not hold up the others."""
        while True:
            await self._roster.look()
            self._roster.start_probes()
            await asyncio.sleep(seconds)

    def events(self) -> AsyncIterator[DeviceEvent]:
        """Every change of state from this call on, until the bridge closes."""
        return self._roster.hub.stream()

    async def xpub(self, device_id: str, path: DerivationPath) -> OriginKey:
        """The extended public key at one path; see `xpubs`."""
        (key,) = await self.xpubs(device_id, [path])
        return key

    async def xpubs(self, device_id: str, paths: Sequence[DerivationPath]) -> tuple[OriginKey, ...]:
        """The extended public keys at these paths, with their origins, in one conversation.

        :raises WrongApp: the device is set to another kind of network.
        """
        async with self._roster.using(device_id) as record:
            return await self._read_xpubs(record, paths)

    async def sign_message(
        self, device_id: str, text: str, path: DerivationPath, *, on_progress: OnProgress | None = None
    ) -> bytes:
        """The person's signature of `text` with the key at `path`: 65 bytes (BIP-137), proven to be by that key.

        :raises BadDeviceSignature: it is by another key, or over another text.
        """
        async with self._roster.using(device_id) as record:
            (key,) = await self._read_xpubs(record, [path])
            answer = await _call(
                record,
                "sign_message",
                {"text": text, "path": str(path)},
                deadline=self._deadlines.person,
                on_note=_notes(record, on_progress),
            )
            signature = answers.signature(answer)
            if not answers.is_by(key.xpub.public_key, text, signature):
                raise BadDeviceSignature
            return signature

    async def enrol(
        self, device_id: str, vault: Vault, name: str, *, on_progress: OnProgress | None = None
    ) -> None:
        """Make the device know the vault under this name, where its maker wants that; the person confirms on it.

        A Coldcard that knows the quorum already is not asked again; a Trezor keeps no vaults; a Ledger is asked by HWI at
        every signing.

        :raises WrongDevice: it is no cosigner of the vault.
        """
        async with self._roster.using(device_id) as record:
            if record.device.family != Family.COLDCARD:
                return
            code = vault.verification_code
            arguments = {
                "file": enrolment.coldcard_file(vault, name),
                "threshold": vault.threshold,
                "cosigners": len(vault.cosigners),
                "fingerprints_xor": enrolment.fingerprints_xor(vault),
                "again": code in record.unknown_vaults,
            }
            await self._read_signer(record, vault)
            await _call(
                record,
                "enrol",
                arguments,
                deadline=self._deadlines.person,
                on_note=_notes(record, on_progress),
            )
            record.unknown_vaults.discard(code)

    async def sign(
        self, device_id: str, psbt: Psbt, policy: Policy, *, on_progress: OnProgress | None = None
    ) -> Psbt:
        """The same PSBT with this device's verified signatures added; of what the device sends, nothing else is taken (S19).

        Inputs that the device left unsigned are told by a `Progress` of step "incomplete", and by
        `multisig.signer_progress`. Everything signed already: the device is not asked again.

        :raises MultisigError: the PSBT does not prove its inputs to be coins of the policy (S4, S5), or carries a bad
            signature. The device was not touched.
        :raises WrongDevice: the device is no signer of the policy, or changed its keys meanwhile (S18).
        :raises BadDeviceSignature: a signature that came back does not verify.
        """
        handover.require_sound(psbt, policy)
        async with self._roster.using(device_id) as record:
            signer = await self._read_signer(record, policy)
            if signer_progress(psbt, policy, signer).is_complete:
                return psbt
            answer = await self._ask_signature(record, psbt, policy, on_progress)
            if await self._read_fingerprint(record) != signer:
                raise WrongDevice("The device changed its keys while it signed; its signatures are not used.")
            signed = handover.take_back(psbt, answer, policy, signer)
            self._tell_missing(record, psbt, signed, policy, signer, on_progress)
            return signed

    async def cancel(self, device_id: str) -> None:
        """Give up what runs on the device; its caller gets `Cancelled`. A Trezor's screen is cleared; a Coldcard's is not."""
        for record in self._roster.records():
            if record.device.id == device_id:
                await self._roster.cancel(record)

    async def _ask_signature(
        self, record: Record, psbt: Psbt, policy: Policy, on_progress: OnProgress | None
    ) -> str:
        content = handover.for_device(psbt, policy)
        digest = hashlib.sha256(content).digest()
        arguments = {"psbt": base64.b64encode(content).decode(), "resume": record.unanswered == digest}
        # Before the device is asked there is no answer to remember, nor to forget.
        _require_wanted(record)
        record.unanswered = None
        try:
            return str(
                await _call(
                    record,
                    "sign",
                    arguments,
                    deadline=self._deadlines.signing(len(psbt.inputs)),
                    on_note=_notes(record, on_progress),
                )
            )
        except NotEnrolled:
            if isinstance(policy, Vault):
                record.unknown_vaults.add(policy.verification_code)
            raise
        except _UNANSWERED:
            record.unanswered = digest
            raise

    def _tell_missing(
        self,
        record: Record,
        before: Psbt,
        after: Psbt,
        policy: Policy,
        signer: Fingerprint,
        on_progress: OnProgress | None,
    ) -> None:
        missing = signer_progress(after, policy, signer).missing
        if not missing:
            return
        if after == before:
            raise DeviceFault("it returned no signature")
        if on_progress is not None:
            inputs = ", ".join(str(index) for index in missing)
            text = f"The device left these inputs unsigned: {inputs}."
            _tell(on_progress, Progress(record.device.id, "incomplete", text))

    async def _read_signer(self, record: Record, policy: Policy) -> Fingerprint:
        """:raises WrongDevice: the device is no signer of the policy, or not the one that was here before."""
        known = record.device.fingerprint
        fingerprint = await self._read_fingerprint(record)
        self._roster.identify(record, fingerprint)
        if known is not None and known != fingerprint:
            raise WrongDevice(f"This device was {known} before and is {fingerprint} now.")
        if policy.cosigner_for(fingerprint) is None:
            raise WrongDevice(f"This device ({fingerprint}) is no signer here.")
        return fingerprint

    async def _read_fingerprint(self, record: Record) -> Fingerprint:
        answer = await _call(record, "fingerprint", deadline=self._deadlines.read)
        return answers.fingerprint(answer)

    async def _read_xpubs(self, record: Record, paths: Sequence[DerivationPath]) -> tuple[OriginKey, ...]:
        answer = await _call(
            record, "xpubs", {"paths": [str(path) for path in paths]}, deadline=self._deadlines.read
        )
        fingerprint, texts = answers.xpubs(answer, len(paths))
        self._roster.identify(record, fingerprint)
        pairs = zip(paths, texts, strict=True)
        return tuple(answers.origin_key(fingerprint, path, text, self._network) for path, text in pairs)


def _default_listings(endpoints: Sequence[Endpoint], *, usb: bool) -> list[Listing]:
    return [presence.endpoint_listing(endpoints), *([presence.usb_listing()] if usb else [])]


async def _call(
    record: Record,
    op: str,
    args: Mapping[str, Any] | None = None,
    *,
    deadline: float,
    on_note: OnNote | None = None,
) -> Any:
    """One call of an operation that may make several; after a cancel none is made."""
    _require_wanted(record)
    return await record.lane.call(op, args, deadline=deadline, on_note=on_note)


def _require_wanted(record: Record) -> None:
    """:raises Cancelled: the operation was given up between two calls, or while it waited for the device."""
    if record.cancelled:
        raise Cancelled


def _notes(record: Record, on_progress: OnProgress | None) -> OnNote | None:
    if on_progress is None:
        return None
    return lambda note: _tell(
        on_progress, Progress(record.device.id, note.step, note.text, note.done, note.total)
    )


def _tell(on_progress: OnProgress, progress: Progress) -> None:
    try:
        on_progress(progress)
    except Exception:  # noqa: BLE001 - the caller's code: its bug must not cost a signature that a person has approved
        _log.exception("a progress callback failed")
