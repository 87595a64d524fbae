"""Which devices there are and in which state: noticed without touching them, probed once when new and idle.

Every change goes through the one table in `firmware_bridge.model` and is published.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from firmware_bridge import answers, errors
from firmware_bridge.answers import Probed
from firmware_bridge.errors import BridgeError
from firmware_bridge.events import Hub
from firmware_bridge.families import MAKERS, UDEV_RULES
from firmware_bridge.holders import FindHolder, holder_of
from firmware_bridge.lane import Lane
from firmware_bridge.model import Deadlines, Device, DeviceEvent, DeviceState, Endpoint, Family, Happening
from firmware_bridge.sighting import Listing, Sighting
from multisig import Fingerprint

Clock = Callable[[], float]
MakeLane = Callable[[Endpoint], Lane]

# How an operation or a probe ended, as the device's next state sees it. A person's "no" is no fault of the device.
_AFTER_ERROR: Final[dict[type[BridgeError], Happening]] = {
    errors.RefusedByPerson: Happening.FOUND_READY,
    errors.Cancelled: Happening.FOUND_READY,
    errors.NotEnrolled: Happening.FOUND_READY,
    errors.WrongDevice: Happening.FOUND_READY,
    errors.BadDeviceSignature: Happening.FOUND_READY,
    errors.AddressMismatch: Happening.FOUND_READY,
    errors.Unsupported: Happening.FOUND_READY,
    errors.Disconnected: Happening.VANISHED,
    errors.Locked: Happening.FOUND_LOCKED,
    errors.WrongApp: Happening.FOUND_WRONG_APP,
    errors.NeedsPassphrase: Happening.FOUND_NEEDS_PASSPHRASE,
    errors.Busy: Happening.FOUND_BUSY,
    errors.NoPermission: Happening.FOUND_NO_PERMISSION,
    errors.TimedOut: Happening.FAILED,
    errors.DeviceFault: Happening.FAILED,
    errors.WorkerCrashed: Happening.FAILED,
}
# A probe that ends so has not found a working device, though an operation may end so on one.
_AFTER_PROBE: Final = {
    **_AFTER_ERROR,
    errors.Unsupported: Happening.FOUND_UNSUPPORTED,
    errors.Cancelled: Happening.FAILED,
}

# Worth asking again after a while: what the device shows may have changed without leaving the bus.
_ASK_AGAIN: Final = frozenset(
    {
        DeviceState.LOCKED,
        DeviceState.WRONG_APP,
        DeviceState.BUSY,
        DeviceState.PRESENT,
        DeviceState.NO_PERMISSION,
    }
)


_PERHAPS_IN_USE: Final = frozenset({Happening.FAILED, Happening.FOUND_BUSY})
# What another program that has it open may look like from here. hidapi does not tell "busy" from "not allowed".
_PERHAPS_HELD: Final = _PERHAPS_IN_USE | {Happening.FOUND_NO_PERMISSION}
# After so many fruitless probes the next ones come later, and later again: a device locked for an hour is left in peace.
_TRIES_AT_A_PACE: Final = 4


@dataclass(frozen=True)
class Answered:
    """A device's answer to the transaction of this digest, not believed yet."""

    digest: bytes
    signer: Fingerprint
    psbt: str = field(repr=False)


@dataclass(eq=False)
class Use:
    """One operation's claim to a device, from the moment it looks for it. Somebody may give the operation up meanwhile."""

    cancelled: bool = False


@dataclass
class Record:
    """What the program knows about one endpoint, and its lane."""

    device: Device
    lane: Lane
    sighting: Sighting
    use: Use | None = None
    probed_at: float | None = None
    probe: asyncio.Task[None] | None = None
    # It did not answer a probe well, and may be in another program's hands, which every probe disturbs.
    perhaps_shared: bool = False
    # Another program had it open when it was last asked.
    held: bool = False
    # How many probes in a row have not found it well.
    fruitless: int = 0
    # Vaults the device has refused for not knowing them, though its quick check says otherwise.
    unknown_vaults: set[str] = field(default_factory=set)
    # The transaction that was on its way to a person when the conversation was cut off.
    unanswered: bytes | None = None
    # What the device answered before it left, when its keys could not be looked at once more.
    answered: Answered | None = None

    @property
    def in_use(self) -> bool:
        return self.use is not None

    @property
    def cancelled(self) -> bool:
        """Whether the operation that has it was given up; a lane's call forgets that when it ends, an operation makes several."""
        return self.use is not None and self.use.cancelled


