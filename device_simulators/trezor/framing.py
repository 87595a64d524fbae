"""How a Trezor cuts a message into 64-byte chunks (its wire protocol, version 1).

The first chunk is `?##`, the message number (16 bits), its length (32 bits, both big-endian) and data; every further one
is `?` and 63 bytes of data. The last is padded with zeros.
"""

from dataclasses import dataclass, field

CHUNK = 64
PING = b"PINGPING"
"""What a host sends to a UDP port to learn whether an emulator listens there; the answer is `PONG`."""
PONG = b"PONGPONG"

MAX_MESSAGE = 64 * 1024
"""Bytes. Firmware 1.14 takes 15 KiB; the largest message of a transaction here, a 15-key input, is under 3 KiB."""

_MAGIC = b"?##"
_HEADER = len(_MAGIC) + 2 + 4


class MalformedFrame(Exception):
    """A chunk that is no part of a message."""


def to_chunks(number: int, payload: bytes) -> list[bytes]:
    """The chunks of one message, each of 64 bytes."""
    stream = b"##" + number.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload
    step = CHUNK - 1
    return [(b"?" + stream[at : at + step]).ljust(CHUNK, b"\0") for at in range(0, len(stream), step)]


@dataclass
class Reassembler:
    """Collects one host's chunks into messages."""

    _number: int = 0
    _missing: int = 0
    _parts: list[bytes] = field(default_factory=list)

    def feed(self, chunk: bytes) -> tuple[int, bytes] | None:
        """The message (number, payload) that this chunk completes, if it does.

        :raises MalformedFrame: not 64 bytes, no magic, or too long a message. What was collected is dropped.
        """
        if len(chunk) != CHUNK:
            raise self._malformed(f"a chunk of {len(chunk)} bytes")
        # A host that starts anew has given up what it began; so does the firmware.
        data = self._begin(chunk) if chunk.startswith(_MAGIC) else self._continue(chunk)
        taken = data[: self._missing]
        self._parts.append(taken)
        self._missing -= len(taken)
        if self._missing:
            return None
        payload = b"".join(self._parts)
        self._parts = []
        return self._number, payload

    def _begin(self, chunk: bytes) -> bytes:
        self._parts = []
        self._number = int.from_bytes(chunk[3:5], "big")
        self._missing = int.from_bytes(chunk[5:_HEADER], "big")
        if self._missing > MAX_MESSAGE:
            raise self._malformed(f"a message of {self._missing} bytes")
        return chunk[_HEADER:]

    def _continue(self, chunk: bytes) -> bytes:
        if chunk[:1] != b"?" or not self._missing:
            raise self._malformed("a chunk that continues nothing")
        return chunk[1:]

    def _malformed(self, what: str) -> MalformedFrame:
        self._parts = []
        self._missing = 0
        return MalformedFrame(what)
