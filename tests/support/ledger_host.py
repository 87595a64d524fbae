"""A host that speaks Ledger's protocol, so that a test may lie, stop or disconnect at any command.

HWI's own code makes its commitments and answers the device's requests; `tamper` may change every answer.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO

from hwilib.common import AddressType
from hwilib.devices.ledger_bitcoin.client import parse_stream_to_map
from hwilib.devices.ledger_bitcoin.client_command import ClientCommandInterpreter
from hwilib.devices.ledger_bitcoin.command_builder import BitcoinCommandBuilder
from hwilib.devices.ledger_bitcoin.merkle import get_merkleized_map_commitment
from hwilib.devices.ledger_bitcoin.wallet import MultisigWallet, WalletPolicy
from hwilib.psbt import PSBT

from device_simulators.ledger import VirtualLedger
from device_simulators.panel import Panel, Script, approve_all
from device_simulators.seed import Seed
from firmware_bridge.model import Endpoint
from multisig import OriginKey, Profile, Psbt, Vault
from tests.support.patience import PATIENCE
from tests.support.virtual import NETWORK, Record, seed, vault

"""Seconds for an answer of a device in the same process."""
NOTHING = 0.05
"""Seconds without an answer that count as silence."""

OK, INTERRUPTED = 0x9000, 0xE000
VAULT = vault()

Tamper = Callable[[bytes, bytes], bytes]
build = BitcoinCommandBuilder()


def key_text(key: OriginKey) -> str:
    """As HWI writes a key for a Ledger: ' marks a hardened step."""
    origin, bracket, xpub = str(key).partition("]")
    return origin.replace("h", "'") + bracket + xpub


def policy_of(
    of: Vault | Profile, *, name: str = "Savings", order: Sequence[int] | None = None, is_sorted: bool = True
) -> WalletPolicy:
    """A vault's policy under a name, with its keys in this order; a profile's unnamed default policy."""
    if isinstance(of, Profile):
        return WalletPolicy("", "wpkh(@0/**)", [key_text(of.key)])
    keys = [key_text(of.cosigners[at]) for at in order or range(len(of.cosigners))]
    return MultisigWallet(name, AddressType.WIT, of.threshold, keys, sorted=is_sorted)


class Host:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.yielded: list[bytes] = []

    def send(self, cla: int, ins: int, data: bytes = b"", p1: int = 0, p2: int = 1) -> None:
        self.send_raw(bytes((cla, ins, p1, p2, len(data))) + data)

    def send_raw(self, apdu: bytes) -> None:
        self.writer.write(len(apdu).to_bytes(4) + apdu)

    async def receive(self) -> tuple[int, bytes]:
        """Status word and data."""
        async with asyncio.timeout(PATIENCE):
            length = int.from_bytes(await self.reader.readexactly(4))
            answer = await self.reader.readexactly(length + 2)
        return int.from_bytes(answer[-2:]), answer[:-2]

    async def exchange(self, cla: int, ins: int, data: bytes = b"", p1: int = 0, p2: int = 1):
        self.send(cla, ins, data, p1, p2)
        return await self.receive()

    async def hears_nothing(self) -> bool:
        try:
            await asyncio.wait_for(self.reader.readexactly(1), NOTHING)
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            return True
        return False

    async def run(
        self, apdu: dict, interpreter: ClientCommandInterpreter | None = None, tamper: Tamper | None = None
    ) -> tuple[int, bytes]:
        """A whole command with the device's requests; `tamper` receives request and answer."""
        status, data = await self.exchange(**apdu)
        while status == INTERRUPTED:
            answer = interpreter.execute(data) if tamper is None else _lie(interpreter, data, tamper)
            status, data = await self.exchange(**build.continue_interrupted(answer))
        self.yielded = [] if interpreter is None else list(interpreter.yielded)
        return status, data

    async def register(self, policy: WalletPolicy, tamper: Tamper | None = None) -> tuple[int, bytes]:
        return await self.run(build.register_wallet(policy), interpreter_of(policy), tamper)

    async def address(
        self,
        policy: WalletPolicy,
        mark: bytes | None,
        chain: int = 0,
        index: int = 0,
        *,
        display: bool = True,
    ) -> tuple[int, bytes]:
        apdu = build.get_wallet_address(policy, mark, index, chain, display)
        return await self.run(apdu, interpreter_of(policy))

    async def sign_message(self, text: bytes, path: str, tamper: Tamper | None = None) -> tuple[int, bytes]:
        interpreter = ClientCommandInterpreter()
        interpreter.add_known_list([text[at : at + 64] for at in range(0, len(text), 64)])
        return await self.run(build.sign_message(text, path), interpreter, tamper)

    async def sign(
        self, spending: "Spending", mark: bytes | None = None, tamper: Tamper | None = None
    ) -> tuple[int, bytes]:
        return await self.run(spending.apdu(mark), spending.interpreter(), tamper)


def _lie(interpreter: ClientCommandInterpreter, request: bytes, tamper: Tamper) -> bytes:
    try:
        return tamper(request, interpreter.execute(request))
    except (ValueError, RuntimeError):
        return b""  # the device asks for what a lie committed to, which the host does not have


def interpreter_of(policy: WalletPolicy) -> ClientCommandInterpreter:
    interpreter = ClientCommandInterpreter()
    interpreter.add_known_list([key.encode() for key in policy.keys_info])
    interpreter.add_known_preimage(policy.serialize())
    interpreter.add_known_preimage(policy.descriptor_template.encode())
    return interpreter


@dataclass
class Spending:
    """A transaction as a host commits to it: maps that a test may change before it sends them."""

    policy: WalletPolicy
    globals: dict[bytes, bytes]
    inputs: list[dict[bytes, bytes]]
    outputs: list[dict[bytes, bytes]]

    def apdu(self, mark: bytes | None) -> dict:
        return build.sign_psbt(self.globals, self.inputs, self.outputs, self.policy, mark)

    def interpreter(self) -> ClientCommandInterpreter:
        interpreter = interpreter_of(self.policy)
        for mapping in (self.globals, *self.inputs, *self.outputs):
            interpreter.add_known_mapping(mapping)
        for maps in (self.inputs, self.outputs):
            interpreter.add_known_list([get_merkleized_map_commitment(one) for one in maps])
        return interpreter


def spending(psbt: Psbt, policy: WalletPolicy) -> Spending:
    """The PSBT in version 2, as HWI converts it."""
    theirs = PSBT()
    theirs.deserialize(psbt.to_base64())
    theirs.convert_to_v2()
    stream = BytesIO(base64.b64decode(theirs.serialize()))
    assert stream.read(5) == b"psbt\xff"
    maps = [dict(parse_stream_to_map(stream)) for _ in range(1 + len(psbt.inputs) + len(psbt.outputs))]
    split = 1 + len(psbt.inputs)
    return Spending(policy, maps[0], maps[1:split], maps[split:])


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
    """A device, its host, and what was shown."""

    device: VirtualLedger
    host: Host
    record: Record
    endpoint: Endpoint


@asynccontextmanager
async def table(
    script: Script = approve_all, *, of: Seed | None = None, network=NETWORK, **options
) -> AsyncIterator[Table]:
    device = VirtualLedger(of or seed(), Panel(script), network, **options)
    endpoint = await device.start()
    try:
        async with host_of(endpoint) as host:
            yield Table(device, host, Record(device.panel), endpoint)
    finally:
        await device.stop()


async def registered(host: Host, policy: WalletPolicy) -> bytes:
    """The HMAC that the device returns for this policy."""
    status, data = await host.register(policy)
    assert status == OK
    return data[32:]
