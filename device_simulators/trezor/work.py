"""One command that the device carries out: what the code of a command may do with the world."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from device_simulators.faults import Faults, Phase
from device_simulators.panel import Panel, Prompt
from device_simulators.trezor.messages import (
    ButtonAck,
    ButtonCode,
    ButtonRequest,
    FailureCode,
    PassphraseAck,
    PinMatrixAck,
)
from device_simulators.trezor.protobuf import Message
from device_simulators.trezor.routing import Mode

Peer = tuple[str, int]
"""A host: the address and port that its datagrams come from."""

A = TypeVar("A", bound=Message)

_TYPED = (PinMatrixAck, PassphraseAck)


class Refused(Exception):
    """The device will not; the host reads why in a Failure."""

    def __init__(self, code: FailureCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Silenced(Exception):
    """A fault has struck: the work ends, and no host is told."""


def data_error(message: str) -> Refused:
    """What the firmware says to a request that makes no sense or is not allowed."""
    return Refused(FailureCode.DATA_ERROR, message)


def action_cancelled(message: str = "Action cancelled by user") -> Refused:
    return Refused(FailureCode.ACTION_CANCELLED, message)


class Work:
    """A command under way."""

    def __init__(
        self,
        panel: Panel,
        send: Callable[[Message], None],
        strike: Callable[[Phase], None],
        faults: Faults,
    ) -> None:
        self.panel = panel
        self.send = send
        self.reach = strike
        """Tell the device's faults which phase this is. Raises Silenced where one strikes."""
        self.faults = faults
        self.awaits: type[Message] | None = None
        """What the host has to send next. None while the device or the person is at work."""
        self._prompting = False
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._listening = asyncio.Event()

    @property
    def mode(self) -> Mode | None:
        """None while it computes: what comes in waits."""
        if self._prompting or self.awaits in _TYPED:
            return Mode.ASKING
        return None if self.awaits is None else Mode.FETCHING

    async def listens(self) -> None:
        """Wait until messages are read again."""
        await self._listening.wait()

    def deliver(self, message: Message) -> None:
        """Hand over what the host sent."""
        self.awaits = None
        self._settle()
        self._inbox.put_nowait(message)

    def end(self) -> None:
        """The command is done: whoever waits until messages are read need not wait any longer."""
        self._listening.set()

    async def receive(self, answer: type[A]) -> A:
        """Wait for what the host has to send next."""
        self.awaits = answer
        self._settle()
        received = await self._inbox.get()
        assert isinstance(received, answer), "the desk delivers only what is due"
        return received

    async def confirm(self, code: ButtonCode, prompt: Prompt) -> None:
        """Show it and wait for the person, whose decision counts once the host has acknowledged the prompt.

        :raises Refused: the person said no.
        """
        if not await self.choose(code, prompt):
            raise action_cancelled()

    async def choose(self, code: ButtonCode, prompt: Prompt) -> bool:
        """Which button the person pressed, where the left one does not mean no: True for the right one."""
        decision = asyncio.create_task(self.panel.ask(prompt))
        self._prompting = True
        try:
            # One turn of the loop, so that the prompt is on the screen before the host hears of it.
            await asyncio.sleep(0)
            self.send(ButtonRequest(code=code))
            self.reach(Phase.PROMPT)
            await self.receive(ButtonAck)
            return await decision
        finally:
            self._prompting = False
            self._settle()
            await _withdraw(decision)

    def _settle(self) -> None:
        if self.mode is None:
            self._listening.clear()
        else:
            self._listening.set()


async def _withdraw(decision: asyncio.Task[bool]) -> None:
    """Take a prompt off the screen that nobody has decided; one that is decided is gone already."""
    decision.cancel()
    await asyncio.wait({decision})
