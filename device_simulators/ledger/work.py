"""One command that the device carries out: what its code may do with the host and with the person."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from device_simulators.faults import Faults, Phase
from device_simulators.ledger.apdu import Reply, Status
from device_simulators.ledger.errors import Refused
from device_simulators.panel import Panel, Prompt

Send = Callable[[Reply], None]
SILENCE_SECONDS = 5.0
"""INTERRUPTION_TIMEOUT_TICKS of app-bitcoin-new 2.4.6, src/boilerplate/io_ext.h: 50 ticks of 100 ms."""


class Timer(Protocol):
    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], Timer]


class Work:
    """A command under way. It is interrupted while the host has to answer, and prompting while the person has to."""

    def __init__(
        self,
        panel: Panel,
        send: Send,
        strike: Callable[[Phase], None],
        faults: Faults,
        start_silence: Callable[[], Timer],
    ) -> None:
        self.reach = strike
        """Tell the device's faults which phase this is. Raises Silenced where one strikes."""
        self.send = send
        """To the host that was heard last; to nobody once it has gone."""
        self.faults = faults
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
        """Interrupt the command for a request to the host, and wait for what it has to say, which ends the app if it is nothing."""
        self._answer = asyncio.get_running_loop().create_future()
        self.send(Reply(Status.INTERRUPTED, request))
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
        decision = asyncio.create_task(self._panel.ask(prompt))
        try:
            # One turn of the loop, so that a fault at this phase finds the prompt on the screen.
            await asyncio.sleep(0)
            self.reach(Phase.PROMPT)
            approved = await decision
        finally:
            # Off the screen, if nobody has decided; whoever comes next may show a prompt at once.
            decision.cancel()
            await asyncio.wait({decision})
        if not approved:
            raise Refused(Status.DENIED, "the person said no")
