"""Messages cut into 64-byte packets, and put together again.

A packet is one header byte and 63 bytes, padded. The header holds the number of bytes that count (0 to 63), 0x80 on
the last packet of a message, and 0x40 on that last packet when the message is encrypted. A packet that carries no
bytes resets the receiver and is not answered. Source: hwilib `devices/ckcc/client.py`, `send_recv` and `resync`.
"""

from dataclasses import dataclass

from device_simulators.coldcard.errors import BadFraming
from device_simulators.coldcard.limits import MAX_MESSAGE, MIN_MESSAGE, PACKET_SIZE, PAYLOAD_SIZE

LAST = 0x80
ENCRYPTED = 0x40
LENGTH_MASK = 0x3F


@dataclass(frozen=True)
class Message:
    """One whole message as it came off the wire, still encrypted where `encrypted` says so."""

    data: bytes
    encrypted: bool


def to_packets(message: Message) -> list[bytes]:
    """Cut a message into packets of 64 bytes."""
    chunks = [message.data[at : at + PAYLOAD_SIZE] for at in range(0, len(message.data), PAYLOAD_SIZE)]
    final = LAST | (ENCRYPTED if message.encrypted else 0)
    headers = [len(chunk) for chunk in chunks]
    headers[-1] |= final
    return [
        bytes([header]) + chunk.ljust(PAYLOAD_SIZE, b"\0")
        for header, chunk in zip(headers, chunks, strict=True)
    ]


class Assembler:
    """Collects packets into messages. One per device: packets of two hosts mix, as in the real one."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, packet: bytes) -> Message | None:
        """Take one packet; return the message it completes, or None while more is to come.

        Raises BadFraming with the firmware's reason; the half-received message is then forgotten.
        """
        try:
            return self._take(packet)
        except BadFraming:
            self._buffer.clear()
            raise

    def _take(self, packet: bytes) -> Message | None:
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

    def _complete(self, *, encrypted: bool) -> Message:
        if len(self._buffer) < MIN_MESSAGE:
            raise BadFraming("badsz")
        message = Message(bytes(self._buffer), encrypted)
        self._buffer.clear()
        return message