class Roster:
    """The devices of one bridge."""

    def __init__(
        self,
        *,
        listings: Sequence[Listing],
        make_lane: MakeLane,
        deadlines: Deadlines,
        clock: Clock,
        find_holder: FindHolder = holder_of,
    ) -> None:
        self.hub = Hub()
        self._find_holder = find_holder
        self._listings = listings
        self._make_lane = make_lane
        self._deadlines = deadlines
        self._clock = clock
        self._records: dict[str, Record] = {}
        self._uses: defaultdict[str, set[Use]] = defaultdict(set)
        self._looking = asyncio.Lock()

    def devices(self) -> tuple[Device, ...]:
        """Those that are there, as last seen."""
        present = (record.device for record in self._records.values())
        return tuple(device for device in present if device.state != DeviceState.ABSENT)

    def records(self) -> tuple[Record, ...]:
        return tuple(self._records.values())

    async def look(self) -> None:
        """Notice who came and who left. Nothing is opened."""
        async with self._looking:
            in_use = [record.device.endpoint for record in self._records.values() if self._is_working(record)]
            seen = [await listing(in_use) for listing in self._listings]
            sightings = {s.endpoint.device_id: s for listed in seen for s in listed}
            for device_id, sighting in sightings.items():
                self._notice(device_id, sighting)
            self._miss(sightings.keys())

    def unsettled(self) -> bool:
        """Whether a device waits to be asked again, or is being asked."""
        devices = (record.device for record in self._records.values() if record.sighting.can_be_opened)
        return any(device.state in _ASK_AGAIN | {DeviceState.PROBING} for device in devices)

    def start_probes(self) -> list[asyncio.Task[None]]:
        """Ask every device that is new and idle who it is, each in its own worker; the tasks never raise."""
        for record in self._records.values():
            if self._wants_probe(record):
                self._move(record, Happening.PROBE_STARTED)
                record.probe = asyncio.create_task(self._probe(record))
        return [record.probe for record in self._records.values() if record.probe is not None]

    @contextlib.asynccontextmanager
    async def using(self, device_id: str) -> AsyncIterator[Record]:
        """The device for one operation: busy meanwhile, afterwards in the state that the outcome tells.

        :raises Busy: another operation of this program has it.
        :raises Disconnected: it is not there, or was never seen.
        """
        use = Use()
        self._uses[device_id].add(use)
        try:
            async with self._using(await self._find(device_id), use) as record:
                yield record
        finally:
            self._uses[device_id].remove(use)

    @contextlib.asynccontextmanager
    async def _using(self, record: Record, use: Use) -> AsyncIterator[Record]:
        if record.in_use:
            raise errors.Busy("Another operation of this program is running on the device.")
        record.use, record.perhaps_shared, record.held, record.fruitless = use, False, False, 0
        try:
            async with record.lane.lock:
                self._require_usable(record)
                self._move(record, Happening.USE_STARTED, "In use by this program.")
                async with self._settling(record):
                    yield record
        finally:
            record.use = None

    def identify(self, record: Record, fingerprint: Fingerprint) -> None:
        """Remember whose keys the device holds."""
        record.device = replace(record.device, fingerprint=fingerprint)

    async def cancel(self, device_id: str) -> None:
        """Give up the operation that has the device, also between two calls and while it waits for the device or a probe."""
        uses = self._uses[device_id]
        for use in uses:
            use.cancelled = True
        record = self._records.get(device_id)
        # A probe that nobody waits for is none of the caller's business.
        if uses and record is not None:
            await record.lane.cancel()

    async def close(self) -> None:
        """End every probe, every operation (politely, as `cancel` does) and every worker."""
        probes = [record.probe for record in self._records.values() if record.probe is not None]
        for probe in probes:
            probe.cancel()
        await asyncio.gather(*probes, return_exceptions=True)
        await asyncio.gather(*(self.cancel(device_id) for device_id in self._records))
        for record in self._records.values():
            record.lane.release()
        self.hub.close()

    @contextlib.asynccontextmanager
    async def _settling(self, record: Record) -> AsyncIterator[None]:
        happening, detail = Happening.FAILED, None
        try:
            yield
            happening = Happening.FOUND_READY
        except BridgeError as outcome:
            happening = _AFTER_ERROR.get(type(outcome), Happening.FAILED)
            if happening == Happening.FOUND_LOCKED and _counts_tries(record.device.family):
                record.lane.session = None
            if happening != Happening.FOUND_READY:
                happening, detail = await self._explain(record, happening, in_words(outcome))
            if record.held and isinstance(outcome, errors.Busy | errors.NoPermission):
                raise errors.Busy(detail) from outcome
            raise
        finally:
            # The device may have been unplugged, and noticed as gone, in the meantime.
            if record.device.state == DeviceState.BUSY:
                record.probed_at = self._clock()
                self._move(record, happening, detail)

    async def _find(self, device_id: str) -> Record:
        record = self._records.get(device_id)
        if record is None or record.device.state == DeviceState.ABSENT:
            await self.look()
            record = self._records.get(device_id)
        if record is None or record.device.state == DeviceState.ABSENT:
            raise errors.Disconnected
        return record

    def _require_usable(self, record: Record) -> None:
        """Who waited for a probe may find that the device is gone, or is none that we can drive."""
        match record.device.state:
            case DeviceState.ABSENT:
                raise errors.Disconnected
            case DeviceState.UNSUPPORTED:
                raise errors.Unsupported(record.device.detail)
            case DeviceState.NO_PERMISSION if not record.sighting.permitted:
                raise errors.NoPermission(record.device.detail)
            case _:
                return

    def _is_working(self, record: Record) -> bool:
        return record.in_use or record.device.state == DeviceState.PROBING

    def _notice(self, device_id: str, sighting: Sighting) -> None:
        record = self._records.get(device_id)
        if record is None:
            device = Device.at(sighting.endpoint, sighting.model)
            record = Record(device, self._make_lane(sighting.endpoint), sighting)
            self._records[device_id] = record
        if record.sighting.incarnation != sighting.incarnation:
            self._lose(record)
        record.sighting = sighting
        if record.device.state == DeviceState.ABSENT:
            record.probed_at, record.perhaps_shared, record.held, record.fruitless = None, False, False, 0
            # Another model may be where the last one was.
            record.device = replace(record.device, model=sighting.model)
            self._move(record, Happening.APPEARED)
        if record.device.state == DeviceState.PRESENT:
            self._note_obstacle(record, sighting)

    def _note_obstacle(self, record: Record, sighting: Sighting) -> None:
        if sighting.unsupported is not None:
            self._move(record, Happening.FOUND_UNSUPPORTED, sighting.unsupported)
        elif not sighting.permitted:
            self._move(record, Happening.FOUND_NO_PERMISSION, no_permission(record.device.family))

    def _miss(self, seen: Collection[str]) -> None:
        for device_id, record in self._records.items():
            if device_id not in seen:
                self._lose(record)

    def _lose(self, record: Record) -> None:
        if record.device.state != DeviceState.ABSENT:
            record.lane.abort(errors.Disconnected())
            self._move(record, Happening.VANISHED)

    def _wants_probe(self, record: Record) -> bool:
        """New, or not well when it was last asked; and nobody is at it, and it can be opened."""
        if self._is_working(record) or record.lane.lock.locked() or not record.sighting.can_be_opened:
            return False
        if record.device.state == DeviceState.ABSENT:
            return False
        if record.probed_at is None:
            return True
        waited = self._clock() - record.probed_at
        return record.device.state in _ASK_AGAIN and waited >= self._patience(record)

    def _patience(self, record: Record) -> float:
        longest = self._deadlines.retry_shared
        if record.perhaps_shared:
            return longest
        return min(longest, self._deadlines.retry * (1 + record.fruitless // _TRIES_AT_A_PACE))

    async def _probe(self, record: Record) -> None:
        happening, detail, answer = Happening.FAILED, None, None
        try:
            if record.held and (holder := await self._find_holder(record.device.endpoint)) is not None:
                # Not disturbed as long as it is in another program's hands.
                happening, detail = Happening.FOUND_BUSY, _in_use_by(holder)
                return
            async with record.lane.lock:
                told = await record.lane.call("probe", deadline=self._deadlines.probe, probing=True)
            answer = answers.probed(told)
            happening, detail = await self._explain(record, *_after_answer(answer))
        except BridgeError as outcome:
            happening = _AFTER_PROBE.get(type(outcome), Happening.FAILED)
            happening, detail = await self._explain(record, happening, in_words(outcome))
        finally:
            record.probe = None
            record.probed_at = self._clock()
            record.perhaps_shared = happening in _PERHAPS_IN_USE and _breaks_others(record.device.family)
            if record.device.state == DeviceState.PROBING:
                self._learn(record, answer)
                self._move(record, happening, detail)
            record.fruitless = record.fruitless + 1 if record.device.state in _ASK_AGAIN else 0

    async def _explain(
        self, record: Record, happening: Happening, detail: str | None
    ) -> tuple[Happening, str | None]:
        """A device that cannot be had may be in another program's hands: in whose, if that can be found out."""
        record.held = False
        if (
            happening not in _PERHAPS_HELD
            or (holder := await self._find_holder(record.device.endpoint)) is None
        ):
            return happening, detail
        record.held = True
        return Happening.FOUND_BUSY, _in_use_by(holder)

    def _learn(self, record: Record, answer: Probed | None) -> None:
        if answer is None:
            return
        record.device = replace(
            record.device,
            model=_model_name(answer.model or record.device.model, virtual=record.device.virtual),
            label=answer.label or None,
            fingerprint=answer.fingerprint,
            firmware=answer.firmware,
        )

    def _move(self, record: Record, happening: Happening, detail: str | None = None) -> None:
        old = record.device.state
        record.device = record.device.after(happening, detail)
        if record.device.state == DeviceState.ABSENT and not _keeps_session(record.device.family):
            # Whoever comes back was without power: it has forgotten a passphrase.
            record.lane.session = None
        if record.device.state != old:
            event = DeviceEvent(record.device.id, old, record.device.state, record.device)
            self.hub.publish(event)


def _after_answer(answer: Probed) -> tuple[Happening, str | None]:
    """What a probe's answer says: ready, or what keeps the device from working."""
    if answer.obstacle is None:
        return Happening.FOUND_READY, None
    outcome = errors.from_worker(answer.obstacle, answer.detail)
    return _AFTER_PROBE[type(outcome)], in_words(outcome)


def in_words(outcome: BridgeError) -> str:
    """The sentence, and what the device adds to it."""
    words = str(outcome)
    return words if outcome.detail is None or outcome.detail in words else f"{words} ({outcome.detail})"


def _in_use_by(holder: str) -> str:
    return f"In use by {holder}."


def no_permission(family: Family) -> str:
    return f"{errors.NoPermission.sentence} Install the rules file {UDEV_RULES[family]}."


def _keeps_session(family: Family) -> bool:
    return family in MAKERS and MAKERS[family].keeps_session


def _counts_tries(family: Family) -> bool:
    return family in MAKERS and MAKERS[family].counts_tries


def _breaks_others(family: Family) -> bool:
    return family in MAKERS and MAKERS[family].shares_session


def _model_name(model: str, *, virtual: bool) -> str:
    return f"{model} (virtual)" if virtual and "(virtual)" not in model else model
