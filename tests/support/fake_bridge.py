"""A bridge with one device, Alice's by default, which follows a script and counts the requests."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from firmware_bridge import (
    BridgeError,
    Cancelled,
    Device,
    DeviceEvent,
    DeviceState,
    Endpoint,
    Locked,
    Progress,
    Question,
    Registration,
)
from multisig import DerivationPath, Fingerprint, OriginKey, Policy, Psbt, Vault, message_hash, secp256k1
from tests.support.wallets import ALICE, Signer

T = TypeVar("T")
OnProgress = Callable[[Progress], None]
Ask = Callable[[Question], Awaitable[str | None]]


@dataclass
class FakeBridge:
    """``failures`` are raised one by one before any operation, ``showing`` before an address is shown.
    ``prompts``: a file that counts beyond the process.
    """

    signer: Signer = ALICE
    failures: list[Exception] = field(default_factory=list)
    prompts: Path | None = None
    asked: int = 0
    enrolled: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    showing: list[BridgeError] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None
    state: DeviceState = DeviceState.READY
    firmware: str | None = None
    model: str = "Fake device"
    label: str | None = None
    endpoint: str = "trezor:udp:127.0.0.1:1"
    # Whether it is an emulator at an address; False for hardware.
    emulator: bool = True
    alter: Callable[[Psbt], Psbt] = field(default=lambda psbt: psbt)
    # What it asks before it unlocks, and the right answer.
    secrets: dict[Question, str | None] = field(default_factory=dict)
    identified: int = 0
    cancels: int = 0
    registrations: list[Registration] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._talking: asyncio.Task[None] | None = None
        self._events: asyncio.Queue[DeviceEvent] = asyncio.Queue()

    @property
    def device(self) -> Device:
        endpoint = Endpoint.parse(self.endpoint)
        return replace(
            Device.at(endpoint, self.model),
            label=self.label,
            state=self.state,
            fingerprint=self.signer.fingerprint,
            firmware=self.firmware,
            emulator=self.emulator,
        )

    def becomes(self, state: DeviceState) -> None:
        old, self.state = self.state, state
        self._events.put_nowait(DeviceEvent(self.device.id, old, state, self.device))

    async def list(self) -> tuple[Device, ...]:
        return (self.device,)

    async def refresh(self) -> tuple[Device, ...]:
        return (self.device,)

    async def watch(self) -> None:
        await asyncio.Event().wait()

    async def events(self) -> AsyncIterator[DeviceEvent]:
        while True:
            yield await self._events.get()

    async def unlock(self, device_id: str, ask: Ask, *, on_progress: OnProgress | None = None) -> Device:
        if self.failures:
            raise self.failures.pop(0)
        for question, secret in self.secrets.items():
            if on_progress is not None and question is Question.PAIRING:
                on_progress(Progress(device_id, "compare-pairing", "Compare this code: ABCD EFGH"))
            if await self._answer(ask, question) != secret:
                raise Locked(detail="it was wrong or missing")
        self.becomes(DeviceState.READY)
        return self.device

    async def _answer(self, ask: Ask, question: Question) -> str | None:
        """Runs beside the call as in the lane, so that a cancel ends both."""
        return await self._cancellable(ask(question))

    async def _cancellable(self, waiting: Awaitable[T]) -> T:
        self._talking = talking = asyncio.ensure_future(waiting)
        try:
            await asyncio.wait({talking})
        finally:
            self._talking = None
            talking.cancel()
        if talking.cancelled():
            raise Cancelled
        return talking.result()

    def registrations_of(self, vault: Vault) -> tuple[Registration, ...]:
        return tuple(one for one in self.registrations if one.vault == vault.verification_code)

    async def identify(self, _device_id: str, *, on_progress: OnProgress | None = None) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.identified += 1
        if self.gate is not None:
            await self.gate.wait()

    async def cancel(self, _device_id: str) -> None:
        self.cancels += 1
        if self._talking is not None:
            self._talking.cancel()

    async def xpubs(self, _device_id: str, paths: Sequence[DerivationPath]) -> tuple[OriginKey, ...]:
        if self.failures:
            raise self.failures.pop(0)
        return tuple(self.signer.origin_key(path) for path in paths)

    async def sign_message(
        self, _device_id: str, text: str, path: DerivationPath, *, on_progress: OnProgress | None = None
    ) -> bytes:
        self.messages.append(text)
        if self.failures:
            raise self.failures.pop(0)
        key = self.signer.private_node(path).key
        signature, recovery_id = secp256k1.sign_recoverable(key, message_hash(text))
        return bytes([31 + recovery_id]) + signature

    async def enrol(
        self, _device_id: str, vault: Vault, name: str, *, on_progress: OnProgress | None = None
    ) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.enrolled.append(vault.verification_code)
        self.labels.append(name)

    async def show_address(
        self,
        _device_id: str,
        policy: Policy,
        chain: int,
        index: int,
        *,
        on_progress: OnProgress | None = None,
    ) -> str:
        if self.failures:
            raise self.failures.pop(0)
        if self.showing:
            raise self.showing.pop(0)
        self.shown.append(policy.address(chain, index))
        if self.gate is not None:
            await self._cancellable(self.gate.wait())
        return self.shown[-1]

    async def sign(
        self,
        device_id: str,
        psbt: Psbt,
        _policy: Policy,
        *,
        signer: Fingerprint | None = None,
        on_progress: OnProgress | None = None,
    ) -> Psbt:
        assert signer in {None, self.signer.fingerprint}
        if self.failures:
            raise self.failures.pop(0)
        self.asked += 1
        if self.prompts is not None:
            with self.prompts.open("a") as file:
                file.write(".")
        if on_progress is not None:
            on_progress(Progress(device_id, "button", "Confirm the transaction."))
        if self.gate is not None:
            await self.gate.wait()
        return self.alter(self.signer.sign(psbt))
