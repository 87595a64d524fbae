"""A minimal host of Trezor's protocol, so that a test may lie, stop or disconnect at any message."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from device_simulators.trezor import messages as m
from device_simulators.trezor.wire import Message, Reassembler, decode, encode, to_chunks
from firmware_bridge.model import Endpoint
from multisig import HARDENED, Network, Psbt, Transaction, Vault, encode_address
from tests.support.patience import PATIENCE
from tests.support.virtual import seed

NOTHING = 0.05
"""Seconds without an answer that count as silence."""

MASTER = (HARDENED,)
A = TypeVar("A", bound=Message)


class Host(asyncio.DatagramProtocol):
    """A UDP port, which the device sees as one host."""

    def __init__(self) -> None:
        self.patience = PATIENCE
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._reassembler = Reassembler()
        self.transport: asyncio.DatagramTransport
        self.closed = asyncio.Event()

    def connection_made(self, transport) -> None:
        self.transport = transport

    def connection_lost(self, exc) -> None:
        self.closed.set()

    def datagram_received(self, data, addr) -> None:
        self._chunks.put_nowait(data)

    def send(self, message: Message) -> None:
        self.send_raw(m.NUMBERS[type(message)], encode(message))

    def send_raw(self, number: int, payload: bytes) -> None:
        for chunk in to_chunks(number, payload):
            self.transport.sendto(chunk)

    async def chunk(self) -> bytes:
        return await asyncio.wait_for(self._chunks.get(), self.patience)

    async def receive(self) -> Message:
        while True:
            complete = self._reassembler.feed(await self.chunk())
            if complete is not None:
                number, payload = complete
                return decode(m.BY_NUMBER[number], payload)

    async def call(self, message: Message, answer: type[A]) -> A:
        self.send(message)
        got = await self.receive()
        assert isinstance(got, answer), got
        return got

    async def fails(self, message: Message) -> m.Failure:
        return await self.call(message, m.Failure)

    async def hears_nothing(self) -> bool:
        try:
            await asyncio.wait_for(self._chunks.get(), NOTHING)
        except TimeoutError:
            return True
        return False

    async def initialize(self) -> m.Features:
        return await self.call(m.Initialize(), m.Features)


@asynccontextmanager
async def host_of(endpoint: Endpoint, port_offset: int = 0) -> AsyncIterator[Host]:
    """A new host of the device; `port_offset` 1 talks to its debug link."""
    address, port = endpoint.place.rsplit(":", 1)
    transport, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        Host, remote_addr=(address, int(port) + port_offset)
    )
    try:
        yield protocol
    finally:
        transport.close()
        await protocol.closed.wait()


@dataclass
class SpendingHost:
    """What a host knows of a spend. Tests falsify it before or while it is sent."""

    request: m.SignTx
    inputs: list[m.TxInput]
    outputs: list[m.TxOutput]
    previous: dict[bytes, Transaction]
    signatures: dict[int, bytes] = field(default_factory=dict)
    asked: list[tuple[int, int | None]] = field(default_factory=list)
    """(kind of request, index) in the order they came, for the transaction to sign."""

    async def run(self, host: Host) -> m.Failure | None:
        """Answers until the device has finished or aborted."""
        host.send(self.request)
        while True:
            message = await host.receive()
            match message:
                case m.Failure():
                    return message
                case m.ButtonRequest():
                    host.send(m.ButtonAck())
                case m.TxRequest():
                    self._keep(message.serialized)
                    if message.request_type == m.TxRequestType.FINISHED:
                        return None
                    assert message.details is not None
                    host.send(m.TxAck(tx=self.part(message.request_type, message.details)))
                case _:
                    raise AssertionError(message)

    def part(self, kind: int, details: m.TxRequestDetails) -> m.TxPart:
        index = details.request_index
        if details.tx_hash is not None:
            return previous_part(self.previous[details.tx_hash], kind, index)
        self.asked.append((kind, index))
        assert index is not None
        if kind == m.TxRequestType.INPUT:
            return m.TxPart(inputs=(self.inputs[index],))
        return m.TxPart(outputs=(self.outputs[index],))

    def _keep(self, signed: m.TxRequestSerialized | None) -> None:
        if signed is not None:
            self.signatures[signed.signature_index] = signed.signature


def previous_part(transaction: Transaction, kind: int, index: int | None) -> m.TxPart:
    if kind == m.TxRequestType.META:
        return m.TxPart(
            version=transaction.version,
            lock_time=transaction.locktime,
            inputs_cnt=len(transaction.inputs),
            outputs_cnt=len(transaction.outputs),
        )
    assert index is not None
    if kind == m.TxRequestType.INPUT:
        got = transaction.inputs[index]
        return m.TxPart(
            inputs=(
                m.TxInput(
                    prev_hash=bytes.fromhex(got.outpoint.txid),
                    prev_index=got.outpoint.vout,
                    script_sig=got.script_sig,
                    sequence=got.sequence,
                ),
            )
        )
    made = transaction.outputs[index]
    return m.TxPart(bin_outputs=(m.TxOutputBin(amount=made.amount, script_pubkey=made.script_pubkey),))


def spending(psbt: Psbt, vault: Vault, number: int = 0) -> SpendingHost:
    """An honest host that knows what cosigner `number` signs."""
    return SpendingHost(
        request=m.SignTx(
            inputs_count=len(psbt.inputs),
            outputs_count=len(psbt.outputs),
            coin_name="Testnet",
            version=psbt.tx.version,
            lock_time=psbt.tx.locktime,
            serialize=False,
        ),
        inputs=[_input(item, vault, number) for item in psbt.inputs],
        outputs=[_output(item, vault, number) for item in psbt.outputs],
        previous={bytes.fromhex(item.outpoint.txid): item.non_witness_utxo for item in psbt.inputs},
    )


def quorum(vault: Vault, chain: int, index: int) -> m.MultisigRedeemScript:
    nodes = tuple(
        m.HDNodePath(
            node=m.HDNode(
                depth=key.xpub.depth,
                fingerprint=int.from_bytes(bytes(key.xpub.parent_fingerprint), "big"),
                child_num=key.xpub.child_number,
                chain_code=key.xpub.chain_code,
                public_key=key.xpub.public_key,
            ),
            address_n=(chain, index),
        )
        for key in vault.cosigners
    )
    return m.MultisigRedeemScript(pubkeys=nodes, m=vault.threshold, pubkeys_order=m.KeyOrder.LEXICOGRAPHIC)


def _own_path(derivations, number: int) -> tuple[int, ...] | None:
    own = seed(number).fingerprint
    return next((origin.path.indexes for origin in derivations.values() if origin.fingerprint == own), None)


def _input(item, vault: Vault, number: int) -> m.TxInput:
    path = _own_path(item.derivations, number)
    assert path is not None
    return m.TxInput(
        address_n=path,
        prev_hash=bytes.fromhex(item.outpoint.txid),
        prev_index=item.outpoint.vout,
        sequence=item.sequence,
        script_type=m.InputScript.WITNESS,
        multisig=quorum(vault, *path[-2:]),
        amount=item.witness_utxo.amount,
    )


def _output(item, vault: Vault, number: int) -> m.TxOutput:
    path = _own_path(item.derivations, number)
    if path is None:
        return m.TxOutput(address=encode_address(item.script_pubkey, Network.TESTNET4), amount=item.amount)
    return m.TxOutput(
        address_n=path,
        amount=item.amount,
        script_type=m.OutputScript.TO_WITNESS,
        multisig=quorum(vault, *path[-2:]),
    )
