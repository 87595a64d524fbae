"""The messages between the bridge and a worker. What they ask and answer stands in
`firmware_bridge.operations`.

A message is JSON behind four bytes of length, of bounded size. The bridge sends a `WorkerCall` (also with the
operation `CANCEL`) or the `AskReply` to an `Ask`. The worker sends `Hello` once; then, for each request, any
number of `ProgressNote`s and `Ask`s and one `OperationDone` or `OperationFailed`.
"""

import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum, unique
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

# A Coldcard takes PSBTs of 2 MiB (Mk4); base64 makes that 2.8 MiB, and the answer carries it again.
MAX_FRAME: Final = 8 * 1024 * 1024
# A longer message may only be long because of one long text. Many small values in as many bytes would take
# seconds to parse, and thirty times their size in memory.
MAX_NESTED_FRAME: Final = 256 * 1024
_MAX_BRACKETS: Final = 64
CANCEL: Final = "cancel"
_HEADER: Final = struct.Struct(">I")
HEADER_SIZE: Final = _HEADER.size


class ProtocolError(Exception):
    """The other end sent something that is not a message of this protocol."""


_MESSAGE: Final = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)


@dataclass(frozen=True, config=_MESSAGE)
class WorkerCall:
    """`recover`: an earlier worker was killed in the middle of an operation; the device may still wait for an
    answer. `session`: what `unlock` returned, so that the next worker does not ask for the passphrase again.
    Both say how the device is to be opened, if it is not open yet.
    """

    id: int
    op: str
    args: Any = field(default_factory=dict, repr=False)
    recover: bool = False
    session: str | None = field(default=None, repr=False)
    type: Literal["request"] = field(default="request", kw_only=True, repr=False)


@dataclass(frozen=True, config=_MESSAGE)
class Hello:
    """`preloaded`: the fork server had imported HWI. multiprocessing ignores a preload that fails.
    `landlock`, `seccomp`: see `firmware_bridge.confinement.Confinement`.
    """

    pid: int
    preloaded: bool
    landlock: int = 0
    seccomp: bool = False
    type: Literal["hello"] = field(default="hello", kw_only=True, repr=False)


@dataclass(frozen=True, config=_MESSAGE)
class ProgressNote:
    """`done` of `total`: the progress, where it can be counted."""

    id: int
    step: str
    text: str
    done: int | None = None
    total: int | None = None
    type: Literal["note"] = field(default="note", kw_only=True, repr=False)


@dataclass(frozen=True, config=_MESSAGE)
class Ask:
    """`question` is a `firmware_bridge.protocol.Question`; `number` counts the questions of one worker."""

    id: int
    number: int
    question: str
    type: Literal["ask"] = field(default="ask", kw_only=True, repr=False)


@dataclass(frozen=True, config=_MESSAGE)
class AskReply:
    """The answer to the `Ask` of this number; None if there is none."""

    number: int
    answer: str | None = field(repr=False)
    type: Literal["reply"] = field(default="reply", kw_only=True, repr=False)


@dataclass(frozen=True, config=_MESSAGE)
class OperationDone:
    id: int
    value: Any
    type: Literal["done"] = field(default="done", kw_only=True, repr=False)


@dataclass(frozen=True, config=_MESSAGE)
class OperationFailed:
    """`code` is that of a leaf of `BridgeError`."""

    id: int
    code: str
    detail: str | None
    type: Literal["failed"] = field(default="failed", kw_only=True, repr=False)


Message = WorkerCall | Hello | ProgressNote | Ask | AskReply | OperationDone | OperationFailed
_MESSAGES: Final = TypeAdapter[Message](
    Annotated[Message, Field(discriminator="type")], config=ConfigDict(ser_json_inf_nan="constants")
)


def encode(message: Message) -> bytes:
    """:raises ProtocolError: the message is larger than `MAX_FRAME`, or a text in it is not of Unicode."""
    try:
        body = _MESSAGES.dump_json(message)
    except ValueError:
        raise ProtocolError("the message cannot be written") from None
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
        return _MESSAGES.validate_json(body)
    except ValueError as error:
        raise ProtocolError(f"not a message: {type(error).__name__}") from None


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


class DriverHost(Protocol):
    """The caller of the running operation, as a driver sees it."""

    def tell(self, step: str, text: str, done: int | None = None, total: int | None = None) -> None:
        """Report what the device does or waits for: a stable word, a sentence, and the progress where it can
        be counted.
        """

    def ask(self, question: Question) -> str | None:
        """Wait for the person's answer; None if no person can be asked.

        :raises BridgeError: the operation was cancelled meanwhile.
        """


class DeviceClient(Protocol):
    """One open device: see `firmware_bridge.operations`. It raises leaves of `BridgeError` only."""

    def call(self, op: str, args: Mapping[str, Any]) -> Any: ...

    def cancel(self) -> None:
        """Ask the device to stop waiting. Called from another thread."""

    def close(self) -> None: ...


Opener = Callable[[DriverHost, WorkerCall], DeviceClient]
