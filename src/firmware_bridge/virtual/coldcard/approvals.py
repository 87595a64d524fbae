"""Runs the one request that the person is being asked about, beside the conversation with the host."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress

from firmware_bridge.virtual.coldcard import replies
from firmware_bridge.virtual.coldcard.errors import PersonRefused, PowerLost, TransactionRefused
from firmware_bridge.virtual.coldcard.pending import Kind, Pending, State

_log = logging.getLogger(__name__)

Flow = Coroutine[None, None, bytes | None]
"""Asks the person and does what was agreed. Ends with the reply to keep for the host, or None to keep nothing.

Raises PersonRefused or TransactionRefused.
"""


class Approvals:
    def __init__(self) -> None:
        self._pending = Pending()
        self._task: asyncio.Task[None] | None = None

    @property
    def pending(self) -> Pending:
        return self._pending

    def check_free(self, kind: Kind) -> None:
        """Raises PromptOpen while something is being asked that a request of this kind may not replace."""
        self._pending.begin(kind)

    async def begin(self, kind: Kind, flow: Flow) -> None:
        """Start a flow in place of what it may replace; `check_free` was asked before."""
        await self._stop()
        self._pending = self._pending.begin(kind)
        self._task = asyncio.create_task(self._run(flow))
        await asyncio.sleep(0)  # the prompt is up before the host hears that the request was taken

    async def _run(self, flow: Flow) -> None:
        try:
            reply = await flow
        except PowerLost:
            return
        except PersonRefused:
            self._pending = self._pending.refuse()
        except TransactionRefused as refusal:
            self._pending = self._pending.fail(str(refusal))
        except Exception:  # noqa: BLE001 - the border of a request: the host must hear of its end, whatever it was
            _log.exception("a request failed in a way that nobody foresaw")
            self._pending = self._pending.fail("Confused")
        else:
            self._pending = self._pending.discard() if reply is None else self._pending.finish(reply)

    def collect(self) -> bytes:
        """What `stok`, `smok` and their like answer; an outcome is given once."""
        pending = self._pending
        if pending.state is State.NONE:
            return replies.error("No active request")
        if pending.state is State.ASKING:
            return replies.OKAY
        self._pending = pending.collect()
        if pending.state is State.REFUSED:
            return replies.REFUSED
        return pending.reply if pending.state is State.READY else replies.outcome_error(pending.reason)

    async def discard(self) -> None:
        """Take the prompt off the screen and forget every outcome."""
        await self._stop()
        self._pending = self._pending.discard()

    def abandon(self) -> None:
        """`discard` for whoever cannot wait: the prompt leaves the screen when the loop next turns."""
        self._pending = self._pending.discard()
        if self._task is not None:
            self._task.cancel()

    async def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
