"""What the program knows about one device, what an outcome says about its state, and when it is probed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from firmware_bridge import calls, errors
from firmware_bridge.errors import BridgeError, Cancelled, Disconnected
from firmware_bridge.lane import Lane
from firmware_bridge.makers import MAKERS
from firmware_bridge.model import Deadlines, Device, DeviceState, Sighting
from firmware_bridge.operations import Probed
from firmware_bridge.presence.holders import FindHolder, Turn
from multisig import Fingerprint


@dataclass(frozen=True)
class DeviceAnswer:
    """A device's answer to the transaction with this digest, not verified yet."""

    digest: bytes
    signer: Fingerprint
    psbt: str = field(repr=False)


@dataclass(eq=False)
class Use:
    """One operation's claim to a device. The operation may be cancelled meanwhile, or the device may leave:
    another device in its place must not be used.
    """

    cancelled: bool = False
    lost: bool = False


@dataclass
class DeviceRecord:
    """What the program knows about one device, and its lane."""

    device: Device
    lane: Lane
    sighting: Sighting
    use: Use | None = None
    probed_at: float | None = None
    probe: asyncio.Task[None] | None = None
    # The last probe failed, perhaps because another program uses the device. Every probe would disturb it.
    perhaps_shared: bool = False
    # Another program had the device open at the last probe or operation.
    held: bool = False
    # How many probes in a row did not find it ready.
    fruitless: int = 0
    # (master fingerprint, verification code) of vaults that the device refused as unknown, whatever its quick
    # check says.
    unknown_vaults: set[tuple[Fingerprint, str]] = field(default_factory=set)
    # Digest of the last transaction sent without an answer: the device may still ask about it, or hold the
    # answer.
    unanswered: bytes | None = None
    # What the device answered before it left, when its fingerprint could not be read again.
    answered: DeviceAnswer | None = None

    @property
    def in_use(self) -> bool:
        return self.use is not None

    def require_wanted(self) -> None:
        """To be called between the calls of one operation: a lane remembers a cancel for one call only.

        :raises Cancelled: the operation was cancelled.
        :raises Disconnected: the device has left, even if one is connected there again.
        """
        if self.use is not None and self.use.cancelled:
            raise Cancelled
        if self.use is not None and self.use.lost:
            raise Disconnected


def after_answer(answer: Probed) -> tuple[DeviceState, str | None]:
    """The state and detail of a probe's answer: ready, or what keeps the device from working."""
    if answer.obstacle is None:
        return DeviceState.READY, None
    outcome = errors.from_worker(answer.obstacle, answer.detail)
    return outcome.state, outcome.words


Clock = Callable[[], float]

# Probed again after a while: the state may have changed while the device stayed connected.
ASK_AGAIN: Final = frozenset(
    {
        DeviceState.LOCKED,
        DeviceState.UNINITIALISED,
        DeviceState.WRONG_APP,
        DeviceState.BUSY,
        DeviceState.PRESENT,
        DeviceState.NO_PERMISSION,
    }
)


_PERHAPS_IN_USE: Final = frozenset({DeviceState.PRESENT, DeviceState.BUSY})
# How a device looks that another program has open. hidapi does not tell "busy" from "not allowed".
_PERHAPS_HELD: Final = _PERHAPS_IN_USE | {DeviceState.NO_PERMISSION}
# After this many fruitless probes the pause grows: a device that stays locked for an hour is probed rarely.
_TRIES_AT_A_PACE: Final = 4


@dataclass
class Prober:
    """Decides which device is probed and when, and applies the answer."""

    deadlines: Deadlines
    clock: Clock
    find_holder: FindHolder
    turn: Turn
    # Puts the device in its next state and publishes it.
    move: Callable[[DeviceRecord, Device], None]

    def wants(self, record: DeviceRecord) -> bool:
        """Whether to probe the device: it is new or was not ready, it can be opened, and no operation uses
        it.
        """
        sighting = record.sighting
        if is_working(record) or not sighting.permitted or sighting.unsupported is not None:
            return False
        if record.device.state == DeviceState.ABSENT:
            return False
        if record.probed_at is None:
            return True
        waited = self.clock() - record.probed_at
        return record.device.state in ASK_AGAIN and waited >= self._patience(record)

    def _patience(self, record: DeviceRecord) -> float:
        longest = self.deadlines.retry_shared
        if record.perhaps_shared:
            return longest
        return min(longest, self.deadlines.retry * (1 + record.fruitless // _TRIES_AT_A_PACE))

    async def probe(self, record: DeviceRecord) -> None:
        state, detail, answer = DeviceState.PRESENT, None, None
        try:
            if record.held and (holder := await self.find_holder(record.device.endpoint)) is not None:
                # Not disturbed as long as another program has it open.
                state, detail = DeviceState.BUSY, _in_use_by(holder)
                return
            async with record.lane.lock:
                with self.turn(record.device.endpoint):
                    reply = await record.lane.call("probe", deadline=self.deadlines.probe, probing=True)
            answer = calls.answer(Probed, reply)
            state, detail = await self.explain(record, *after_answer(answer))
        except BridgeError as outcome:
            state, detail = await self.explain(record, outcome.state, outcome.words)
        finally:
            if record.probe is asyncio.current_task():
                record.probe = None
                self._conclude(record, state, detail, answer)

    def _conclude(
        self, record: DeviceRecord, state: DeviceState, detail: str | None, answer: Probed | None
    ) -> None:
        record.probed_at = self.clock()
        if state == DeviceState.READY and (answer is None or answer.obstacle is not None):
            # The person refused a question of an earlier request: the device is asked again.
            state = DeviceState.PRESENT
        record.perhaps_shared = state in _PERHAPS_IN_USE and MAKERS[record.device.family].shares_session
        self._learn(record, answer)
        self.move(record, record.device.found(state, detail))
        record.fruitless = record.fruitless + 1 if record.device.state in ASK_AGAIN else 0

    async def explain(
        self, record: DeviceRecord, state: DeviceState, detail: str | None
    ) -> tuple[DeviceState, str | None]:
        """Name the program that has the device open, if one has."""
        record.held = False
        if state not in _PERHAPS_HELD or (holder := await self.find_holder(record.device.endpoint)) is None:
            return state, detail
        record.held = True
        return DeviceState.BUSY, _in_use_by(holder)

    def _learn(self, record: DeviceRecord, answer: Probed | None) -> None:
        if answer is None:
            return
        record.device = replace(
            record.device.called(answer.model) if answer.model else record.device,
            label=answer.label or None,
            fingerprint=None if answer.fingerprint is None else Fingerprint.from_hex(answer.fingerprint),
            firmware=answer.firmware,
        )


def is_working(record: DeviceRecord) -> bool:
    return record.in_use or record.device.state == DeviceState.PROBING


def _in_use_by(holder: str) -> str:
    return f"In use by {holder}."
