"""A host that speaks Ledger's protocol, with HWI's own commitments and answers to the device's requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hwilib.devices.ledger_bitcoin.client_command import ClientCommandInterpreter
from hwilib.devices.ledger_bitcoin.command_builder import BitcoinCommandBuilder
from hwilib.devices.ledger_bitcoin.wallet import WalletPolicy

from device_simulators.ledger import VirtualLedger
from device_simulators.panel import Panel, approve_all
from device_simulators.seed import Seed
from firmware_bridge.model import Endpoint
from tests.support.patience import PATIENCE
from tests.support.virtual import NETWORK, seed

OK, INTERRUPTED = 0x9000, 0xE000
build = BitcoinCommandBuilder()


class Host:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def exchange(self, cla: int, ins: int, data: bytes = b"", p1: int = 0, p2: int = 1):
        """Status word and data of the answer."""
        apdu = bytes((cla, ins, p1, p2, len(data))) + data
        self.writer.write(len(apdu).to_bytes(4) + apdu)
        async with asyncio.timeout(PATIENCE):
            length = int.from_bytes(await self.reader.readexactly(4))
            answer = await self.reader.readexactly(length + 2)
        return int.from_bytes(answer[-2:]), answer[:-2]

    async def run(self, apdu: dict, policy: WalletPolicy) -> tuple[int, bytes]:
        """A whole command about this policy, with the device's requests."""
        interpreter = ClientCommandInterpreter()
        interpreter.add_known_list([key.encode() for key in policy.keys_info])
        interpreter.add_known_preimage(policy.serialize())
        interpreter.add_known_preimage(policy.descriptor_template.encode())
        status, data = await self.exchange(**apdu)
        while status == INTERRUPTED:
            answer = interpreter.execute(data)
            status, data = await self.exchange(**build.continue_interrupted(answer))
        return status, data

    async def register(self, policy: WalletPolicy) -> tuple[int, bytes]:
        return await self.run(build.register_wallet(policy), policy)

    async def address(self, policy: WalletPolicy, mark: bytes) -> tuple[int, bytes]:
        """The first one, without showing it."""
        return await self.run(build.get_wallet_address(policy, mark, 0, 0, display=False), policy)


@asynccontextmanager
async def host_of(endpoint: Endpoint) -> AsyncIterator[Host]:
    name, port = endpoint.place.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(name, int(port))
    try:
        yield Host(reader, writer)
    finally:
        writer.transport.abort()


@dataclass
class Table:
    """A device and its host."""

    host: Host
    endpoint: Endpoint


@asynccontextmanager
async def table(of: Seed | None = None) -> AsyncIterator[Table]:
    device = VirtualLedger(of or seed(), Panel(approve_all), NETWORK)
    endpoint = await device.start()
    try:
        async with host_of(endpoint) as host:
            yield Table(host, endpoint)
    finally:
        await device.stop()
