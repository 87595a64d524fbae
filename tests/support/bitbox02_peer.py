"""A BitBox02 on a TCP port, like the maker's simulator: frames, the Noise channel with its pairing,
and a wallet.
"""

import socketserver
from collections.abc import Iterator
from dataclasses import dataclass, field

from noise.connection import Keypair, NoiseConnection

from firmware_bridge.model import Family
from tests.support.bitbox02_wallet import Wallet

_PROTOCOL = b"Noise_XX_25519_ChaChaPoly_SHA256"
_REPORT, _FIRST, _NEXT = 64, 57, 59
_COMMAND = 0xC1
_ACK, _NOT_READY, _BUSY = b"\x00", b"\x01", b"\x02"
_NEW, _RETRY, _CANCEL, _INFO = 0x00, 0x01, 0x02, ord("i")
_OK, _NO = b"\x00", b"\x01"


class Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while (packet := self._packet()) is not None:
            channel, data = packet
            answer = self.server.peer.packet(data)
            if answer is None:
                return
            for report in _reports(channel, answer):
                self.request.sendall(report)

    def _packet(self) -> tuple[bytes, bytes] | None:
        first = self._report()
        if first is None:
            return None
        size, data = int.from_bytes(first[5:7]), first[7:]
        while len(data) < size:
            data += self._report()[5:]
        return first[:4], data[:size]

    def _report(self) -> bytes | None:
        data = b""
        while len(data) < _REPORT:
            part = self.request.recv(_REPORT - len(data))
            if not part:
                return None
            data += part
        return data


@dataclass
class BitBox02Peer:
    """The device. What takes a person (`slow`) is answered only when the host has asked again
    `patience` times.
    """

    handler = Handler
    family = Family.BITBOX02
    wallet: Wallet
    version: str = "v9.23.0"
    platform: int = 0
    edition: int = 0
    unlocked: bool = True
    knows_host: bytes | None = None
    static: bytes = b"\x11" * 32
    busy: int = 0
    patience: int = 1
    endless: bool = False
    vanish_at: bytes | None = None
    operations: list[bytes] = field(default_factory=list)
    cancelled: bool = False
    _noise: NoiseConnection | None = None
    _open: tuple[int, bytes] | None = None

    def packet(self, data: bytes) -> bytes | None:
        """The answer, or None where the cable is pulled."""
        kind, message = data[0], data[1:]
        if kind == _INFO:
            return self._info()
        if kind == _NEW:
            return self._begin(message)
        if kind == _CANCEL:
            self.cancelled = True
            _left, message = self._open
            self._open = None
            return _ACK + self._refuse(message)
        return self._go_on()

    def _info(self) -> bytes:
        version = self.version.encode()
        flags = bytes([self.platform, self.edition, self.unlocked, self.wallet.initialized])
        return bytes([len(version)]) + version + flags

    def _begin(self, message: bytes) -> bytes | None:
        if self.busy:
            self.busy -= 1
            return _BUSY
        self.operations.append(message[:1])
        if message[:1] == self.vanish_at:
            return None
        if message[:1] in {b"u", b"v"} and (self.patience or self.endless):
            self._open = (self.patience, message)
            return _NOT_READY
        return _ACK + self._do(message)

    def _go_on(self) -> bytes:
        left, message = self._open
        if left > 1 or self.endless:
            self._open = (left - 1, message)
            return _NOT_READY
        self._open = None
        return _ACK + self._do(message)

    def _refuse(self, message: bytes) -> bytes:
        return _NO if message[:1] in {b"u", b"v"} else _OK

    def _do(self, message: bytes) -> bytes:
        name, data = message[:1], message[1:]
        match name:
            case b"a":
                return _NO
            case b"u":
                self.unlocked = self.unlocked or self.wallet.decide("unlock")
                return _OK if self.unlocked else _NO
            case b"h":
                return self._start_handshake()
            case b"H":
                return self._handshake(data)
            case b"v":
                return self._pair()
        return _OK + self._noise.encrypt(self.wallet.answer(self._noise.decrypt(data)))

    def _start_handshake(self) -> bytes:
        self._noise = NoiseConnection.from_name(_PROTOCOL)
        self._noise.set_as_responder()
        self._noise.set_keypair_from_private_bytes(Keypair.STATIC, self.static)
        self._noise.set_prologue(_PROTOCOL)
        self._noise.start_handshake()
        return _OK

    def _pair(self) -> bytes:
        if not self.wallet.decide("pairing"):
            return _NO
        self.knows_host = self._host
        return _OK

    def _handshake(self, data: bytes) -> bytes:
        state = self._noise.noise_protocol.handshake_state
        self._noise.read_message(data)
        if not self._noise.handshake_finished:
            return _OK + self._noise.write_message()
        self._host = state.rs.public_bytes
        return _OK + (b"\x00" if self._host == self.knows_host else b"\x01")


def _reports(channel: bytes, data: bytes) -> Iterator[bytes]:
    head = channel + bytes([_COMMAND]) + len(data).to_bytes(2)
    yield (head + data[:_FIRST]).ljust(_REPORT, b"\xee")
    for number, start in enumerate(range(_FIRST, len(data), _NEXT)):
        yield (channel + bytes([number]) + data[start : start + _NEXT]).ljust(_REPORT, b"\xee")
