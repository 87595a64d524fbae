"""What passes between the bridge and a worker: length-prefixed JSON, plain values only, bounded.

Bridge to worker: `Request`, a request whose operation is `CANCEL`, or the `Reply` to an `Ask`. Worker to bridge: `Hello` once,
then for each request any number of `Note`s and `Ask`s, and one `Done` or `Failed`.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

# A Coldcard takes PSBTs of 2 MiB (Mk4); base64 makes that 2.8 MiB, and the answer carries it again.
MAX_FRAME: Final = 8 * 1024 * 1024
# A longer message is long because of one text in it. Many small values in as many bytes would take seconds to read, and
# thirty times their memory.
MAX_NESTED_FRAME: Final = 256 * 1024
_MAX_BRACKETS: Final = 64
CANCEL: Final = "cancel"
_HEADER: Final = struct.Struct(">I")
HEADER_SIZE: Final = _HEADER.size


class ProtocolError(Exception):
    """The other end sent what no end of ours sends."""


@dataclass(frozen=True)
class Request:
    """`recover`, `session`: see `firmware_bridge.port.Opening`."""

    id: int
    op: str
    args: Mapping[str, Any] = field(default_factory=dict, repr=False)
    recover: bool = False
    session: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Hello:
    """`preloaded`: HWI was there before the process began. multiprocessing skips a preload that fails without a word."""

    pid: int
    preloaded: bool


@dataclass(frozen=True)
class Note:
    """`done` of `total`: how far it is, where that can be counted."""

    id: int
    step: str
    text: str
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True)
class Ask:
    """`question` is a `firmware_bridge.port.Question`; `number` counts the questions of one worker."""

    id: int
    number: int
    question: str


@dataclass(frozen=True)
class Reply:
    """The answer to the `Ask` of this number; None where nobody answers."""

    number: int
    answer: str | None = field(repr=False)


@dataclass(frozen=True)
class Done:
    id: int
    value: Any


@dataclass(frozen=True)
class Failed:
    """`code` is that of a leaf of `BridgeError`. `question_open`: see `firmware_bridge.port.DeviceFailure`."""

    id: int
    code: str
    detail: str | None
    question_open: bool = False


Message = Request | Hello | Note | Ask | Reply | Done | Failed
_TYPES: Final[dict[str, type[Message]]] = {
    "request": Request,
    "hello": Hello,
    "note": Note,
    "ask": Ask,
    "reply": Reply,
    "done": Done,
    "failed": Failed,
}
_NAMES: Final = {kind: name for name, kind in _TYPES.items()}
_Nothing: Final = type(None)
# What each field may be: exactly these, so that nothing but what is said here goes any further. `Done.value` may be anything,
# and whoever asked looks at it (`firmware_bridge.answers`).
_FIELDS: Final[dict[type[Message], dict[str, tuple[type, ...]]]] = {
    Request: {"id": (int,), "op": (str,), "args": (dict,), "recover": (bool,), "session": (str, _Nothing)},
    Hello: {"pid": (int,), "preloaded": (bool,)},
    Note: {
        "id": (int,),
        "step": (str,),
        "text": (str,),
        "done": (int, _Nothing),
        "total": (int, _Nothing),
    },
    Ask: {"id": (int,), "number": (int,), "question": (str,)},
    Reply: {"number": (int,), "answer": (str, _Nothing)},
    Done: {"id": (int,)},
    Failed: {"id": (int,), "code": (str,), "detail": (str, _Nothing), "question_open": (bool,)},
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
    """:raises ProtocolError: this is no message."""
    if (
        len(body) > MAX_NESTED_FRAME
        and body.count(b"{") + body.count(b"[") + body.count(b",") > _MAX_BRACKETS
    ):
        raise ProtocolError(f"a message of {len(body)} bytes is made of many parts")
    try:
        values = json.loads(body)
        message = _TYPES[values.pop("type")](**values)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProtocolError(f"not a message: {type(error).__name__}") from None
    for name, types in _FIELDS[type(message)].items():
        if type(getattr(message, name)) not in types:
            raise ProtocolError(f"not a message: its {name} is of another kind")
    return message
