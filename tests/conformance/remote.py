"""The contract on a device at an endpoint that was given: a maker's emulator, hardware, or a virtual device
in a process of its own.

What `Hands` do by themselves becomes a `Rig` like that of a virtual device in this process, so that the cases
are the same.
"""

import asyncio
import importlib
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from device_simulators.errors import NoSuchPrompt
from device_simulators.faults import Faults
from device_simulators.panel import Happening, Panel, Prompt, _Pending, approve_all
from device_simulators.seed import Seed
from firmware_bridge import Endpoint, Family
from tests.conformance.hands import Hands, Unable
from tests.conformance.rigs import NETWORK, PATIENCE, WORDS, Rig, running

_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Remote:
    """Where the device is, and who makes its hands."""

    endpoint: Endpoint
    factory: Callable[..., Hands]


@dataclass
class Run:
    """The one remote device of this run of pytest, if it has one, and the hands that are on it in this
    case.
    """

    remote: Remote | None = None
    hands: list[Hands] = field(default_factory=list)


RUN = Run()


def factory_of(text: str) -> Callable[..., Hands]:
    """:raises pytest.UsageError: there is no such thing as `package.module:factory`."""
    module, _colon, name = text.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise pytest.UsageError(f"--hands is package.module:factory, not {text!r} ({error})") from error


def close_hands() -> None:
    """After each case."""
    while RUN.hands:
        RUN.hands.pop().close()


def make_remote_rig(
    remote: Remote, family: Family, seed: Seed, faults: Faults | None, *, fake: bool, **options: object
) -> Rig:
    """The rig, or a skip where the device there cannot do what the case needs."""
    if family != remote.endpoint.family:
        pytest.skip(f"this case is about a {family}")
    if fake:
        pytest.skip("a fake is at no endpoint")
    if faults not in {None, Faults()}:
        pytest.skip("a fault that only software can have")
    words = WORDS.get(seed.fingerprint)
    if words is None:
        pytest.skip("a seed that only software can have")
    try:
        hands = remote.factory(remote.endpoint, words, NETWORK, **options)
    except Unable as reason:
        pytest.skip(str(reason))
    RUN.hands.append(hands)
    return RemoteRig(hands, remote.endpoint, seed)


class RemotePanel(Panel):
    """What the hands see and press, as the screen and the buttons of a virtual device."""

    def __init__(self, hands: Hands) -> None:
        super().__init__(approve_all)
        self._hands = hands
        self._noticed: Prompt | None = None
        self._looked = asyncio.Event()
        self._presses = 0

    async def looked(self) -> None:
        """What is on the screen now has been seen: the look under way may have begun before."""
        for _look in range(2):
            await self._looked.wait()

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            presses = self._presses
            prompt = await asyncio.to_thread(self._hands.screen)
            # What was seen before a button was pressed is on the screen no more.
            if presses == self._presses:
                self._look(prompt)
                self._looked.set()
                self._looked = asyncio.Event()
            if (pending := self._pending) is not None and pending.answer.done():
                self._move_finger(pending)
            await asyncio.sleep(_LOOK_SECONDS)

    def _press(self, prompt_id: int | None, *, approved: bool) -> None:
        """At once, as on a panel in this process: callers rely on that."""
        super()._press(prompt_id, approved=approved)
        if self._pending is not None:
            self._move_finger(self._pending)

    def _look(self, prompt: Prompt | None) -> None:
        wants_answer = prompt is not None and prompt.yes != ""
        if self._pending is not None and (not wants_answer or prompt != self._pending.prompt):
            self._end(self._pending, Happening.WITHDRAWN)
        if wants_answer and self._pending is None:
            self._pending = _Pending(self._next_id(), prompt, asyncio.get_running_loop().create_future())
            self._tell(self._pending.id, Happening.SHOWN, prompt)
            self._apply_script(self._pending)
        if not wants_answer and prompt not in {None, self._noticed}:
            # The left button closes it, where it stays until a key is pressed.
            self.stay(prompt, self._close_notice)
        elif prompt is None or wants_answer:
            self.clear()
        self._noticed = None if wants_answer else prompt

    def _move_finger(self, pending: _Pending) -> None:
        approved = pending.answer.result()
        self._presses += 1
        try:
            (self._hands.press_yes if approved else self._hands.press_no)()
        except NoSuchPrompt:
            self._end(pending, Happening.WITHDRAWN)
        else:
            self._end(pending, Happening.APPROVED if approved else Happening.REFUSED)

    def _close_notice(self) -> None:
        self._presses += 1
        with suppress(NoSuchPrompt):
            self._hands.press_no()

    def _end(self, pending: _Pending, happening: Happening) -> None:
        self._pending = None
        self._tell(pending.id, happening, pending.prompt)


class RemoteDevice:
    """The part of a virtual device that cases touch."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._before: list[Callable[[], object]] | None = []

    def started(self) -> None:
        """Do what was asked of it before."""
        before, self._before = self._before or [], None
        for act in before:
            _or_skip(act)

    @property
    def faults(self) -> Faults:
        return Faults()

    @faults.setter
    def faults(self, faults: Faults) -> None:
        if faults != Faults():
            pytest.skip("a fault that only software can have")

    def lock(self) -> None:
        self._do(self._hands.lock)

    def unlock(self) -> None:
        self._do(self._hands.unlock)

    def _do(self, act: Callable[[], object]) -> None:
        if self._before is None:
            _or_skip(act)
        else:
            self._before.append(act)


class RemoteRig(Rig):
    """A rig whose device is somewhere else. It stays plugged in until the case unplugs it or ends."""

    is_remote = True

    def __init__(self, hands: Hands, endpoint: Endpoint, seed: Seed) -> None:
        self._hands = turns = _Turns(hands)
        super().__init__(endpoint.family, RemoteDevice(turns), RemotePanel(turns), seed, Path(endpoint.place))
        self._place = endpoint
        self._looking: asyncio.Task[None] | None = None
        self._unplugged = False

    async def plug_in(self) -> Endpoint:
        if self._looking is None:
            await asyncio.to_thread(self._hands.start)
            await asyncio.to_thread(self.device.started)
            self._looking = asyncio.create_task(self.panel.run())
        elif self._unplugged:
            await asyncio.to_thread(_or_skip, self._hands.plug)
        self._unplugged = False
        self.endpoint = self._place
        return self._place

    async def unplug(self) -> None:
        await asyncio.to_thread(_or_skip, self._hands.unplug)
        self._unplugged = True

    async def looked(self) -> None:
        """:raises Exception: what the hands raised when they looked or pressed.

        :raises TimeoutError: they take too long for a look.
        """
        if self._looking is None:
            return
        async with running(self.panel.looked()) as looked:
            both = {looked, self._looking}
            await asyncio.wait(both, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            if self._looking.done():
                self._looking.result()
            if not looked.done():
                raise TimeoutError("the eyes take too long for a look")

    async def put_away(self) -> None:
        """It stays where it is; what it still shows has been seen."""
        await self.looked()


class _Turns:
    """One call at a time."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Callable[[], object]:
        method = getattr(self._hands, name)

        def call() -> object:
            with self._lock:
                return method()

        return call


def _or_skip(act: Callable[[], object]) -> None:
    try:
        act()
    except Unable as reason:
        pytest.skip(str(reason))
