"""The app's wire: commands and answers (APDUs and status words; ISO 7816-4; app-bitcoin-new, doc/bitcoin.md),
and the TCP stream that carries them: each command behind its length, each answer behind the length of its
data, then the status word.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Self

HEADER_BYTES = 5
MAX_DATA_BYTES = 255
"""The length of the data is one byte."""
MAX_APDU_BYTES = HEADER_BYTES + MAX_DATA_BYTES


class Class(IntEnum):
    """The class byte: what a command is addressed to."""

    SYSTEM = 0xB0
    BITCOIN = 0xE1
    FRAMEWORK = 0xF8


class System(IntEnum):
    """What every app answers."""

    GET_VERSION = 0x01
    QUIT = 0xA7


class Bitcoin(IntEnum):
    GET_EXTENDED_PUBKEY = 0x00
    REGISTER_WALLET = 0x02
    GET_WALLET_ADDRESS = 0x03
    SIGN_PSBT = 0x04
    GET_MASTER_FINGERPRINT = 0x05
    SIGN_MESSAGE = 0x10


CONTINUE = 0x01
"""The one command of the framework: what the device asked for in the middle of a command."""


class StatusWord(IntEnum):
    """Status words, as the app or the operating system below it gives them."""

    OK = 0x9000
    INTERRUPTED = 0xE000
    """Not the end: the data is a request to the host."""
    LOCKED = 0x5515
    BUSY = 0x6901
    """A prompt on the screen waits for its answer."""
    DENIED = 0x6985
    INCORRECT_DATA = 0x6A80
    NOT_SUPPORTED = 0x6A82
    WRONG_P1P2 = 0x6A86
    WRONG_LENGTH = 0x6A87
    UNKNOWN_INSTRUCTION = 0x6D00
    UNKNOWN_CLASS = 0x6E00
    TECHNICAL_PROBLEM = 0x6F00
    BAD_STATE = 0xB007
    BAD_SIGNATURE = 0xB008


class MalformedApdu(Exception):
    """Bytes that are not a command. The device answers with WRONG_LENGTH."""


@dataclass(frozen=True)
class Apdu:
    cla: int
    ins: int
    p2: int
    data: bytes

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """From one whole command; P1 is not looked at, as the app does not.

        :raises MalformedApdu: it ends too early, or its data is not as long as it says.
        """
        if len(raw) < HEADER_BYTES - 1 or len(raw) > MAX_APDU_BYTES:
            raise MalformedApdu("a command has 4 to 260 bytes")
        length = raw[HEADER_BYTES - 1] if len(raw) >= HEADER_BYTES else 0
        if len(raw) not in {HEADER_BYTES - 1, HEADER_BYTES + length}:
            raise MalformedApdu("the data is not as long as the command says")
        return cls(raw[0], raw[1], raw[3], raw[HEADER_BYTES:])

    @property
    def continues(self) -> bool:
        """Whether it brings what an interrupted command has asked for."""
        return self.cla == Class.FRAMEWORK and self.ins == CONTINUE


@dataclass(frozen=True)
class ApduReply:
    status: StatusWord
    data: bytes = b""


LENGTH_BYTES = 4

_CUT_SHORT = b"\xff" * 60
GARBAGE = (0xFFFF).to_bytes(LENGTH_BYTES) + _CUT_SHORT
"""Not an answer: it announces far more data than follows. A host that believes it can still allocate that."""


class MalformedStream(Exception):
    """A length that no command has. What follows cannot be told apart any more: the connection is to be
    closed.
    """


class CommandAssembler:
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


def to_bytes(reply: ApduReply) -> bytes:
    """The length does not count the status word."""
    return len(reply.data).to_bytes(LENGTH_BYTES) + reply.data + reply.status.to_bytes(2)
