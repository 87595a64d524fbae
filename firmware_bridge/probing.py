"""Asking a device who it is: once when it is new and idle, again where that may have changed, and never what another program holds."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from firmware_bridge import answers
from firmware_bridge.answers import Probed
from firmware_bridge.errors import BridgeError
from firmware_bridge.families import maker_of
from firmware_bridge.holders import FindHolder
from firmware_bridge.model import Deadlines, DeviceState, Happening
from firmware_bridge.outcomes import after_answer, after_probe
from firmware_bridge.record import Record
from firmware_bridge.turns import Turn

Clock = Callable[[], float]

# Worth asking again after a while: what the device shows may have changed without leaving the bus.
ASK_AGAIN: Final = frozenset(
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


class Move(Protocol):
    """Takes the device to its next state, and tells."""

    def __call__(self, record: Record, happening: Happening, detail: str | None = None) -> None: ...


class Prober:
    """Who is asked, when, and what is made of the answer."""

    def __init__(
        self, deadlines: Deadlines, clock: Clock, find_holder: FindHolder, turn: Turn, move: Move
    ) -> None:
        self._deadlines = deadlines
        self._clock = clock
        self._find_holder = find_holder
        self._turn = turn
        self._move = move

    def wants(self, record: Record) -> bool:
        """New, or not well when it was last asked; and nobody is at it, and it can be opened."""
        if is_working(record) or not record.sighting.can_be_opened:
            return False
        if record.device.state == DeviceState.ABSENT:
            return False
        if record.probed_at is None:
            return True
        waited = self._clock() - record.probed_at
        return record.device.state in ASK_AGAIN and waited >= self._patience(record)

    def _patience(self, record: Record) -> float:
        longest = self._deadlines.retry_shared
        if record.perhaps_shared:
            return longest
        return min(longest, self._deadlines.retry * (1 + record.fruitless // _TRIES_AT_A_PACE))

    async def probe(self, record: Record) -> None:
        happening, detail, answer = Happening.FAILED, None, None
        try:
            if record.held and (holder := await self._find_holder(record.device.endpoint)) is not None:
                # Not disturbed as long as it is in another program's hands.
                happening, detail = Happening.FOUND_BUSY, _in_use_by(holder)
                return
            async with record.lane.lock:
                with self._turn(record.device.endpoint):
                    told = await record.lane.call("probe", deadline=self._deadlines.probe, probing=True)
            answer = answers.probed(told)
            happening, detail = await self.explain(record, *after_answer(answer))
        except BridgeError as outcome:
            happening = after_probe(outcome)
            happening, detail = await self.explain(record, happening, outcome.words)
        finally:
            if record.probe is asyncio.current_task():
                record.probe = None
                self._conclude(record, happening, detail, answer)

    def _conclude(
        self, record: Record, happening: Happening, detail: str | None, answer: Probed | None
    ) -> None:
        record.probed_at = self._clock()
        record.perhaps_shared = happening in _PERHAPS_IN_USE and maker_of(record.device.family).shares_session
        self._learn(record, answer)
        self._move(record, happening, detail)
        record.fruitless = record.fruitless + 1 if record.device.state in ASK_AGAIN else 0

    async def explain(
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
            model=_model_name(answer.model or record.device.model, emulator=record.device.emulator),
            label=answer.label or None,
            fingerprint=answer.fingerprint,
            firmware=answer.firmware,
        )


def is_working(record: Record) -> bool:
    return record.in_use or record.device.state == DeviceState.PROBING


def _in_use_by(holder: str) -> str:
    return f"In use by {holder}."


def _model_name(model: str, *, emulator: bool) -> str:
    return f"{model} (emulator)" if emulator and "(emulator)" not in model else model
