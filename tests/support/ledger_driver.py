"""The Ledger driver in this process, and a scripted device."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from device_simulators.ledger.device import VirtualLedger
from device_simulators.panel import Panel, approve_all
from device_simulators.seed import Seed
from firmware_bridge import hwi_client
from firmware_bridge.errors import BridgeError
from firmware_bridge.hwi_client.ledger.device import LedgerDevice
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.protocol import WorkerCall
from multisig import Network, Vault
from tests.conformance.rigs import NETWORK, SEEDS
from tests.support.driver import Person, policy_args
from tests.support.virtual import Record

ANOTHER = "11" * 32
"""A registration proof that no device made."""


def fails_with(code: str, match: str | None = None) -> pytest.RaisesExc[BridgeError]:
    return pytest.raises(
        BridgeError,
        check=lambda failure: (
            failure.code == code and (match is None or re.search(match, failure.detail or "") is not None)
        ),
    )


@dataclass
class Driven:
    """An open driver. Its calls block: each runs in a thread beside the device's event loop."""

    client: LedgerDevice
    caller: Person

    async def call(self, op: str, **args: Any) -> Any:
        return await asyncio.to_thread(self.client.call, op, args)

    async def enrol(self, vault: Vault) -> str:
        return str(await self.call("enrol", policy=policy_args(vault), again=False))


@asynccontextmanager
async def driven(endpoint: Endpoint, network: Network = NETWORK) -> AsyncIterator[Driven]:
    caller = Person()
    client = await asyncio.to_thread(
        hwi_client.open_device, endpoint, network, caller, WorkerCall(0, "probe")
    )
    try:
        yield Driven(client, caller)
        assert caller.asked == [], "a Ledger asks nothing at the computer"
    finally:
        client.close()


@dataclass
class Bench:
    """A virtual Ledger, its screen, and the driver on it. A test must make a call: before that the connection
    may not have reached the device, which then cannot close it.
    """

    device: VirtualLedger
    panel: Panel
    endpoint: Endpoint
    driver: Driven
    record: Record


@asynccontextmanager
async def bench(network: Network = NETWORK, seed: Seed = SEEDS[0], **options: Any) -> AsyncIterator[Bench]:
    panel = Panel(approve_all)
    device = VirtualLedger(seed, panel, NETWORK, **options)
    record = Record(panel)
    endpoint = await device.start()
    try:
        async with driven(endpoint, network) as driver:
            yield Bench(device, panel, endpoint, driver, record)
    finally:
        await device.stop()


def reply(status: int, data: bytes = b"") -> bytes:
    return len(data).to_bytes(4) + data + status.to_bytes(2)


def version(name: str = "Bitcoin Test", number: str = "2.4.6") -> bytes:
    texts = b"".join(bytes([len(text)]) + text.encode() for text in (name, number))
    return reply(0x9000, b"\x01" + texts + b"\x01\x00")


class Cut(bytes):
    """In a script: a truncated answer, after which the connection is closed."""


@dataclass
class Scripted:
    """Answers a command by its first two bytes: from a list, whose last entry repeats, or by a function."""

    answers: Mapping[bytes, Sequence[bytes] | Callable[[bytes], bytes]]
    commands: list[bytes] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def connections(self) -> int:
        return len(self.writers)

    def count(self, head: bytes) -> int:
        return sum(command.startswith(head) for command in self.commands)

    def _answer(self, command: bytes) -> bytes:
        listed = self.answers[command[:2]]
        return listed(command) if callable(listed) else listed[min(self.count(command[:2]), len(listed) - 1)]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4))
                command = await reader.readexactly(size)
                answer = self._answer(command)
                self.commands.append(command)
                writer.write(answer)
                if isinstance(answer, Cut):
                    return
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def scripted(
    answers: Mapping[bytes, Sequence[bytes] | Callable[[bytes], bytes]],
) -> AsyncIterator[tuple[Scripted, Endpoint]]:
    script = Scripted(answers)
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield script, Endpoint(Family.LEDGER, f"tcp:{host}:{port}")
    finally:
        server.close()
        for writer in script.writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
