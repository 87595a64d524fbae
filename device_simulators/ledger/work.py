"""One command that the device carries out: how it asks the host and the person, and how it ends without an
answer.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from device_simulators.faults import Misbehaviour, Phase
from device_simulators.ledger.apdu import ApduReply, StatusWord
from device_simulators.panel import Panel, Prompt


class LedgerRefused(Exception):
    """The device refuses; the host reads a status word, and nothing else, as on the hardware."""

    def __init__(self, status: StatusWord, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def incorrect_data(reason: str) -> LedgerRefused:
    """What the app says to a request that makes no sense, that lies, or that names another's wallet."""
    return LedgerRefused(StatusWord.INCORRECT_DATA, reason)


def not_supported(reason: str) -> LedgerRefused:
    """What the app says to a request that makes sense and is still not for it."""
    return LedgerRefused(StatusWord.NOT_SUPPORTED, reason)


Send = Callable[[ApduReply], None]
SILENCE_SECONDS = 5.0
"""INTERRUPTION_TIMEOUT_TICKS of app-bitcoin-new 2.4.6, src/boilerplate/io_ext.h: 50 ticks of 100 ms."""


class Timer(Protocol):
    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], Timer]


class LedgerWork:
    """A command under way. It is interrupted while the host has to answer, and prompting while the person has
    to.
    """

    def __init__(
        self,
        panel: Panel,
        send: Send,
        misbehaviour: Misbehaviour,
        start_silence: Callable[[], Timer],
    ) -> None:
        self.send = send
        """To the host that was heard last, while it is connected."""
        self.misbehaviour = misbehaviour
        self._panel = panel
        self._start_silence = start_silence
        self._answer: asyncio.Future[bytes] | None = None

    @property
    def interrupted(self) -> bool:
        return self._answer is not None and not self._answer.done()

    def deliver(self, data: bytes) -> None:
        """Hand over what the host was asked for."""
        assert self._answer is not None, "only an interrupted command is answered"
        self._answer.set_result(data)

    async def ask_host(self, request: bytes) -> bytes:
        """Interrupt the command for a request to the host, and wait for its answer. The app ends if none
        comes.
        """
        self._answer = asyncio.get_running_loop().create_future()
        self.send(ApduReply(StatusWord.INTERRUPTED, request))
        silence = self._start_silence()
        try:
            return await self._answer
        finally:
            silence.cancel()
            self._answer = None

    async def confirm(self, prompt: Prompt) -> None:
        """Show it and wait for the person.

        :raises Refused: the person said no.
        """
        if not await self._panel.ask(prompt, lambda: self.misbehaviour.reach(Phase.PROMPT)):
            raise LedgerRefused(StatusWord.DENIED, "the person said no")
