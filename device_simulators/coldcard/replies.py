"""The answers a Coldcard gives: four letters, then what they announce. Source: hwilib `ckcc/protocol.py`.

What a host does wrong is answered on the wire, each leaf in its own way:

    VirtualColdcardError
    ├── BadFraming        `fram` + reason
    ├── CommandRefused    `err_` + sentence
    ├── PromptOpen        `busy`
    ├── PersonRefused     kept as the outcome of the request; `stok` answers `refu`
    └── TransactionRefused  kept as the outcome of the request; `stok` answers `err_` + sentence
"""

from struct import pack

MAX_ERROR_TEXT = 80  # the firmware cuts there

OKAY = b"okay"
REFUSED = b"refu"
BUSY = b"busy"


def error(text: str) -> bytes:
    return b"err_" + text.encode("ascii", "replace")[:MAX_ERROR_TEXT]


def outcome_error(text: str) -> bytes:
    """Why a request failed: kept whole, as the firmware keeps it."""
    return b"err_" + text.encode("ascii", "replace")


def framing_error(reason: str) -> bytes:
    return b"fram" + reason.encode("ascii")


def number(value: int) -> bytes:
    return pack("<4sI", b"int1", value)


def text(value: str) -> bytes:
    return b"asci" + value.encode("ascii")


def binary(value: bytes) -> bytes:
    return b"biny" + value


def handshake(raw_public_key: bytes, fingerprint: bytes, xpub: str) -> bytes:
    """`mypb`. The fingerprint's four bytes are a little-endian number there, which is the bytes as they
    are.
    """
    return pack("<4s64s4sI", b"mypb", raw_public_key, fingerprint, len(xpub)) + xpub.encode("ascii")


def file_ready(length: int, digest: bytes) -> bytes:
    """`strx`: a result of `length` bytes with this SHA-256 waits for download."""
    return pack("<4sI32s", b"strx", length, digest)


def message_signed(address: str, signature: bytes) -> bytes:
    """`smrx`: the address that signed, and the 65-byte signature."""
    return pack("<4sI", b"smrx", len(address)) + address.encode("ascii") + signature


class VirtualColdcardError(Exception):
    """Base of everything below."""


class BadFraming(VirtualColdcardError):
    """A packet or a message that breaks the framing; the argument is the firmware's one-word reason."""


class CommandRefused(VirtualColdcardError):
    """A command that the device understands and refuses, in the firmware's words."""


class PromptOpen(VirtualColdcardError):
    """A person is still being asked something else."""


class PersonRefused(VirtualColdcardError):
    """The person pressed the other button."""


class TransactionRefused(VirtualColdcardError):
    """A transaction that the device will not sign, in the firmware's words."""
