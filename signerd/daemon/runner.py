"""Does what is to be done: it records first, then acts, and records the result.

What it is follows from the stored records (``todo``), so that a start does what a change does. A journal that
cannot be written ends the daemon: nothing is signed then. A bug in the device library is reported, and
retried with back-off.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from custody.common.pace import Backoff
from custody.common.text import said
from firmware_bridge import DeviceState
from multisig import Fingerprint
from signerd.account.platform import PlatformClient
from signerd.core import events
from signerd.core.events import AskPerson, JudgeAgain, News, Notify, ReadKeys, Step
from signerd.core.states import State
from signerd.core.values import Record, Work, todo
from signerd.daemon.devices import Devices, name_of, screen_of, teller
from signerd.errors import DeviceError, IllegalEvent, SignerdError, UnknownProposal
from signerd.feed import WAITS, Feed, Troubles, supervise, unforeseen
from signerd.journal import Journal
from signerd.journal.proposals import RECONSIDERED
from signerd.runtime import DaemonDependencies

_log = logging.getLogger(__name__)

# The least pause before a device that was not ready is asked again.
DEVICE_PAUSE_SECONDS = 2.0
# While something waits for a device, its state is polled as well, in case an event was missed.
LOOK_AGAIN_SECONDS = 5.0
# What a rule about a day refused is judged again each minute.
TIME_PASSES_SECONDS = 60.0
# Deadlines of months are checked once a day.
OVERDUE_SECONDS = 86_400.0
# The pauses between tries after a temporary refusal. A freeze may last minutes or days; each try
# is an entry in the platform's audit log. The first one is unique, which tests use.
KEPT_FIRST_SECONDS, KEPT_LONGEST_SECONDS = 96.0, 900.0
# Signing that takes longer counts as late: the platform is looked at again before submitting.
AT_THE_DEVICE_USUALLY = timedelta(minutes=10)
DEVICES, JUDGING = "devices", "judging"
UNFITTING = "The platform's answer does not fit what it showed before. Your signature may be used:"


@dataclass
class Runner:
    """One event loop, one journal. ``run`` ends only by cancellation or by an error that must stop the
    daemon.

    ``check_before_sending`` is set by the wiring: whether a delayed signature may still be submitted.
    """

    check_before_sending: Callable[[str], Awaitable[bool]] = field(init=False)
    journal: Journal
    devices: Devices
    platform: PlatformClient
    feed: Feed
    troubles: Troubles
    signed_in: asyncio.Event
    keys_due: asyncio.Event
    outside: DaemonDependencies
    # Set once the whole journal was found sound.
    checked: asyncio.Event = field(default_factory=asyncio.Event)
    # Look at the devices again.
    look: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _judging_due: asyncio.Event = field(default_factory=asyncio.Event)
    # By master key: two devices with one seed must not be asked for the same payment at once (S6).
    _at_device: dict[Fingerprint, asyncio.Task[None]] = field(default_factory=dict)
    _on_the_way: dict[tuple[str, Work], asyncio.Task[None]] = field(default_factory=dict)
    # Signed just now, while the platform was heard: what is not among them is submitted after a look at the
    # platform.
    _fresh: set[str] = field(default_factory=set)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self.journal.restart()
            for what, watch in (
                ("Looking for devices", self.devices.bridge.watch),
                ("Listening to devices", self._watch_events),
            ):
                tasks.create_task(supervise(DEVICES, what, watch, self.troubles, self.outside))
            tasks.create_task(self._ask_again())
            tasks.create_task(self._match_devices(tasks))
            tasks.create_task(self._deliver(tasks))
            tasks.create_task(self._judge_in_turn())
            tasks.create_task(self._notice_time())
            tasks.create_task(self._notice_ends())

    async def _ask_again(self) -> None:
        """At the start: what waits for the person."""
        for psbt_id in self.journal.ids((State.WAITING_PERSON, State.INTERRUPTED)):
            with contextlib.suppress(UnknownProposal):  # Forgotten meanwhile.
                self.announce((self.journal.ask_person(psbt_id),))
            await asyncio.sleep(0)

    async def _judge_in_turn(self) -> None:
        """Judge again what waits for the person, one proposal after the other, at the start (the configured
        limits may have changed) and whenever it is due.
        """
        while True:
            self._judging_due.clear()
            unjudged = {}
            for psbt_id in self.journal.ids(RECONSIDERED):
                try:
                    self.announce(self.journal.reconsider(psbt_id))
                except SignerdError:
                    raise
                except Exception:  # noqa: BLE001 - a proposal that breaks our code must not stop the others
                    _log.exception("%s could not be judged", psbt_id)
                    unjudged[psbt_id] = unforeseen(f"Judging the proposal {psbt_id}")
                await asyncio.sleep(0)
            self.troubles.report(JUDGING, unjudged)
            await self._judging_due.wait()

    async def _notice_time(self) -> None:
        """Review again by time alone: a rule may allow in the morning what it refused at night."""
        while True:
            await self.outside.sleep(TIME_PASSES_SECONDS)
            if self.journal.rules.depend_on_time:
                self._judging_due.set()

    async def _notice_ends(self) -> None:
        while True:
            for psbt_id in self.journal.overdue():
                self.decide(psbt_id, events.Lapsed())
                await asyncio.sleep(0)
            await self.outside.sleep(OVERDUE_SECONDS)

    # --- decisions and news ---------------------------------------------------------------------------------

    def decide(self, psbt_id: str, event: events.ProposalEvent) -> Step:
        """Record an event, and announce its news. Raises what the engine and the journal raise."""
        step = self.journal.decide(psbt_id, event)
        self.announce(step.news)
        return step

    def tell(self, before: Record | None, after: Record) -> None:
        """Announce a change of a proposal, also where only the platform's state changed, and do what it asks
        for.
        """
        self._changed.set()
        if after.state is State.WAITING_DEVICE:
            self.look.set()
        had, has = None if before is None else before.snapshot.trouble, after.snapshot.trouble
        if has is not None and (had is None or (had.kind, had.txid) != (has.kind, has.txid)):
            self.feed.add(after.psbt_id, "trouble", f"By the platform's word: {has.sentence}")
        elif had is not None and has is None:
            self.feed.add(after.psbt_id, "info", "The platform tells of no trouble with it any more.")
        known = () if before is None else before.snapshot.declines
        if before is not None and (who := [one.by for one in after.snapshot.declines if one not in known]):
            self.feed.add(after.psbt_id, "info", f"By the platform's word, declined by {', '.join(who)}.")
        if before is None or before.state is not after.state:
            self.feed.add(after.psbt_id, "state", after.state.value)
            return
        was, now = before.snapshot, after.snapshot
        if (was.collected, was.confirmations) != (now.collected, now.confirmations):
            words = f"Signatures: {now.collected} of {now.required}; confirmations: {now.confirmations}."
            self.feed.add(after.psbt_id, "info", words)

    def announce(self, news: Iterable[News]) -> None:
        for one in news:
            match one:
                case AskPerson(psbt_id, screen):
                    self.feed.add(psbt_id, "ask", f"{WAITS} {screen}".strip())
                case Notify(psbt_id, level, sentence):
                    self.feed.add(psbt_id, level.value, sentence)
                case ReadKeys():
                    self.keys_due.set()
                case JudgeAgain():
                    self._judging_due.set()

    # --- devices --------------------------------------------------------------------------------------------

    async def _watch_events(self) -> None:
        # There are no events of changes before the stream began.
        self.look.set()
        async for event in self.devices.bridge.events():
            # While it is asked, the person looks at it: only parts that show its state hear of that.
            if DeviceState.BUSY in {event.old, event.new}:
                self.feed.add(event.device_id, "state", event.new)
            else:
                self.feed.add(event.device_id, "device", f"{name_of(event.device)} is {event.new}.")
            self.look.set()

    async def _match_devices(self, tasks: asyncio.TaskGroup) -> None:
        """Ask each device for its approved proposals as soon as it is ready, one at a time."""
        pause = Backoff(self.outside.jitter)
        await self.checked.wait()
        while True:
            self.look.clear()
            waiting = self.journal.records([State.WAITING_DEVICE])
            try:
                await self._record_screens()
                for record in waiting:
                    await self._ask_if_ready(tasks, record.psbt_id)
            except DeviceError as error:
                self.troubles.report(DEVICES, {DEVICES: said(error)})
                await self.outside.sleep(pause.next())
                continue
            self.troubles.report(DEVICES, {})
            pause.reset()
            try:
                # A new proposal for a device sets the event: sleep until then.
                async with asyncio.timeout(LOOK_AGAIN_SECONDS if waiting else None):
                    await self.look.wait()
            except TimeoutError:
                continue

    async def _record_screens(self) -> None:
        """Record what our devices' screens show: the person is told before the device is asked."""
        for fingerprint in {own.key.fingerprint for own in self.journal.own_keys()}:
            device = await self.devices.ready(fingerprint)
            if device is not None:
                self.announce(self.journal.see_screen(fingerprint, screen_of(device)))

    async def _ask_if_ready(self, tasks: asyncio.TaskGroup, psbt_id: str) -> None:
        try:
            record = self.journal.record(psbt_id)
        except UnknownProposal:
            return  # Ended and forgotten meanwhile.
        signing = self.journal.signing(record.snapshot)
        if todo(record) is not Work.ASK_DEVICE or signing is None:
            return
        fingerprint = signing.key.origin.fingerprint
        device = await self.devices.ready(fingerprint)
        if device is None or fingerprint in self._at_device:
            return
        # Two devices may have one seed: record the screen of this one.
        self.announce(self.journal.see_screen(fingerprint, screen_of(device)))
        self._at_device[fingerprint] = tasks.create_task(self._sign(psbt_id, device.id, fingerprint))

    async def _sign(self, psbt_id: str, device_id: str, fingerprint: Fingerprint) -> None:
        try:
            try:
                record = self.decide(psbt_id, events.DeviceFound(device_id)).record
            except (IllegalEvent, UnknownProposal):
                return  # Declined, ended or forgotten meanwhile.
            signing = self.journal.signing(record.snapshot)
            if record.state is not State.SIGNING or signing is None:
                return  # The approval is no longer valid.
            self.feed.add(psbt_id, "progress", "Look at your device.")
            began = self.journal.now()
            progress = teller(self.feed, psbt_id)
            outcome = await self.devices.sign(device_id, record.snapshot.psbt, signing, progress)
            record = self.decide(psbt_id, outcome).record
            # By wall-clock time: the monotonic clock may stop while the machine sleeps.
            if record.state is State.SIGNED and self.journal.now() - began <= AT_THE_DEVICE_USUALLY:
                self._fresh.add(psbt_id)
            if record.state is State.WAITING_DEVICE:
                self.feed.add(psbt_id, "attention", record.reason)
                await self.outside.sleep(DEVICE_PAUSE_SECONDS)
        finally:
            del self._at_device[fingerprint]
            self.look.set()

    # --- delivery -------------------------------------------------------------------------------------------

    async def _deliver(self, tasks: asyncio.TaskGroup) -> None:
        """Begin to deliver each signature and decline that the platform is still to get; a decline does not
        wait for a kept signature.
        """
        while True:
            self._changed.clear()
            for psbt_id in self.journal.to_deliver():
                work = todo(self.journal.record(psbt_id))
                if work is not None and (psbt_id, work) not in self._on_the_way:
                    delivered = self._deliver_until_answered(psbt_id, work)
                    self._on_the_way[psbt_id, work] = tasks.create_task(delivered)
                await asyncio.sleep(0)
            await self._changed.wait()

    async def _deliver_until_answered(self, psbt_id: str, work: Work) -> None:
        """Deliver the signature or decline of the record, with retries, until the platform has answered.

        Where time has passed since it was signed, ``check_before_sending`` runs right before the try: the
        machine may have slept. A kept signature waits before each try, also after a restart.
        """
        soon, later = (
            Backoff(self.outside.jitter),
            Backoff(self.outside.jitter, KEPT_FIRST_SECONDS, KEPT_LONGEST_SECONDS),
        )
        late = psbt_id not in self._fresh
        self._fresh.discard(psbt_id)
        try:
            while True:
                late = late or not self.signed_in.is_set()
                await self.signed_in.wait()
                if self._is_kept(psbt_id):
                    await self.outside.sleep(later.next())
                if work is Work.SUBMIT and late and not await self.check_before_sending(psbt_id):
                    await self.outside.sleep(soon.next())
                    continue
                if todo(self.journal.record(psbt_id)) is not work or await self._delivered(psbt_id, work):
                    return
                late = True
                if not self._is_kept(psbt_id):
                    await self.outside.sleep(soon.next())
        finally:
            del self._on_the_way[psbt_id, work]

    def _is_kept(self, psbt_id: str) -> bool:
        return self.journal.record(psbt_id).state is State.KEPT

    async def _delivered(self, psbt_id: str, work: Work) -> bool:
        if work is Work.TELL_DECLINE:
            delivered = await self.platform.decline(self.journal.record(psbt_id))
            if delivered is not None:
                self.decide(psbt_id, delivered)
            return delivered is not None
        outcome = await self.platform.submit(self.decide(psbt_id, events.SubmitStarted()).record)
        try:
            self.decide(psbt_id, outcome)
        except IllegalEvent as error:
            # The platform's state changed meanwhile; its answer must not end the daemon.
            self.feed.add(psbt_id, events.Level.ALARM.value, f"{UNFITTING} {error}.")
        return not isinstance(outcome, events.SubmitUndelivered | events.SubmitKept)
