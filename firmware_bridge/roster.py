"""Which devices are connected and in which state: noticed without opening them, probed once when new and
idle.

Every change is one of the four of `firmware_bridge.model.Device`, and is published.
"""

import asyncio
import contextlib
import logging
import weakref
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from firmware_bridge import errors
from firmware_bridge.errors import BridgeError
from firmware_bridge.faults import clean_detail
from firmware_bridge.lane import Lane
from firmware_bridge.makers import MAKERS
from firmware_bridge.model import (
    Deadlines,
    Device,
    DeviceEvent,
    DeviceState,
    Endpoint,
    Listing,
    Sighting,
)
from firmware_bridge.presence.holders import FindHolder, Turn, holder_of, no_turns
from firmware_bridge.record import (
    Clock,
    DeviceRecord,
    Prober,
    Use,
    is_working,
)
from multisig import Fingerprint

MakeLane = Callable[[Endpoint], Lane]


# A stream this far behind is not being read; it loses its oldest events.
_MAX_WAITING: Final = 1024


class EventHub:
    """Passes each event to every stream that is still referenced."""

    def __init__(self) -> None:
        self._streams: weakref.WeakSet[asyncio.Queue[DeviceEvent | None]] = weakref.WeakSet()
        self._closed = False

    def stream(self) -> AsyncIterator[DeviceEvent]:
        """Every event from now on, until the bridge closes."""
        waiting: asyncio.Queue[DeviceEvent | None] = asyncio.Queue(_MAX_WAITING)
        self._streams.add(waiting)
        if self._closed:
            waiting.put_nowait(None)
        return _events(waiting)

    def publish(self, event: DeviceEvent | None) -> None:
        for waiting in tuple(self._streams):
            if waiting.full():
                waiting.get_nowait()
            waiting.put_nowait(event)

    def close(self) -> None:
        self._closed = True
        self.publish(None)


async def _events(waiting: asyncio.Queue[DeviceEvent | None]) -> AsyncIterator[DeviceEvent]:
    while (event := await waiting.get()) is not None:
        yield event


_log = logging.getLogger(__name__)


