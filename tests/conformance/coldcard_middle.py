"""A man in the middle of a Coldcard's cable (S21): he shakes hands with both sides, reads everything, and
passes it on.
"""

import asyncio
import contextlib
import secrets
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path

from device_simulators.coldcard import replies
from device_simulators.coldcard.device import ColdcardSocket
from device_simulators.coldcard.wire import (
    PACKET_SIZE,
    ColdcardMessage,
    LinkSession,
    PacketAssembler,
    raw_public_key,
    shared_key,
    to_packets,
)
from device_simulators.seed import Seed
from multisig import DerivationPath, Network

_MASTER = DerivationPath(())
_HANDSHAKE = struct.Struct("<4sI64s")
_GREETING = struct.Struct("<4s64s4sI")


class Lie(Enum):
    """How he answers the question who is at the other end."""

    PASS_ON = "the device's signature, of the key of his own link with it"
    SIGN = "a signature by his own key, under the device's name"
    IMPERSONATE = "a signature by his own key, and that key as the device's in the handshake"
    REPLACE = "as before, and that key whenever the master key is asked for"


class Middle:
    """`heard`: the names of the commands that he has read in the clear."""

    def __init__(self, seed: Seed, network: Network, lie: Lie) -> None:
        self.heard: list[str] = []
        self._seed = seed
        self._network = network
        self._lie = lie
        self._host: LinkSession | None = None
        self._device: LinkSession | None = None
        self._from_host = PacketAssembler()
        self._from_device = PacketAssembler()

    async def relay(self, link: ColdcardSocket, cable: socket.socket) -> None:
        while True:
            packet, sender = await link.receive()
            message = self._from_host.feed(packet)
            if message is None:
                continue
            for part in to_packets(await self._answer(message, cable)):
                await link.send(part, sender)

    async def _answer(self, message: ColdcardMessage, cable: socket.socket) -> ColdcardMessage:
        if not message.encrypted:
            return ColdcardMessage(await self._shake_hands(message.data, cable), encrypted=False)
        assert self._host is not None
        assert self._device is not None
        command = self._host.decrypt(message.data)
        self.heard.append(command[:4].decode())
        request = ColdcardMessage(self._device.encrypt(command), encrypted=True)
        reply = self._device.decrypt((await self._ask(request, cable)).data)
        return ColdcardMessage(self._host.encrypt(self._falsify(command, reply)), encrypted=True)

    async def _shake_hands(self, greeting: bytes, cable: socket.socket) -> bytes:
        _name, version, raw_host = _HANDSHAKE.unpack(greeting)
        mine = secrets.token_bytes(32)
        self._host = LinkSession(shared_key(mine, raw_host))
        with_device = secrets.token_bytes(32)
        ours = ColdcardMessage(
            _HANDSHAKE.pack(b"ncry", version, raw_public_key(with_device)), encrypted=False
        )
        answer = (await self._ask(ours, cable)).data
        _name, raw_device, fingerprint, _length = _GREETING.unpack(answer[: _GREETING.size])
        self._device = LinkSession(shared_key(with_device, raw_device))
        xpub = answer[_GREETING.size :].decode()
        if self._lie in {Lie.IMPERSONATE, Lie.REPLACE}:
            xpub = self._own_key()
        return replies.handshake(raw_public_key(mine), fingerprint, xpub)

    def _falsify(self, command: bytes, reply: bytes) -> bytes:
        if command[:4] == b"mitm" and self._lie is not Lie.PASS_ON:
            assert self._host is not None
            return replies.binary(self._seed.sign_recoverable(_MASTER, self._host.key))
        if command == b"xpubm" and self._lie is Lie.REPLACE:
            return replies.text(self._own_key())
        return reply

    def _own_key(self) -> str:
        return str(self._seed.xpub(_MASTER, self._network))

    async def _ask(self, message: ColdcardMessage, cable: socket.socket) -> ColdcardMessage:
        loop = asyncio.get_running_loop()
        for part in to_packets(message):
            await loop.sock_sendall(cable, part)
        while True:
            answer = self._from_device.feed(await loop.sock_recv(cable, PACKET_SIZE))
            if answer is not None:
                return answer


@asynccontextmanager
async def in_the_middle(
    device: Path, at: str, *, seed: Seed, network: Network, lie: Lie
) -> AsyncIterator[Middle]:
    """He listens at `at`, and has the cable to the device at `device`."""
    middle = Middle(seed, network, lie)
    link = ColdcardSocket(Path(at))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as cable:
        cable.bind("")
        cable.settimeout(0)
        cable.connect(str(device))
        task = asyncio.create_task(middle.relay(link, cable))
        try:
            yield middle
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            link.close()
