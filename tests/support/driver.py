"""A driver of `firmware_bridge.hwi_client` without a worker: called in a thread beside the virtual
device's loop.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from firmware_bridge import sanitised_psbt
from firmware_bridge.errors import BridgeError
from firmware_bridge.hwi_client import open_device
from firmware_bridge.model import Endpoint
from firmware_bridge.operations import PolicyText
from firmware_bridge.protocol import DeviceClient, Question, WorkerCall
from multisig import Network, Policy, Psbt, Vault
from tests.conformance.rigs import NETWORK

_PLAIN = WorkerCall(0, "probe")


@dataclass
class Person:
    """Records messages and answers questions; without an answer left, it does not answer."""

    answers: dict[Question, list[str | Exception]] = field(default_factory=dict)
    told: list[tuple[str, str, int | None, int | None]] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    on_ask: Callable[[Question], str] | None = None
    on_step: Callable[[str], object] = lambda _step: None
    """Called from the driver's thread."""

    def tell(self, step: str, text: str, done: int | None = None, total: int | None = None) -> None:
        self.told.append((step, text, done, total))
        self.on_step(step)

    def ask(self, question: Question) -> str | None:
        self.asked.append(question)
        if self.on_ask is not None:
            return self.on_ask(question)
        waiting = self.answers.get(question)
        answer = waiting.pop(0) if waiting else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def steps(self) -> list[str]:
        return [step for step, *_ in self.told]

    def hears(self, step: str, do: Callable[[], object] = lambda: None) -> asyncio.Event:
        """Set, and ``do`` done before, when the driver tells this step."""
        heard, loop = asyncio.Event(), asyncio.get_running_loop()

        def listen(current: str) -> None:
            if current == step:
                do()
                loop.call_soon_threadsafe(heard.set)

        self.on_step = listen
        return heard


@contextmanager
def opened(
    endpoint: Endpoint, person: Person, request: WorkerCall = _PLAIN, network: Network = NETWORK
) -> Iterator[DeviceClient]:
    client = open_device(endpoint, network, person, request)
    try:
        yield client
    finally:
        client.close()


async def drive(
    endpoint: Endpoint,
    op: str,
    args: Mapping[str, Any] | None = None,
    *,
    person: Person | None = None,
    session: str | None = None,
    recover: bool = False,
    network: Network = NETWORK,
) -> Any:
    """One operation of a newly opened driver."""

    def work() -> Any:
        with opened(
            endpoint, person or Person(), WorkerCall(0, "probe", recover=recover, session=session), network
        ) as client:
            return client.call(op, args or {})

    return await asyncio.to_thread(work)


async def fails(
    endpoint: Endpoint, op: str, args: Mapping[str, Any] | None = None, **options: Any
) -> tuple[str, str | None]:
    """(code, detail) of the outcome."""
    try:
        answer = await drive(endpoint, op, args, **options)
    except BridgeError as failure:
        return failure.code, failure.detail
    raise AssertionError(f"{op} did not fail: {answer}")


@asynccontextmanager
async def under_way(
    endpoint: Endpoint, op: str, args: Mapping[str, Any] | None = None
) -> AsyncIterator[tuple[DeviceClient, asyncio.Task]]:
    """An operation in progress: the client, and the task of the call."""
    client = await asyncio.to_thread(open_device, endpoint, NETWORK, Person(), _PLAIN)
    try:
        yield client, asyncio.create_task(asyncio.to_thread(client.call, op, args or {}))
    finally:
        client.close()


def sign_args(
    psbt: Psbt, policy: Policy, *, payments: int | None = 1, resume: bool = False
) -> dict[str, Any]:
    content = base64.b64encode(sanitised_psbt.for_device(psbt, policy)).decode()
    return {"psbt": content, "policy": policy_args(policy), "payments": payments, "resume": resume}


def policy_args(policy: Policy, name: str = "Savings", hmac: str | None = None) -> PolicyText:
    """The policy as the bridge sends it to a worker, but with its keys in their own order."""
    if not isinstance(policy, Vault):
        return PolicyText("profile", name, 1, (str(policy.key),), hmac)
    return PolicyText("vault", name, policy.threshold, tuple(map(str, policy.cosigners)), hmac)
