"""Performs what the core asks: records first, acts then, and records what came of it.

Three kinds of tasks beside each other: following the platform, asking devices, delivering what is decided.
Each takes up after a restart exactly where the journal says. A journal that cannot be written ends them all:
then nothing is signed any more. A mistake in the device library ends none: it is told, and what failed is
tried again, later each time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import TypeVar

from custody.pace import Backoff
from multisig import Fingerprint
from signerd.account.platform import Platform
from signerd.core import events
from signerd.core.events import (
    AskPerson,
    Effect,
    ExportPsbt,
    FindDevice,
    Notify,
    ReadKeys,
    SignOnDevice,
    Step,
    Submit,
    SubmitDecline,
)
from signerd.core.states import State
from signerd.core.text import plain, said
from signerd.core.values import Record
from signerd.daemon.devices import Devices, screen_of, teller
from signerd.errors import DeviceError, IllegalEvent, UnknownProposal
from signerd.feed import WAITS, Feed, Supervisor, Troubles
from signerd.journal import Journal
from signerd.journal.journal import RECONSIDERED

E = TypeVar("E", SignOnDevice, ExportPsbt)
Sleep = Callable[[float], Awaitable[None]]
# After a device said that it was not ready: its own state decides when it is asked again, but never at once.
DEVICE_PAUSE_SECONDS = 2.0
# While something waits for a device, a change of its state that no event told of is noticed after this long.
LOOK_AGAIN_SECONDS = 5.0
# Rules about hours and windows count in minutes.
TIME_PASSES_SECONDS = 60.0
# What is kept for a month, or followed for three, need not end to the hour.
OVERDUE_SECONDS = 86_400.0
# Of what the platform refuses for now. A freeze may last minutes, an advisory weeks; each try costs the
# platform an entry of its audit log. No other pause is as long as the first, so that a test can tell it.
KEPT_FIRST_SECONDS, KEPT_LONGEST_SECONDS = 96.0, 900.0
# A person who compares a long list on the screen takes minutes.
AT_THE_DEVICE_USUALLY = timedelta(minutes=10)
DEVICES = "devices"
UNFITTING = "The platform's answer does not fit what it showed before. Your signature may be used:"


class Runner:
    """One loop, one journal. ``run`` ends only by cancellation or by an error that must stop the daemon.

    ``check_before_sending`` is set by who puts it together: it looks at the platform before a signature is
    sent late, and says whether that may go.
    """

    check_before_sending: Callable[[str], Awaitable[bool]]

    def __init__(
        self,
        journal: Journal,
        devices: Devices,
        platform: Platform,
        feed: Feed,
        troubles: Troubles,
        *,
        signed_in: asyncio.Event,
        keys_due: asyncio.Event,
        jitter: Callable[[], float],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.journal = journal
        self.feed = feed
        self._devices = devices
        self._platform = platform
        self._signed_in = signed_in
        self._keys_due = keys_due
        self._jitter = jitter
        self._sleep = sleep
        self._troubles = troubles
        self._supervisor = Supervisor(troubles, jitter, sleep)
        self._look = asyncio.Event()
        # By master key: two devices of one seed must not be asked for the same payment at once (S6).
        self._at_device: dict[Fingerprint, asyncio.Task[None]] = {}
        self._on_the_way: dict[tuple[str, type[Submit | SubmitDecline]], asyncio.Task[None]] = {}
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self.perform(self.journal.restart(), late=True)
            # The configured limits may be others than those it was judged by.
            self.perform(self.journal.reconsider())
            watch = self._devices.bridge.watch
            tasks.create_task(self._supervisor.supervise(DEVICES, "Looking for devices", watch))
            tasks.create_task(self._supervisor.supervise(DEVICES, "Listening to devices", self._hear_devices))
            tasks.create_task(self._match_devices())
            tasks.create_task(self._notice_time())
            tasks.create_task(self._notice_ends())

    async def _notice_time(self) -> None:
        """What a rule refused at night may be allowed in the morning, without any event."""
        while True:
            await self._sleep(TIME_PASSES_SECONDS)
            if not self.journal.rules.depend_on_time:
                continue
            for psbt_id in self.journal.ids(RECONSIDERED):
                # Other requests are served between two of them.
                if self.journal.is_reconsidered(psbt_id):
                    self.perform(self.journal.decide(psbt_id, events.Reconsidered()).effects)
                await asyncio.sleep(0)

    async def _notice_ends(self) -> None:
        while True:
            for psbt_id in self.journal.overdue():
                self.decide(psbt_id, events.Lapsed())
                await asyncio.sleep(0)
            await self._sleep(OVERDUE_SECONDS)

    # --- effects --------------------------------------------------------------------------------------------

    def decide(self, psbt_id: str, event: events.Event, *, late: bool = False) -> Step:
        """Record an event and perform what follows. Raises what the engine and the journal raise."""
        step = self.journal.decide(psbt_id, event)
        self.perform(step.effects, late=late)
        return step

    def tell(self, before: Record | None, after: Record) -> None:
        """A watcher sees that a proposal moved, also where only the platform's word changed."""
        self._tell_trouble(before, after)
        if before is None or before.state is not after.state:
            self.feed.add(after.psbt_id, "state", after.state.value)
            return
        was, now = before.snapshot, after.snapshot
        if (was.collected, was.confirmations) != (now.collected, now.confirmations):
            words = f"Signatures: {now.collected} of {now.required}; confirmations: {now.confirmations}."
            self.feed.add(after.psbt_id, "info", words)

    def _tell_trouble(self, before: Record | None, after: Record) -> None:
        was, now = None if before is None else before.snapshot.trouble, after.snapshot.trouble
        if now is not None and (was is None or (was.kind, was.txid) != (now.kind, now.txid)):
            self.feed.add(after.psbt_id, "trouble", f"By the platform's word: {now.sentence}")
        elif was is not None and now is None:
            self.feed.add(after.psbt_id, "info", "The platform tells of no trouble with it any more.")

    def perform(self, effects: Iterable[Effect], *, late: bool = False) -> None:
        """``late``: of what was decided before this start, or while the machine may have slept."""
        for effect in effects:
            match effect:
                case AskPerson(psbt_id, screen):
                    self.feed.add(psbt_id, "ask", f"{WAITS} {screen}".strip())
                case FindDevice():
                    self._look.set()
                case Submit() | SubmitDecline():
                    self._deliver(effect, late=late)
                case Notify(psbt_id, level, sentence):
                    self.feed.add(psbt_id, level.value, plain(sentence))
                case ReadKeys():
                    self._keys_due.set()
                case SignOnDevice():
                    raise AssertionError("a device is asked by the task that found it, not here")
                case ExportPsbt():
                    raise AssertionError("a PSBT is given out by the call that asked for it, not here")

    # --- devices --------------------------------------------------------------------------------------------

    async def _hear_devices(self) -> None:
        # What changed before this stream began, no event of it tells.
        self._look.set()
        async for event in self._devices.bridge.events():
            self.feed.add(event.device_id, "device", f"{event.device.model} is {event.new}.")
            self._look.set()

    async def _match_devices(self) -> None:
        """Give every approved proposal to its device as soon as that is ready, one at a time for
        each device.
        """
        pause = Backoff(self._jitter)
        while True:
            self._look.clear()
            waiting = self.journal.records([State.WAITING_DEVICE])
            try:
                await self._see_screens()
                for record in waiting:
                    await self._offer(record.psbt_id)
            except DeviceError as error:
                self._troubles.report(DEVICES, {DEVICES: said(error)})
                await self._sleep(pause.next())
                continue
            self._troubles.report(DEVICES, {})
            pause.reset()
            try:
                # What comes to wait for a device is told: until then no task need wake.
                async with asyncio.timeout(LOOK_AGAIN_SECONDS if waiting else None):
                    await self._look.wait()
            except TimeoutError:
                continue

    def look(self) -> None:
        """Look at the devices anew: which of them hold our key has changed."""
        self._look.set()

    async def _see_screens(self) -> None:
        """How much of a token's data a device shows is told when the person is asked, before the
        device is.
        """
        for fingerprint in {own.key.fingerprint for own in self.journal.own_keys()}:
            device = await self._devices.ready(fingerprint)
            if device is not None:
                self.perform(self.journal.see_screen(fingerprint, screen_of(device)))

    async def _offer(self, psbt_id: str) -> None:
        try:
            (find,) = self.journal.due_effects_of(psbt_id) or (None,)
        except UnknownProposal:
            return  # Judged anew, ended and forgotten while another one's device was looked for.
        if not isinstance(find, FindDevice):
            return
        fingerprint = find.fingerprint
        device = await self._devices.ready(fingerprint)
        if device is None or fingerprint in self._at_device:
            return
        assert self._tasks is not None, "only a task of the group comes here"
        # Two devices may hold one seed: the last look is at what this one shows.
        self.perform(self.journal.see_screen(fingerprint, screen_of(device)))
        task = self._tasks.create_task(self._sign(psbt_id, device.id, fingerprint))
        self._at_device[fingerprint] = task

    async def _sign(self, psbt_id: str, device_id: str, fingerprint: Fingerprint) -> None:
        try:
            asked = self.decide_to_ask(psbt_id, device_id)
            if asked is None:
                return
            self.feed.add(psbt_id, "progress", "Look at your device.")
            began = self.journal.now()
            outcome = await self._devices.sign(asked, teller(self.feed, psbt_id))
            # By the clock of the day: the loop's may stand still while the machine sleeps.
            step = self.decide(psbt_id, outcome, late=self.journal.now() - began > AT_THE_DEVICE_USUALLY)
            if step.record.state is State.WAITING_DEVICE:
                self.feed.add(psbt_id, "attention", step.record.reason)
                await self._sleep(DEVICE_PAUSE_SECONDS)
        finally:
            del self._at_device[fingerprint]
            self._look.set()

    def decide_to_ask(self, psbt_id: str, device_id: str) -> SignOnDevice | None:
        """Record that the device is asked; None where the last look says that it must not be."""
        try:
            step = self.journal.decide(psbt_id, events.DeviceFound(device_id))
        except (IllegalEvent, UnknownProposal):
            return None  # Declined, ended or forgotten between the look and now.
        return self._perform_others(step, SignOnDevice)

    def decide_to_export(self, psbt_id: str, event: events.Exported) -> ExportPsbt | None:
        """Record that it is given out; None where the last look says that it must not be.

        Raises what the engine and the journal raise.
        """
        return self._perform_others(self.journal.decide(psbt_id, event), ExportPsbt)

    def _perform_others(self, step: Step, kind: type[E]) -> E | None:
        """The effect that its caller performs, where the step has it; the rest is performed."""
        kept = None
        for effect in step.effects:
            if isinstance(effect, kind):
                kept = effect
            else:
                self.perform([effect])
        return kept

    # --- delivery -------------------------------------------------------------------------------------------

    def _deliver(self, effect: Submit | SubmitDecline, *, late: bool) -> None:
        # Before ``run`` there are no tasks: it begins with all that stands in the journal. A no does not wait
        # behind a signature that is kept.
        way = effect.psbt_id, type(effect)
        if self._tasks is None or way in self._on_the_way:
            return
        self._on_the_way[way] = self._tasks.create_task(self._carry(*way, late=late))

    async def _carry(self, psbt_id: str, kind: type[Submit | SubmitDecline], *, late: bool) -> None:
        """Deliver what the record holds, again and again, until the platform has answered.

        ``late``: time has passed since it was signed. The platform is looked at right before each such try:
        the pause may have run out while the machine slept. What is kept waits before each try, signed in,
        also after a restart.
        """
        soon, later = Backoff(self._jitter), Backoff(self._jitter, KEPT_FIRST_SECONDS, KEPT_LONGEST_SECONDS)
        try:
            while True:
                late = late or not self._signed_in.is_set()
                await self._signed_in.wait()
                if self._is_kept(psbt_id):
                    await self._sleep(later.next())
                if kind is Submit and late and not await self.check_before_sending(psbt_id):
                    await self._sleep(soon.next())
                    continue
                effect = self._to_deliver(psbt_id, kind)
                if effect is None or await self._delivered(effect):
                    return
                late = True
                if not self._is_kept(psbt_id):
                    await self._sleep(soon.next())
        finally:
            del self._on_the_way[psbt_id, kind]

    def _is_kept(self, psbt_id: str) -> bool:
        return self.journal.record(psbt_id).state is State.KEPT

    def _to_deliver(self, psbt_id: str, kind: type[Submit | SubmitDecline]) -> Submit | SubmitDecline | None:
        """What stands now: a signature may have become needless, or a decline been delivered, while we
        waited.
        """
        for effect in self.journal.due_effects_of(psbt_id):
            if isinstance(effect, kind):
                return effect
        return None

    async def _delivered(self, effect: Submit | SubmitDecline) -> bool:
        if isinstance(effect, SubmitDecline):
            told = await self._platform.decline(effect)
            if told is not None:
                self.decide(effect.psbt_id, told)
            return told is not None
        self.decide(effect.psbt_id, events.SubmitStarted())
        outcome = await self._platform.submit(effect)
        self._record_outcome(effect.psbt_id, outcome)
        return not isinstance(outcome, events.SubmitUndelivered | events.SubmitKept)

    def _record_outcome(self, psbt_id: str, outcome: events.Event) -> None:
        try:
            step = self.journal.decide(psbt_id, outcome)
        except IllegalEvent as error:
            # Whatever the platform showed meanwhile: no answer of its ends the daemon.
            self.feed.add(psbt_id, events.Level.ALARM.value, f"{UNFITTING} {error}.")
            return
        # A signature that goes back to *signed* asks to be submitted: this very task does that, after its
        # pause.
        self.perform(effect for effect in step.effects if not isinstance(effect, Submit))