class BoundedListing:
    """One listing of devices. If it fails or takes longer than `seconds`, the last result stays.

    hidapi and libusb can hang on a broken device, and a program may run out of descriptors. Neither means
    that a device has gone.
    """

    def __init__(self, listing: Listing, seconds: float) -> None:
        self._listing = listing
        self._seconds = seconds
        self._asking: asyncio.Future[Sequence[Sighting]] | None = None
        self._last: Sequence[Sighting] = ()
        self._trouble: str | None = None

    async def look(self, in_use: Collection[Endpoint]) -> Sequence[Sighting]:
        """The listing's result; if it fails or is late, its last result."""
        # A late call is awaited again, not repeated: it may block in a thread, which cannot be ended.
        asking = self._asking = self._asking or asyncio.ensure_future(self._listing(in_use))
        try:
            async with asyncio.timeout(self._seconds):
                await asyncio.wait([asking])
        except TimeoutError:
            self._note("it takes too long")
            return self._last
        except asyncio.CancelledError:
            self.close()
            raise
        self._asking = None
        return self._take(asking)

    def close(self) -> None:
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.cancel()

    def _take(self, asking: asyncio.Future[Sequence[Sighting]]) -> Sequence[Sighting]:
        try:
            self._last = asking.result()
        except Exception as error:  # noqa: BLE001 - a maker's or a caller's code: a bug there must not end the watching
            self._note(f"{type(error).__name__}: {error}")
        else:
            self._note(None)
        return self._last

    def _note(self, trouble: str | None) -> None:
        if trouble is not None and trouble != self._trouble:
            _log.warning("connected devices could not be listed; the last list stays: %s", trouble)
        self._trouble = trouble


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
        turn: Turn = no_turns,
    ) -> None:
        self.hub = EventHub()
        self._lookouts = [BoundedListing(listing, deadlines.probe) for listing in listings]
        self._make_lane = make_lane
        self._clock = clock
        self._prober = Prober(deadlines, clock, find_holder, turn, self._move)
        self._turn = turn
        self.records: dict[str, DeviceRecord] = {}
        self._uses: defaultdict[str, set[Use]] = defaultdict(set)
        self._looking = asyncio.Lock()
        self.closed = False

    def devices(self) -> tuple[Device, ...]:
        """The connected devices, as last seen."""
        present = (record.device for record in self.records.values())
        return tuple(device for device in present if device.state != DeviceState.ABSENT)

    async def look(self) -> None:
        """Notice which devices came and which left. None is opened."""
        async with self._looking:
            in_use = [record.device.endpoint for record in self.records.values() if is_working(record)]
            seen = [await lookout.look(in_use) for lookout in self._lookouts]
            sightings = {s.endpoint.device_id: s for listed in seen for s in listed}
            for device_id, sighting in sightings.items():
                self._notice(device_id, sighting)
            for device_id, record in self.records.items():
                if device_id not in sightings:
                    self._lose(record)

    def start_probes(self) -> list[asyncio.Task[None]]:
        """Probe every device that is new and idle, each in its own worker; the tasks never raise."""
        if self.closed:
            return []
        for record in self.records.values():
            if self._prober.wants(record):
                self._move(record, record.device.at_work(DeviceState.PROBING))
                record.probe = asyncio.create_task(self._prober.probe(record))
        return [record.probe for record in self.records.values() if record.probe is not None]

    @contextlib.asynccontextmanager
    async def using(self, device_id: str) -> AsyncIterator[DeviceRecord]:
        """The device for one operation: busy meanwhile, then in the state that follows from the outcome.

        :raises Busy: another operation of this program has it.
        :raises Disconnected: it is not connected.
        :raises Cancelled: the roster was closed.
        """
        self._require_open()
        use = Use()
        self._uses[device_id].add(use)
        try:
            async with self._using(await self._find(device_id), use) as record:
                yield record
        finally:
            self._uses[device_id].remove(use)
            if not self._uses[device_id]:
                del self._uses[device_id]

    @contextlib.asynccontextmanager
    async def _using(self, record: DeviceRecord, use: Use) -> AsyncIterator[DeviceRecord]:
        if record.in_use:
            raise errors.Busy("Another operation of this program is running on the device.")
        record.use, record.perhaps_shared, record.held, record.fruitless = use, False, False, 0
        try:
            if record.probe is not None:
                # The probe may not hold the lane's lock yet.
                await asyncio.wait([record.probe])
            async with record.lane.lock:
                self._require_usable(record)
                with self._turn(record.device.endpoint):
                    before = record.device
                    self._move(
                        record,
                        before.at_work(DeviceState.BUSY, "In use here: answer what it asks."),
                    )
                    async with self._settling(record, before):
                        yield record
        finally:
            record.use = None

    def identify(self, record: DeviceRecord, fingerprint: Fingerprint) -> None:
        """Remember the device's fingerprint, unless another device has taken its place."""
        if record.use is None or not record.use.lost:
            record.device = replace(record.device, fingerprint=fingerprint)

    async def cancel(self, device_id: str) -> None:
        """Cancel the operation on the device, also between two calls and while it waits for the device or a
        probe.
        """
        uses = self._uses.get(device_id, set())
        for use in uses:
            use.cancelled = True
        record = self.records.get(device_id)
        # A probe that no operation waits for goes on.
        if uses and record is not None:
            await record.lane.cancel()

    async def close(self) -> None:
        """End every probe, operation (as `cancel` does) and worker; no other can be started."""
        self.closed = True
        for lookout in self._lookouts:
            lookout.close()
        probes = [record.probe for record in self.records.values() if record.probe is not None]
        for probe in probes:
            probe.cancel()
        await asyncio.gather(*probes, return_exceptions=True)
        await asyncio.gather(*(self.cancel(device_id) for device_id in tuple(self._uses)))
        for record in self.records.values():
            record.lane.release()
        self.hub.close()

    @contextlib.asynccontextmanager
    async def _settling(self, record: DeviceRecord, before: Device) -> AsyncIterator[None]:
        state, detail = DeviceState.PRESENT, None
        try:
            yield
            state = DeviceState.READY
        except BridgeError as outcome:
            state, detail = await self._after(record, outcome, before)
            outcome.hint = MAKERS[record.device.family].hints.get(type(outcome), outcome.hint)
            if record.held and isinstance(outcome, errors.Busy | errors.NoPermission):
                raise errors.Busy(detail) from outcome
            raise
        finally:
            # The device may have been unplugged, and its absence noticed, meanwhile.
            if record.device.state == DeviceState.BUSY:
                record.probed_at = self._clock()
                self._move(record, record.device.found(state, detail))

    async def _after(
        self, record: DeviceRecord, outcome: BridgeError, before: Device
    ) -> tuple[DeviceState, str | None]:
        if outcome.perhaps_unheard:
            return before.state, before.detail
        if outcome.state == DeviceState.READY:
            return outcome.state, None
        return await self._prober.explain(record, outcome.state, outcome.words)

    async def _find(self, device_id: str) -> DeviceRecord:
        record = self.records.get(device_id)
        if record is None or record.device.state == DeviceState.ABSENT:
            await self.look()
            record = self.records.get(device_id)
        if record is None:
            # What a caller passed as an id, fit for an error message.
            shown = clean_detail(repr(device_id))
            raise errors.Disconnected(f"No device with the id {shown} has been connected.")
        if record.device.state == DeviceState.ABSENT:
            raise errors.Disconnected
        return record

    def _require_usable(self, record: DeviceRecord) -> None:
        """After the wait for a probe, the device may have gone, or turned out to be unsupported."""
        self._require_open()
        record.require_wanted()
        match record.device.state:
            case DeviceState.ABSENT:
                raise errors.Disconnected
            case DeviceState.UNSUPPORTED:
                raise errors.Unsupported(record.device.detail)
            case DeviceState.NO_PERMISSION if not record.sighting.permitted:
                raise errors.NoPermission(record.device.detail)
            case _:
                return

    def _require_open(self) -> None:
        if self.closed:
            raise errors.Cancelled("The bridge was closed.")

    def _notice(self, device_id: str, sighting: Sighting) -> None:
        record = self.records.get(device_id)
        if record is None:
            device = Device.at(sighting.endpoint, sighting.model)
            record = DeviceRecord(device, self._make_lane(sighting.endpoint), sighting)
            self.records[device_id] = record
        if record.sighting.incarnation != sighting.incarnation:
            self._lose(record)
        record.sighting = sighting
        if record.device.state == DeviceState.ABSENT:
            record.probed_at, record.perhaps_shared, record.held, record.fruitless = None, False, False, 0
            # Another model may be plugged in there now.
            record.device = record.device.called(sighting.model)
            self._move(record, record.device.appeared())
        if record.device.state == DeviceState.PRESENT:
            self._note_obstacle(record, sighting)

    def _note_obstacle(self, record: DeviceRecord, sighting: Sighting) -> None:
        if sighting.unsupported is not None:
            self._move(record, record.device.found(DeviceState.UNSUPPORTED, sighting.unsupported))
        elif not sighting.permitted:
            rules = MAKERS[record.device.family].udev_rules
            words = f"{errors.NoPermission.sentence} Install the rules file {rules}."
            self._move(record, record.device.found(DeviceState.NO_PERMISSION, words))

    def _lose(self, record: DeviceRecord) -> None:
        if record.device.state != DeviceState.ABSENT:
            record.lane.abort(errors.Disconnected())
            if record.use is not None:
                record.use.lost = True
            if record.probe is not None:
                # Its result would belong to the device that has left.
                record.probe.cancel()
                record.probe = None
            self._move(record, record.device.left())

    def _move(self, record: DeviceRecord, device: Device) -> None:
        old, record.device = record.device.state, device
        if record.device.state == DeviceState.ABSENT and not MAKERS[record.device.family].keeps_session:
            # The device was without power: it has forgotten the passphrase.
            record.lane.session = None
        if record.device.state != old:
            event = DeviceEvent(record.device.id, old, record.device.state, record.device)
            self.hub.publish(event)
