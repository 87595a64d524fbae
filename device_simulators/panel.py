"""The screen and the buttons of a virtual device.

A device shows a `Prompt` and waits; a person (`press_yes`, `press_no`) or a script decides. Watchers of the
panel see every prompt appear and leave, in order.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from device_simulators.errors import NoSuchPrompt


@dataclass(frozen=True)
class Prompt:
    """What the screen says. `kind` is a stable word for programs, `lines` are for the person.

    `no` and `yes` are the words on the buttons; `no` is empty where no button refuses. `turn` are then the
    words of the left button where it leads to another page of the same question.
    """

    kind: str
    lines: tuple[str, ...]
    no: str = "no"
    yes: str = "yes"
    turn: str = ""


class Decision(StrEnum):
    """What a script answers. `WAIT` leaves the prompt on the screen for the buttons; `TURN` turns the page,
    where that can be.
    """

    YES = "yes"
    NO = "no"
    TURN = "turn"
    WAIT = "wait"


class Happening(StrEnum):
    SHOWN = "shown"
    NOTICE = "notice"
    """Shown, and no answer is needed."""
    APPROVED = "approved"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    """The host cancelled, or the device was stopped, before the person decided."""


@dataclass(frozen=True)
class PanelEvent:
    """One change of the screen. `id` numbers the prompts of one panel from 1."""

    id: int
    happening: Happening
    prompt: Prompt


Script = Callable[[Prompt], Decision]
Watcher = Callable[[PanelEvent], None]


def approve_all(_prompt: Prompt) -> Decision:
    return Decision.YES


def refuse_all(_prompt: Prompt) -> Decision:
    return Decision.NO


def ask_person(_prompt: Prompt) -> Decision:
    return Decision.WAIT


@dataclass
class _Pending:
    id: int
    prompt: Prompt
    answer: asyncio.Future[bool]


@dataclass
class _Staying:
    id: int
    on_key: Callable[[], None]


class Panel:
    """One screen with two buttons. At most one prompt waits for an answer at a time, as on the hardware."""

    def __init__(self, script: Script = ask_person) -> None:
        self.script = script
        self._shown = 0
        self._pending: _Pending | None = None
        self._staying: _Staying | None = None
        self._watchers: list[Watcher] = []

    @property
    def pending(self) -> tuple[int, Prompt] | None:
        """The prompt that waits for a button, with its number."""
        return None if self._pending is None else (self._pending.id, self._pending.prompt)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with every event from now on; the returned function ends that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    async def ask(self, prompt: Prompt, shown: Callable[[], None] = lambda: None) -> bool:
        """Show the prompt, call `shown`, and wait for a decision: True for yes. Cancelling the call,
        or an error of `shown`, withdraws the prompt.
        """
        if self._pending is not None:
            raise RuntimeError("the panel already shows a prompt: a device asks one thing at a time")
        pending = _Pending(self._next_id(), prompt, asyncio.get_running_loop().create_future())
        self._pending = pending
        self._tell(pending.id, Happening.SHOWN, prompt)
        try:
            shown()
            self._apply_script(pending)
            approved = await pending.answer
        except BaseException:
            self._tell(pending.id, Happening.WITHDRAWN, prompt)
            raise
        finally:
            self._pending = None
        self._tell(pending.id, Happening.APPROVED if approved else Happening.REFUSED, prompt)
        return approved

    def notify(self, prompt: Prompt) -> None:
        """Show something that needs no answer, such as the PIN matrix."""
        self._tell(self._next_id(), Happening.NOTICE, prompt)

    def stay(self, prompt: Prompt, on_key: Callable[[], None]) -> None:
        """Show something that asks nothing and stays until the left button is pressed: then `on_key` is
        called.
        """
        self._staying = _Staying(self._next_id(), on_key)
        self._tell(self._staying.id, Happening.NOTICE, prompt)

    def clear(self) -> None:
        """What stays on the screen is gone."""
        self._staying = None

    def press_yes(self, prompt_id: int | None = None) -> None:
        """Press the right button.

        :raises NoSuchPrompt: nothing, or a prompt with another number, is on the screen.
        """
        self._press(prompt_id, approved=True)

    def press_no(self, prompt_id: int | None = None) -> None:
        """Press the left button: refuse, close what stays on the screen, or turn the page where the device
        has no button to refuse.

        :raises NoSuchPrompt: nothing, or a prompt with another number, is on the screen, or it has no such
        button.
        """
        self._press(prompt_id, approved=False)

    def _press(self, prompt_id: int | None, *, approved: bool) -> None:
        pending, staying = self._pending, self._staying
        if pending is None and staying is not None and not approved and prompt_id in {None, staying.id}:
            self.clear()
            staying.on_key()
            return
        if pending is None or pending.answer.done():
            raise NoSuchPrompt("nothing on the screen waits for an answer")
        if prompt_id is not None and prompt_id != pending.id:
            raise NoSuchPrompt(f"prompt {prompt_id} is not on the screen; prompt {pending.id} is")
        if not approved and not (pending.prompt.no or pending.prompt.turn):
            raise NoSuchPrompt("no button of this screen says no")
        pending.answer.set_result(approved)

    def _apply_script(self, pending: _Pending) -> None:
        decision = self.script(pending.prompt)
        prompt = pending.prompt
        # The question stays where no button has this meaning.
        can = {Decision.YES: True, Decision.NO: prompt.no, Decision.TURN: prompt.turn, Decision.WAIT: False}
        stays = not can[decision]
        # A watcher may have pressed already.
        if not stays and not pending.answer.done():
            pending.answer.set_result(decision is Decision.YES)

    def _next_id(self) -> int:
        self._shown += 1
        return self._shown

    def _tell(self, prompt_id: int, happening: Happening, prompt: Prompt) -> None:
        for watcher in tuple(self._watchers):
            watcher(PanelEvent(prompt_id, happening, prompt))
