"""The protocol between the bridge and a worker: operations, and the messages that carry them.

A message is JSON behind four bytes of length, of bounded size. The bridge sends a `Request` (also with the
operation `CANCEL`) or the `Reply` to an `Ask`. The worker sends `Hello` once; then, for each request, any
number of `Note`s and `Ask`s and one `Done` or `Failed`.

    operation     arguments                          answer
    probe         -                                  model, label, fingerprint, firmware, obstacle (the code
                                                     of a `BridgeError`), detail
    fingerprint   -                                  the master key's fingerprint, hexadecimal
    xpubs         paths                              fingerprint, xpubs in the order of the paths
    sign          psbt (base64), policy, payments,   the device's PSBT, base64
                  resume
    sign_message  text, path                         the signature, base64
    enrol         policy, again, file                hmac, hexadecimal, or None if the device keeps the vault
    show_address  policy, chain, index               the address that the device has shown
    identify      -                                  None; the device has shown itself to the person
    unlock        -                                  fingerprint, session (to open the device with from now
                                                     on, or None)

A `policy` has: kind ("vault" or "profile"), name, threshold, keys (key expressions with origins, sorted as
for the verification code), hmac (hexadecimal, or None). `payments`: how many outputs the person is asked
about. `resume`: an earlier attempt at this transaction was cut off. `again`: enrol the vault even if the
device says that it knows it. `file`: the vault as a Coldcard reads it. A family's driver has no method for an
operation that the family does not support.
"""

import json
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum, unique
from types import UnionType
from typing import Any, Final, Protocol, get_args, get_origin, get_type_hints

# A Coldcard takes PSBTs of 2 MiB (Mk4); base64 makes that 2.8 MiB, and the answer carries it again.
MAX_FRAME: Final = 8 * 1024 * 1024
# A longer message may only be long because of one long text. Many small values in as many bytes would take
# seconds to parse, and thirty times their size in memory.
MAX_NESTED_FRAME: Final = 256 * 1024
_MAX_BRACKETS: Final = 64
OPERATIONS: Final = frozenset(
    {
        "probe",
        "fingerprint",
        "xpubs",
        "sign",
        "sign_message",
        "enrol",
        "show_address",
        "identify",
        "unlock",
    }
)
CANCEL: Final = "cancel"
_HEADER: Final = struct.Struct(">I")
HEADER_SIZE: Final = _HEADER.size


class ProtocolError(Exception):
    """The other end sent something that is not a message of this protocol."""


@dataclass(frozen=True)
class Request:
    """`recover`: an earlier worker was killed in the middle of an operation; the device may still wait for an
    answer. `session`: what `unlock` returned, so that the next worker does not ask for the passphrase again.
    Both say how the device is to be opened, if it is not open yet.
    """

    id: int
    op: str
    args: dict[str, Any] = field(default_factory=dict, repr=False)
    recover: bool = False
    session: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Hello:
    """`preloaded`: the fork server had imported HWI. multiprocessing ignores a preload that fails.
    `landlock`, `seccomp`: see `firmware_bridge.confinement.Confinement`.
    """

    pid: int
    preloaded: bool
    landlock: int = 0
    seccomp: bool = False


@dataclass(frozen=True)
class Note:
    """`done` of `total`: the progress, where it can be counted."""

    id: int
    step: str
    text: str
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True)
class Ask:
    """`question` is a `firmware_bridge.protocol.Question`; `number` counts the questions of one worker."""

    id: int
    number: int
    question: str


@dataclass(frozen=True)
class Reply:
    """The answer to the `Ask` of this number; None if there is none."""

    number: int
    answer: str | None = field(repr=False)


@dataclass(frozen=True)
class Done:
    id: int
    value: Any


@dataclass(frozen=True)
class Failed:
    """`code` is that of a leaf of `BridgeError`. `question_open`: see
    `firmware_bridge.protocol.DeviceFailure`.
    """

    id: int
    code: str
    detail: str | None
    question_open: bool = False


