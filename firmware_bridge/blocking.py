"""The bridge for programs without an event loop: each call blocks until its outcome.

with BlockingBridge(network=Network.SIGNET) as bridge:
    for device in bridge.refresh():
        ...
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from firmware_bridge.bridge import Bridge
from firmware_bridge.conversation import Ask, OnProgress
from firmware_bridge.enrolment import Registrations
from firmware_bridge.errors import Cancelled
from firmware_bridge.model import Account, Deadlines, Device, DeviceEvent, Endpoint
from firmware_bridge.protocol import Question
from multisig import DerivationPath, Fingerprint, Network, OriginKey, Policy, Psbt, Vault

_T = TypeVar("_T")
BlockingAsk = Callable[[Question], str | None]


class _NotOpen(RuntimeError):
    """The bridge's event loop does not run."""


class BlockingBridge:
    """`Bridge`, method for method; see there. Use it in a `with` block. Any thread may call it.

    An event loop in a thread does the work. Progress callbacks run in that thread: they must return soon, and
    call none of these methods. Questions are asked in threads of their own, which may block.
    """

    def __init__(
        self,
        *,
        network: Network,
        endpoints: Sequence[Endpoint] = (),
        usb: bool = True,
        registrations: Registrations | None = None,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
        sandbox: bool = True,
        make: Callable[..., Bridge] = Bridge,
    ) -> None:
        self._bridge = make(
            network=network,
            endpoints=endpoints,
            usb=usb,
            registrations=registrations,
            deadlines=deadlines,
            sandbox=sandbox,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="firmware-bridge", daemon=True)
        self._open = False
        # Work that is handed over while the bridge closes would wait for a stopped loop.
        self._handing_over = threading.Lock()

    def __enter__(self) -> Self:
        self._thread.start()
        self._open = True
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with self._handing_over:
            self._open = False
            closing = asyncio.run_coroutine_threadsafe(self._close(), self._loop)
        try:
            closing.result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def list(self) -> tuple[Device, ...]:
        return self._wait(self._bridge.list())

    def refresh(self) -> tuple[Device, ...]:
        return self._wait(self._bridge.refresh())

    def events(self) -> Iterator[DeviceEvent]:
        """Every change of state, until the bridge closes. Devices are watched while the caller iterates."""
        stream, watching = self._wait(self._start_watching())
        try:
            while (event := self._next(stream)) is not None:
                yield event
        finally:
            # The bridge, and its loop, may have been closed meanwhile.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(watching.cancel)

    def unlock(self, device_id: str, ask: BlockingAsk, *, on_progress: OnProgress | None = None) -> Device:
        return self._wait(self._bridge.unlock(device_id, _in_thread(ask), on_progress=on_progress))

    def identify(self, device_id: str, *, on_progress: OnProgress | None = None) -> None:
        self._wait(self._bridge.identify(device_id, on_progress=on_progress))

    def fingerprint(self, device_id: str) -> Fingerprint:
        return self._wait(self._bridge.fingerprint(device_id))

    def accounts(self, device_id: str, numbers: Sequence[int] = (0,)) -> tuple[Account, ...]:
        return self._wait(self._bridge.accounts(device_id, numbers))

    def xpub(self, device_id: str, path: DerivationPath) -> OriginKey:
        return self._wait(self._bridge.xpub(device_id, path))

    def xpubs(self, device_id: str, paths: Sequence[DerivationPath]) -> tuple[OriginKey, ...]:
        return self._wait(self._bridge.xpubs(device_id, paths))

    def sign_message(
        self, device_id: str, text: str, path: DerivationPath, *, on_progress: OnProgress | None = None
    ) -> bytes:
        return self._wait(self._bridge.sign_message(device_id, text, path, on_progress=on_progress))

    def enrol(
        self, device_id: str, vault: Vault, name: str, *, on_progress: OnProgress | None = None
    ) -> None:
        self._wait(self._bridge.enrol(device_id, vault, name, on_progress=on_progress))

    def show_address(
        self,
        device_id: str,
        policy: Policy,
        chain: int,
        index: int,
        *,
        on_progress: OnProgress | None = None,
    ) -> str:
        return self._wait(self._bridge.show_address(device_id, policy, chain, index, on_progress=on_progress))

    def sign(
        self,
        device_id: str,
        psbt: Psbt,
        policy: Policy,
        *,
        signer: Fingerprint | None = None,
        on_progress: OnProgress | None = None,
    ) -> Psbt:
        return self._wait(self._bridge.sign(device_id, psbt, policy, signer=signer, on_progress=on_progress))

    def cancel(self, device_id: str) -> None:
        self._wait(self._bridge.cancel(device_id))

    def _wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Ctrl-C while waiting cancels the operation."""
        future = self._hand_over(work)
        try:
            return future.result()
        except FutureCancelled:
            raise Cancelled from None
        except BaseException:
            future.cancel()
            raise

    def _hand_over(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """:raises RuntimeError: outside of the `with` block, from a progress callback, or in a forked
        process.
        """
        with self._handing_over:
            if self._open and self._thread.is_alive() and threading.current_thread() is not self._thread:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        if self._open and self._thread.is_alive():
            raise RuntimeError("A progress callback cannot wait for the bridge: call it from another thread.")
        raise _NotOpen("The bridge works only inside its with block.")

    def _next(self, stream: AsyncIterator[DeviceEvent]) -> DeviceEvent | None:
        try:
            return self._wait(_next_of(stream))
        except (_NotOpen, Cancelled):
            return None

    async def _start_watching(self) -> tuple[AsyncIterator[DeviceEvent], asyncio.Task[None]]:
        return self._bridge.events(), asyncio.create_task(self._bridge.watch())

    async def _close(self) -> None:
        await self._bridge.__aexit__(None, None, None)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_default_executor()


async def _next_of(stream: AsyncIterator[DeviceEvent]) -> DeviceEvent | None:
    return await anext(stream, None)


def _in_thread(ask: BlockingAsk) -> Ask:
    async def put(question: Question) -> str | None:
        answer = asyncio.get_running_loop().create_future()
        # Not in a thread pool, whose shutdown would wait for the person at the keyboard.
        threading.Thread(target=_answer, args=(ask, question, answer), name="question", daemon=True).start()
        return cast("str | None", await answer)

    return put


def _answer(ask: BlockingAsk, question: Question, answer: asyncio.Future[str | None]) -> None:
    said: str | None = None
    error: Exception | None = None
    try:
        said = ask(question)
    except Exception as raised:  # noqa: BLE001 - the caller's code: raised where the question was awaited
        error = raised

    def tell() -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(said)
        else:
            answer.set_exception(error)

    # The loop may be closed by now.
    with contextlib.suppress(RuntimeError):
        answer.get_loop().call_soon_threadsafe(tell)


for _name, _method in vars(BlockingBridge).items():
    if not _name.startswith("_"):
        _method.__doc__ = _method.__doc__ or getattr(Bridge, _name).__doc__
