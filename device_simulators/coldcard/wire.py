"""The link of a Coldcard Mk4 with firmware 5.4: its limits, messages in 64-byte packets, and their
encryption.

A packet is one header byte and 63 bytes, padded. The header holds the number of bytes that count (0 to 63),
0x80 on the last packet of a message, and 0x40 on that last packet when the message is encrypted. A packet
that carries no bytes resets the receiver and is not answered. Source: hwilib `devices/ckcc/client.py`,
`send_recv` and `resync`.

The key comes by Diffie-Hellman on secp256k1; then AES-256-CTR, one stream each way. Both streams start at
counter 0 at the handshake and run on without a break: a message lost, or answered for another host, makes
everything after it unreadable to the other side. That is what a second connection does to a first one.
Source: the same file, `ec_mult` and `aes_setup`.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from device_simulators.coldcard.replies import BadFraming, CommandRefused
from multisig import secp256k1

PACKET_SIZE: Final = 64  # one HID report, and one datagram
PAYLOAD_SIZE: Final = 63  # the first byte is the header
MAX_BLOCK: Final = 2048  # data in one upload or download message
MAX_MESSAGE: Final = 12 + MAX_BLOCK  # command, offset, total, block
MIN_MESSAGE: Final = 4  # the command alone
BLOCK_ALIGNMENT: Final = 256  # uploads go to pages of its memory

MAX_PSBT: Final = 2 * 1024 * 1024
SMALL_PSBT: Final = dict.fromkeys(("mk1", "mk2", "mk3"), 384 * 1024)  # before the Mk4
MAX_UPLOAD: Final = 2 * MAX_PSBT
MIN_PSBT: Final = 51

MIN_ENROLMENT: Final = 101
MAX_ENROLMENT: Final = 4_000
MAX_WALLET_NAME: Final = 20
MAX_COSIGNERS: Final = 15

MIN_TEXT: Final = 2
MAX_TEXT: Final = 240
MAX_SPACES_TOGETHER: Final = 2

MAX_PATH_DEPTH: Final = 12
MAX_FEE_PERCENT: Final = 10  # refused from here on
WARN_FEE_PERCENT: Final = 5  # warned from here on


LAST = 0x80
ENCRYPTED = 0x40
LENGTH_MASK = 0x3F


@dataclass(frozen=True)
class ColdcardMessage:
    """One whole message as it came off the wire, still encrypted where `encrypted` says so."""

    data: bytes
    encrypted: bool


def to_packets(message: ColdcardMessage) -> list[bytes]:
    """Cut a message into packets of 64 bytes."""
    chunks = [message.data[at : at + PAYLOAD_SIZE] for at in range(0, len(message.data), PAYLOAD_SIZE)]
    final = LAST | (ENCRYPTED if message.encrypted else 0)
    headers = [len(chunk) for chunk in chunks]
    headers[-1] |= final
    return [
        bytes([header]) + chunk.ljust(PAYLOAD_SIZE, b"\0")
        for header, chunk in zip(headers, chunks, strict=True)
    ]


class PacketAssembler:
    """Collects packets into messages. One per device: packets of two hosts mix, as in the real one."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, packet: bytes) -> ColdcardMessage | None:
        """Take one packet; return the message it completes, or None while more is to come.

        Raises BadFraming with the firmware's reason; the half-received message is then forgotten.
        """
        try:
            return self._take(packet)
        except BadFraming:
            self._buffer.clear()
            raise

    def _take(self, packet: bytes) -> ColdcardMessage | None:
        if len(packet) != PACKET_SIZE:
            raise BadFraming("short" if len(packet) < PACKET_SIZE else "long")
        header = packet[0]
        here = packet[1 : 1 + (header & LENGTH_MASK)]
        if not here:
            self._buffer.clear()
            return None
        if len(self._buffer) + len(here) > MAX_MESSAGE:
            raise BadFraming("xlong")
        self._buffer += here
        if not header & LAST:
            return None
        return self._complete(encrypted=bool(header & ENCRYPTED))

    def _complete(self, *, encrypted: bool) -> ColdcardMessage:
        if len(self._buffer) < MIN_MESSAGE:
            raise BadFraming("badsz")
        message = ColdcardMessage(bytes(self._buffer), encrypted)
        self._buffer.clear()
        return message


def raw_public_key(private: bytes) -> bytes:
    """The 64 bytes x‖y that travel in the handshake."""
    return secp256k1.uncompressed(secp256k1.public_key_of(private))[1:]


def shared_key(private: bytes, raw_peer: bytes) -> bytes:
    """SHA-256 of x‖y of the Diffie-Hellman point, 32 bytes. Raises CommandRefused for a point off the
    curve.
    """
    try:
        point = secp256k1.shared_point(private, b"\x04" + raw_peer)
    except ValueError as error:
        raise CommandRefused("bad pubkey") from error
    return sha256(point[1:]).digest()


class LinkSession:
    """One side's view of the link. The device signs `key` to show that there is no man in the middle."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        start = CTR(bytes(16))
        self._incoming = Cipher(AES256(key), start).decryptor()
        self._outgoing = Cipher(AES256(key), start).encryptor()

    def __repr__(self) -> str:
        return "Session(key=<redacted>)"

    def decrypt(self, data: bytes) -> bytes:
        """Read the next bytes that the host sent."""
        return self._incoming.update(data)

    def encrypt(self, data: bytes) -> bytes:
        """Make the next bytes for the host."""
        return self._outgoing.update(data)