Message = Request | Hello | Note | Ask | Reply | Done | Failed
_TYPES: Final[dict[str, type[Message]]] = {kind.__name__.lower(): kind for kind in get_args(Message)}
_NAMES: Final = {kind: name for name, kind in _TYPES.items()}


def _kinds(hint: Any) -> tuple[type, ...]:
    return get_args(hint) if isinstance(hint, UnionType) else (get_origin(hint) or hint,)


# The exact types of each field. `Done.value` may be anything: the caller checks it (`firmware_bridge.calls`).
_FIELDS: Final = {
    kind: {name: _kinds(hint) for name, hint in get_type_hints(kind).items() if hint is not Any}
    for kind in _NAMES
}


def encode(message: Message) -> bytes:
    """:raises ProtocolError: the message is larger than `MAX_FRAME`."""
    body = json.dumps({"type": _NAMES[type(message)], **asdict(message)}, separators=(",", ":")).encode()
    if len(body) > MAX_FRAME:
        raise ProtocolError(f"a message of {len(body)} bytes is over the limit of {MAX_FRAME}")
    return _HEADER.pack(len(body)) + body


def body_size(header: bytes) -> int:
    """:raises ProtocolError: the header announces more than `MAX_FRAME`."""
    (size,) = _HEADER.unpack(header)
    if size > MAX_FRAME:
        raise ProtocolError(f"a message of {size} bytes is over the limit of {MAX_FRAME}")
    return int(size)


def decode(body: bytes) -> Message:
    """:raises ProtocolError: this is not a message."""
    if (
        len(body) > MAX_NESTED_FRAME
        and body.count(b"{") + body.count(b"[") + body.count(b",") > _MAX_BRACKETS
    ):
        raise ProtocolError(f"a message of {len(body)} bytes has too many parts")
    try:
        values = json.loads(body)
        message = _TYPES[values.pop("type")](**values)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProtocolError(f"not a message: {type(error).__name__}") from None
    for name, types in _FIELDS[type(message)].items():
        if type(getattr(message, name)) not in types:
            raise ProtocolError(f"not a message: its {name} is of another kind")
    return message


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """:raises ConnectionResetError: the other end closed the connection before."""
    data = bytearray()
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise ConnectionResetError("the other end closed the connection")
        data += chunk
    return bytes(data)


# A driver reports this step right before it makes the device ask about a transaction. An attempt that is cut
# off after it may have left a question, or an answer, on the device.
TAKEN: Final = "checking"


@unique
class Question(StrEnum):
    """What a device needs from the person at the computer."""

    PIN = "pin"
    """The positions of the PIN's digits in the matrix on the device: 7 8 9 above 4 5 6 above 1 2 3."""
    PASSPHRASE = "passphrase"  # noqa: S105 - a question, no secret
    """The passphrase of a hidden wallet. It may be empty."""
    PAIRING = "pairing"
    """Whether a BitBox02 shows the code that was just reported: any answer means yes, None means no."""


class Caller(Protocol):
    """The caller of the running operation, as a driver sees it."""

    def tell(self, step: str, text: str, done: int | None = None, total: int | None = None) -> None:
        """Report what the device does or waits for: a stable word, a sentence, and the progress where it can
        be counted.
        """

    def ask(self, question: Question) -> str | None:
        """Wait for the person's answer; None if no person can be asked.

        :raises DeviceFailure: the operation was cancelled meanwhile.
        """


class DeviceFailure(Exception):
    """A failure with its outcome: the code of a `BridgeError`, and a detail.

    `question_open`: the device still shows the question of a cancelled operation, and this client watches it.
    Keep the client open.
    """

    def __init__(self, code: str, detail: str | None, *, question_open: bool = False) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.question_open = question_open


class DeviceClient(Protocol):
    """One open device. Every operation takes and returns plain values and raises `DeviceFailure` only."""

    def call(self, op: str, args: Mapping[str, Any]) -> Any: ...

    def cancel(self) -> None:
        """Ask the device to stop waiting. Called from another thread."""

    def close(self) -> None: ...


Opener = Callable[[Caller, Request], DeviceClient]
