"""One command that the device carries out for one host: what the code of a command may do with the world."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from firmware_bridge.virtual.faults import Faults, Phase
from firmware_bridge.virtual.panel import Panel, Prompt
from firmware_bridge.virtual.trezor.messages import ButtonAck, ButtonCode, ButtonRequest, FailureCode
from firmware_bridge.virtual.trezor.protobuf import Message

Peer = tuple[str, int]
"""A host: the address and port that its datagrams come from."""

A = TypeVar("A", bound=Message)


class Refused(Exception):
    """The device will not; the host reads why in a Failure."""

    def __init__(self, code: FailureCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Silenced(Exception):
    """A fault has struck: the work ends, and nobody is told."""


def data_error(message: str) -> Refused:
    """What the firmware says to a request that makes no sense or is not allowed."""
    return Refused(FailureCode.DATA_ERROR, message)


class Work:
    """A command under way. `peer` may change: a PIN is taken from whichever host brings it."""

    def __init__(
        self,
        peer: Peer,
        panel: Panel,
        send: Callable[[Peer, Message], None],
        strike: Callable[[Phase], None],
        faults: Faults,
    ) -> None:
        self.peer = peer
        self.panel = panel
        self.reach = strike
        """Tell the device's faults which phase this is. Raises Silenced where one strikes."""
        self.faults = faults
        self.heard_at = 0.0
        """When the owner last sent something, on the device's clock."""
        self.awaits: type[Message] | None = None
        """What the host has to send next. None while the device or the person is at work."""
        self._send = send
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()

    def deliver(self, message: Message) -> None:
        """Hand over what the host sent."""
        self._inbox.put_nowait(message)

    def send(self, message: Message) -> None:
        self._send(self.peer, message)

    async def receive(self, answer: type[A]) -> A:
        """Wait for what the host has to send next.

        :raises Refused: the host sent something else.
        """
        self.awaits = answer
        received = await self._inbox.get()
        self.awaits = None
        if not isinstance(received, answer):
            raise Refused(FailureCode.UNEXPECTED_MESSAGE, f"Unexpected message: {answer.__name__} is due")
        return received

    async def confirm(self, code: ButtonCode, prompt: Prompt) -> None:
        """Show it and wait for the person, whose decision counts once the host has acknowledged the prompt.

        :raises Refused: the person said no.
        """
        decision = asyncio.create_task(self.panel.ask(prompt))
        try:
            # One turn of the loop, so that the prompt is on the screen before the host hears of it.
            await asyncio.sleep(0)
            self.send(ButtonRequest(code=code))
            self.reach(Phase.PROMPT)
            await self.receive(ButtonAck)
            approved = await decision
        finally:
            await _withdraw(decision)
        if not approved:
            raise Refused(FailureCode.ACTION_CANCELLED, "Action cancelled by user")


async def _withdraw(decision: asyncio.Task[bool]) -> None:
    """Take a prompt off the screen that nobody has decided; one that is decided is gone already."""
    decision.cancel()
    await asyncio.wait({decision})
