"""Performs the effects of the core: records first, then acts, and records the result.

Tasks ask devices and deliver decisions. After a restart each resumes where the journal says. A journal that
cannot be written ends the daemon: nothing is signed then. A bug in the device library is reported, and
retried with back-off.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from custody.common.pace import Backoff
from multisig import Fingerprint
from signerd.account.platform import PlatformClient
from signerd.core import events
from signerd.core.events import (
    AskPerson,
    Effect,
    ExportPsbt,
    FindDevice,
    JudgeAgain,
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
from signerd.errors import DeviceError, IllegalEvent, SignerdError, UnknownProposal
from signerd.feed import WAITS, Feed, TaskSupervisor, Troubles, unforeseen
from signerd.journal import Journal
from signerd.journal.journal import RECONSIDERED

_log = logging.getLogger(__name__)

E = TypeVar("E", SignOnDevice, ExportPsbt)
Sleep = Callable[[float], Awaitable[None]]
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
    jitter: Callable[[], float]
    sleep: Sleep = asyncio.sleep
    # Set once the whole journal was found sound.
    checked: asyncio.Event = field(default_factory=asyncio.Event)
    _look: asyncio.Event = field(default_factory=asyncio.Event)
    _judging_due: asyncio.Event = field(default_factory=asyncio.Event)
    # By master key: two devices with one seed must not be asked for the same payment at once (S6).
    _at_device: dict[Fingerprint, asyncio.Task[None]] = field(default_factory=dict)
    _on_the_way: dict[tuple[str, type[Submit | SubmitDecline]], asyncio.Task[None]] = field(
        default_factory=dict
    )
    _tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            supervisor = TaskSupervisor(self.troubles, self.jitter, self.sleep)
            self.journal.restart()
            tasks.create_task(self._resume(self.journal.unsettled()))
            watch = self.devices.bridge.watch
            tasks.create_task(supervisor.supervise(DEVICES, "Looking for devices", watch))
            tasks.create_task(supervisor.supervise(DEVICES, "Listening to devices", self._watch_events))
            tasks.create_task(self._match_devices())
            tasks.create_task(self._judge_in_turn())
            tasks.create_task(self._notice_time())
            tasks.create_task(self._notice_ends())

    async def _resume(self, psbt_ids: Iterable[str]) -> None:
        """Perform what was due when the daemon stopped, of one proposal after the other."""
        for psbt_id in psbt_ids:
            with contextlib.suppress(UnknownProposal):  # Forgotten meanwhile.
                self.perform(self.journal.due_effects_of(psbt_id), late=True)
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
                    self.perform(self.journal.reconsider(psbt_id))
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
            await self.sleep(TIME_PASSES_SECONDS)
            if self.journal.rules.depend_on_time:
                self._judging_due.set()

    async def _notice_ends(self) -> None:
        while True:
            for psbt_id in self.journal.overdue():
                self.decide(psbt_id, events.Lapsed())
                await asyncio.sleep(0)
            await self.sleep(OVERDUE_SECONDS)

    # --- effects --------------------------------------------------------------------------------------------

    def decide(self, psbt_id: str, event: events.ProposalEvent, *, late: bool = False) -> Step:
        """Record an event and perform what follows. Raises what the engine and the journal raise."""
        step = self.journal.decide(psbt_id, event)
        self.perform(step.effects, late=late)
        return step

    def tell(self, before: Record | None, after: Record) -> None:
        """Announce a change of a proposal, also where only the platform's state changed."""
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
        """``late``: for decisions from before this start, or after the machine may have slept."""
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
                    self.keys_due.set()
                case JudgeAgain():
                    self._judging_due.set()
                case SignOnDevice():
                    raise AssertionError("performed by the task that found the device")
                case ExportPsbt():
                    raise AssertionError("performed by the call that exports")

    # --- devices --------------------------------------------------------------------------------------------

    async def _watch_events(self) -> None:
        # There are no events of changes before the stream began.
        self._look.set()
        async for event in self.devices.bridge.events():
            self.feed.add(event.device_id, "device", f"{event.device.model} is {event.new}.")
            self._look.set()

    async def _match_devices(self) -> None:
        """Ask each device for its approved proposals as soon as it is ready, one at a time."""
        pause = Backoff(self.jitter)
        await self.checked.wait()
        while True:
            self._look.clear()
            waiting = self.journal.records([State.WAITING_DEVICE])
            try:
                await self._record_screens()
                for record in waiting:
                    await self._ask_if_ready(record.psbt_id)
            except DeviceError as error:
                self.troubles.report(DEVICES, {DEVICES: said(error)})
                await self.sleep(pause.next())
                continue
            self.troubles.report(DEVICES, {})
            pause.reset()
            try:
                # A new proposal for a device sets the event: sleep until then.
                async with asyncio.timeout(LOOK_AGAIN_SECONDS if waiting else None):
                    await self._look.wait()
            except TimeoutError:
                continue

    def look(self) -> None:
        """Look at the devices again: our registered key has changed."""
        self._look.set()

    async def _record_screens(self) -> None:
        """Record what our devices' screens show: the person is told before the device is asked."""
        for fingerprint in {own.key.fingerprint for own in self.journal.own_keys()}:
            device = await self.devices.ready(fingerprint)
            if device is not None:
                self.perform(self.journal.see_screen(fingerprint, screen_of(device)))

    async def _ask_if_ready(self, psbt_id: str) -> None:
        try:
            (find,) = self.journal.due_effects_of(psbt_id) or (None,)
        except UnknownProposal:
            return  # Ended and forgotten meanwhile.
        if not isinstance(find, FindDevice):
            return
        fingerprint = find.fingerprint
        device = await self.devices.ready(fingerprint)
        if device is None or fingerprint in self._at_device:
            return
        assert self._tasks is not None, "called from a task of the group"
        # Two devices may have one seed: record the screen of this one.
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
            outcome = await self.devices.sign(asked, teller(self.feed, psbt_id))
            # By wall-clock time: the monotonic clock may stop while the machine sleeps.
            step = self.decide(psbt_id, outcome, late=self.journal.now() - began > AT_THE_DEVICE_USUALLY)
            if step.record.state is State.WAITING_DEVICE:
                self.feed.add(psbt_id, "attention", step.record.reason)
                await self.sleep(DEVICE_PAUSE_SECONDS)
        finally:
            del self._at_device[fingerprint]
            self._look.set()

    def decide_to_ask(self, psbt_id: str, device_id: str) -> SignOnDevice | None:
        """Record that the device is asked; None where the approval is no longer valid."""
        try:
            step = self.journal.decide(psbt_id, events.DeviceFound(device_id))
        except (IllegalEvent, UnknownProposal):
            return None  # Declined, ended or forgotten meanwhile.
        return self._perform_except(step, SignOnDevice)

    def decide_to_export(self, psbt_id: str, event: events.Exported) -> ExportPsbt | None:
        """Record the export; None where the approval is no longer valid.

        Raises what the engine and the journal raise.
        """
        return self._perform_except(self.journal.decide(psbt_id, event), ExportPsbt)

    def _perform_except(self, step: Step, kind: type[E]) -> E | None:
        """Perform all effects but the one of this kind, which is returned for the caller to perform."""
        kept = None
        for effect in step.effects:
            if isinstance(effect, kind):
                kept = effect
            else:
                self.perform([effect])
        return kept

    # --- delivery -------------------------------------------------------------------------------------------

    def _deliver(self, effect: Submit | SubmitDecline, *, late: bool) -> None:
        # ``run`` begins with everything due in the journal, so nothing is lost without tasks. A decline does
        # not wait for a kept signature.
        key = effect.psbt_id, type(effect)
        if self._tasks is None or key in self._on_the_way:
            return
        self._on_the_way[key] = self._tasks.create_task(self._deliver_until_answered(*key, late=late))

    async def _deliver_until_answered(
        self, psbt_id: str, kind: type[Submit | SubmitDecline], *, late: bool
    ) -> None:
        """Deliver the signature or decline of the record, with retries, until the platform has answered.

        ``late``: time has passed since it was signed, so ``check_before_sending`` runs right before the try:
        the machine may have slept. A kept signature waits before each try, also after a restart.
        """
        soon, later = Backoff(self.jitter), Backoff(self.jitter, KEPT_FIRST_SECONDS, KEPT_LONGEST_SECONDS)
        try:
            while True:
                late = late or not self.signed_in.is_set()
                await self.signed_in.wait()
                if self._is_kept(psbt_id):
                    await self.sleep(later.next())
                if kind is Submit and late and not await self.check_before_sending(psbt_id):
                    await self.sleep(soon.next())
                    continue
                effect = self._to_deliver(psbt_id, kind)
                if effect is None or await self._delivered(effect):
                    return
                late = True
                if not self._is_kept(psbt_id):
                    await self.sleep(soon.next())
        finally:
            del self._on_the_way[psbt_id, kind]

    def _is_kept(self, psbt_id: str) -> bool:
        return self.journal.record(psbt_id).state is State.KEPT

    def _to_deliver(self, psbt_id: str, kind: type[Submit | SubmitDecline]) -> Submit | SubmitDecline | None:
        """The effect that is still due after waiting, or None."""
        for effect in self.journal.due_effects_of(psbt_id):
            if isinstance(effect, kind):
                return effect
        return None

    async def _delivered(self, effect: Submit | SubmitDecline) -> bool:
        if isinstance(effect, SubmitDecline):
            told = await self.platform.decline(effect)
            if told is not None:
                self.decide(effect.psbt_id, told)
            return told is not None
        self.decide(effect.psbt_id, events.SubmitStarted())
        outcome = await self.platform.submit(effect)
        self._record_outcome(effect.psbt_id, outcome)
        return not isinstance(outcome, events.SubmitUndelivered | events.SubmitKept)

    def _record_outcome(self, psbt_id: str, outcome: events.ProposalEvent) -> None:
        try:
            step = self.journal.decide(psbt_id, outcome)
        except IllegalEvent as error:
            # The platform's state changed meanwhile; its answer must not end the daemon.
            self.feed.add(psbt_id, events.Level.ALARM.value, f"{UNFITTING} {error}.")
            return
        # This task submits again after its pause.
        self.perform(effect for effect in step.effects if not isinstance(effect, Submit))
