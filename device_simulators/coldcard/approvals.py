"""The one request that a Coldcard asks the person about at a time: its states, its outcome, and the task that
runs it.

It outlives the connection: a new handshake leaves it alone, and the host that asks next collects the outcome.
Source: Coldcard firmware 5.6.1, `shared/auth.py`, `UserAuthorizedAction`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from device_simulators.coldcard import replies, story
from device_simulators.coldcard.replies import PersonRefused, PromptOpen, TransactionRefused
from device_simulators.faults import Silenced
from device_simulators.panel import Panel, Prompt


class ApprovalKind(StrEnum):
    TRANSACTION = "transaction"
    TEXT = "text"
    ENROLMENT = "enrolment"
    ADDRESS = "address"
    SCRIPT_ADDRESS = "script-address"


class ApprovalState(StrEnum):
    NONE = "none"
    ASKING = "asking"
    READY = "ready"
    REFUSED = "refused"
    FAILED = "failed"


# What a new request may replace while the person is still being asked; anything else is told "busy". In the
# firmware, too, an enrolment or a plain address throws away an open signing prompt.
REPLACES: dict[ApprovalKind, frozenset[ApprovalKind]] = {
    ApprovalKind.TRANSACTION: frozenset({ApprovalKind.TRANSACTION}),
    ApprovalKind.TEXT: frozenset(),
    ApprovalKind.ENROLMENT: frozenset(ApprovalKind),
    ApprovalKind.ADDRESS: frozenset(ApprovalKind),
    ApprovalKind.SCRIPT_ADDRESS: frozenset({ApprovalKind.ADDRESS, ApprovalKind.SCRIPT_ADDRESS}),
}
# A signed transaction keeps the screen ("PSBT Signed") until a key is pressed: before its result is
# collected, it makes others wait as an open question does.
HOLDS_SCREEN: frozenset[tuple[ApprovalState, ApprovalKind]] = frozenset(
    {(ApprovalState.READY, ApprovalKind.TRANSACTION)}
)


@dataclass(frozen=True)
class Closing:
    """What the screen says for some seconds after an answer. `wipes`: at its end the device forgets its
    active request.
    """

    word: str
    seconds: float
    wipes: bool


# `ux_dramatic_pause` in `ApproveTransaction` and `NewEnrollRequest`; the latter ends in
# `UserAuthorizedAction.cleanup`.
AFTER_NO: dict[ApprovalKind, Closing] = {
    ApprovalKind.TRANSACTION: Closing("Refused.", 1.0, wipes=False),
    ApprovalKind.ENROLMENT: Closing("Refused.", 2.0, wipes=True),
}
SAVED = Closing("Saved.", 2.0, wipes=True)


@dataclass(frozen=True)
class Pending:
    """`reply` is what the collecting command answers once READY; `reason` the sentence once FAILED."""

    state: ApprovalState = ApprovalState.NONE
    kind: ApprovalKind | None = None
    reply: bytes = b""
    reason: str = ""

    def gives_way_to(self, replaced: frozenset[ApprovalKind]) -> bool:
        """Whether the screen is free for what replaces these kinds of requests."""
        held = self.state is ApprovalState.ASKING or (self.state, self.kind) in HOLDS_SCREEN
        return not held or self.kind in replaced


_log = logging.getLogger(__name__)

Flow = Coroutine[None, None, bytes | tuple[bytes, Prompt] | Closing | None]
"""Asks the person and does what was agreed. Ends with the reply to keep for the host, with what the screen
says before the request is forgotten, or with None to forget it at once.

Raises PersonRefused or TransactionRefused.
"""
Pause = Callable[[Closing, asyncio.Event], Awaitable[None]]
"""Waits as long as the screen shows how a request ended. The event is set once the outcome is collected, or
replaced by a new request.
"""


async def real_pause(closing: Closing, _over: asyncio.Event) -> None:
    await asyncio.sleep(closing.seconds)


def _nothing() -> None:
    """A key that takes a failure's words off the screen, and has no other effect."""


