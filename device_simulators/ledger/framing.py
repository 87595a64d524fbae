"""The device's stream: each command behind its length, each answer behind the length of its data, then the status word."""

from device_simulators.ledger.apdu import MAX_APDU_BYTES, Reply

LENGTH_BYTES = 4

_CUT_SHORT = b"\xff" * 60
GARBAGE = (0xFFFF).to_bytes(LENGTH_BYTES) + _CUT_SHORT
"""No answer: it announces far more than there is. Small enough that a host which believes it can make room."""


class MalformedStream(Exception):
    """A length that no command has. What follows cannot be told apart any more: the connection is to be closed."""


class Assembler:
    """Cuts the bytes of one connection into commands, however they arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Every command that is complete now.

        :raises MalformedStream: a command is announced as empty or as larger than any.
        """
        self._buffer += data
        complete = []
        while (end := self._end()) is not None:
            complete.append(bytes(self._buffer[LENGTH_BYTES:end]))
            del self._buffer[:end]
        return complete

    def _end(self) -> int | None:
        if len(self._buffer) < LENGTH_BYTES:
            return None
        length = int.from_bytes(self._buffer[:LENGTH_BYTES])
        if not 0 < length <= MAX_APDU_BYTES:
            raise MalformedStream(f"a command of {length} bytes")
        end = LENGTH_BYTES + length
        return end if len(self._buffer) >= end else None


def to_bytes(reply: Reply) -> bytes:
    """The length does not count the status word."""
    return len(reply.data).to_bytes(LENGTH_BYTES) + reply.data + reply.status.to_bytes(2)