class Approvals:
    """`pause` is how the device waits while its screen says how a request ended."""

    def __init__(self, panel: Panel, pause: Pause) -> None:
        self._panel = panel
        self._pause = pause
        self._pending = Pending()
        self._task: asyncio.Task[None] | None = None
        self._counts: asyncio.Task[None] | None = None
        """The task whose outcome is the pending request's. A request that was wiped is still asked, and its
        outcome is lost.
        """
        self._closing: asyncio.Task[None] | None = None
        self._over = asyncio.Event()

    @property
    def pending(self) -> Pending:
        return self._pending

    def check_free(self, kind: ApprovalKind) -> None:
        """Raises PromptOpen while something is being asked that a request of this kind may not replace."""
        if not self._pending.gives_way_to(REPLACES[kind]):
            raise PromptOpen(f"the device is still asking about: {self._pending.kind}")

    async def begin(self, kind: ApprovalKind, flow: Flow) -> None:
        """Start a flow in place of what it may replace; `check_free` was asked before."""
        await self._stop()
        self._pending = Pending(ApprovalState.ASKING, kind)
        self._over.set()
        self._task = self._counts = asyncio.create_task(self._run(kind, flow, self._closing))
        await asyncio.sleep(0)  # the prompt is up before the host hears that the request was taken

    async def _run(self, kind: ApprovalKind, flow: Flow, before: asyncio.Task[None] | None) -> None:
        try:
            if before is not None and not before.done():
                # The firmware comes back to its menu, and to what a host has put there, only after the pause.
                await asyncio.wait({before})
            ending = await flow
        except Silenced:
            return
        except PersonRefused:
            self._settle(Pending(ApprovalState.REFUSED, kind))
            self._close(AFTER_NO.get(kind))
        except TransactionRefused as refusal:
            self._settle(Pending(ApprovalState.FAILED, kind, reason=str(refusal)))
            self._panel.stay(story.failure("Failure", str(refusal)), _nothing)
        except Exception:  # noqa: BLE001 - the host must hear how every request ends
            _log.exception("a request failed unexpectedly")
            self._settle(Pending(ApprovalState.FAILED, kind, reason="Confused"))
        else:
            self._end(kind, ending)
        finally:
            flow.close()

    def _end(self, kind: ApprovalKind, ending: bytes | tuple[bytes, Prompt] | Closing | None) -> None:
        if isinstance(ending, Closing):
            self._close(ending)
        elif ending is None:
            self._settle(Pending())
        elif isinstance(ending, tuple):
            reply, stays = ending
            self._settle(Pending(ApprovalState.READY, kind, reply))
            self._panel.stay(stays, self._leave_result)
        else:
            self._settle(Pending(ApprovalState.READY, kind, ending))

    def _settle(self, pending: Pending) -> None:
        if self._counts is asyncio.current_task():
            self._pending = pending

    def _close(self, closing: Closing | None) -> None:
        if closing is not None:
            self._over = asyncio.Event()
            self._closing = asyncio.create_task(self._fill_screen(closing, self._over))

    async def _fill_screen(self, closing: Closing, over: asyncio.Event) -> None:
        """The screen says one word for a while; no button and no host ends that."""
        await self._pause(closing, over)
        if closing.wipes:
            # The firmware's clean-up forgets the active request, even a newer one.
            self.forget()

    def _leave_result(self) -> None:
        """Key X at "PSBT Signed": an uncollected result is lost."""
        if self._pending.state is ApprovalState.READY:
            self.forget()

    def collect(self) -> bytes:
        """What `stok`, `smok` and their like answer; an outcome is given once."""
        pending = self._pending
        if pending.state is ApprovalState.NONE:
            return replies.error("No active request")
        if pending.state is ApprovalState.ASKING:
            return replies.OKAY
        self._pending = Pending()
        self._over.set()
        if pending.state is ApprovalState.REFUSED:
            return replies.REFUSED
        return (
            pending.reply if pending.state is ApprovalState.READY else replies.outcome_error(pending.reason)
        )

    async def discard(self) -> None:
        """Power down: take everything off the screen and forget every outcome."""
        await self._stop()
        self.abandon()

    def forget(self) -> None:
        """The active request is forgotten; its question stays on the screen, and its answer still has its
        effect.
        """
        self._pending, self._counts = Pending(), None

    def abandon(self) -> None:
        """`discard` for a caller that cannot wait: the prompt leaves the screen when the loop next turns."""
        self.forget()
        self._panel.clear()
        for task in (self._task, self._closing):
            if task is not None:
                task.cancel()
        self._closing = None

    async def _stop(self) -> None:
        self._panel.clear()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
