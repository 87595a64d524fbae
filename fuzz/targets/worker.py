"""The bridge's side of a worker's pipe: the worker runs foreign code that talks to a device."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from firmware_bridge import BridgeError, calls, protocol
from firmware_bridge.errors import from_worker
from firmware_bridge.operations import Keys, Probed, Unlocked
from firmware_bridge.protocol import (
    Ask,
    AskReply,
    Hello,
    Message,
    OperationDone,
    OperationFailed,
    ProgressNote,
    WorkerCall,
)
from firmware_bridge.record import after_answer
from fuzz.json_mutator import mutate
from fuzz.target import Target, require
from multisig import Fingerprint, Network, message_hash
from tests.support.wallets import ALICE, BOB, make_vault

NETWORK = Network.REGTEST
VAULT = make_vault()
KEY = ALICE.vault_key()

_READERS: tuple[Callable[[Any], object], ...] = (
    lambda value: after_answer(calls.answer(Probed, value)),
    lambda value: calls.fingerprint(calls.answer(Unlocked, value).fingerprint),
    calls.registration,
    calls.fingerprint,
    lambda value: calls.require_address(value, VAULT, 0, 0),
    lambda value: _keys(calls.answer(Keys, value)),
    lambda value: calls.is_by(KEY.xpub.public_key, "hello", calls.signature(value)),
)


def _keys(keys: Keys) -> object:
    master = Fingerprint.from_hex(keys.fingerprint)
    return [calls.origin_key(master, KEY.origin.path, text, NETWORK) for text in keys.xpubs]


def check(data: bytes) -> None:
    """The decoder raises only ProtocolError, the readers of answers only outcomes."""
    if len(data) == protocol.HEADER_SIZE:
        _check_header(data)
    try:
        message = protocol.decode(data)
    except protocol.ProtocolError:
        return
    again = protocol.decode(protocol.encode(message)[protocol.HEADER_SIZE :])
    require(repr(again) == repr(message), "a message is another one when it is passed on")
    if isinstance(message, OperationDone):
        for read in _READERS:
            _check_answer(read, message.value)
    if isinstance(message, OperationFailed):
        require(isinstance(from_worker(message.code, message.detail), BridgeError), "no outcome")
    _require_types(message)


def _check_header(data: bytes) -> None:
    try:
        require(0 <= protocol.body_size(data) <= protocol.MAX_FRAME, "a size beyond the limit")
    except protocol.ProtocolError:
        return


def _check_answer(read: Callable[[Any], object], value: object) -> None:
    try:
        read(value)
    except BridgeError as error:
        require(bool(str(error)), "an outcome without a sentence")


def _require_types(message: Message) -> None:
    """The types of the fields that a progress bar, a question and a log show."""
    numbers = [getattr(message, name, 0) for name in ("id", "number", "pid")]
    require(all(type(number) is int for number in numbers), "a number is none")
    texts = [getattr(message, name, "") for name in ("op", "step", "text", "question", "code")]
    require(all(isinstance(text, str) for text in texts), "a text is none")
    maybe = [getattr(message, name, None) for name in ("detail", "session", "answer")]
    require(all(text is None or isinstance(text, str) for text in maybe), "a text is none")


def seeds() -> Iterator[bytes]:
    signed = message_hash("hello").hex()
    identity = {"model": "trezor_t", "label": "Desk", "fingerprint": ALICE.fingerprint.hex, "obstacle": None}
    values: list[object] = [
        {**identity, "detail": "why", "firmware": "2.8.9"},
        {"fingerprint": BOB.fingerprint.hex, "session": "ab" * 32},
        None,
        "cd" * 32,
        KEY.fingerprint.hex,
        VAULT.address(0, 0),
        {"fingerprint": KEY.fingerprint.hex, "xpubs": [str(KEY.xpub)]},
        "H" + "A" * 86 + "=",
        [1, 2.5, True, {"deep": [[]]}],
    ]
    messages: list[Message] = [OperationDone(number, value) for number, value in enumerate(values)]
    messages += [
        WorkerCall(1, "sign", {"psbt": signed}, recover=True, session="cd"),
        Hello(77, preloaded=True),
        ProgressNote(1, "sign", "Look at your device.", 1, 2),
        Ask(1, 1, "pin"),
        AskReply(1, "1234"),
        OperationFailed(2, "wrong-app", "Ethereum"),
        OperationFailed(2, "locked", None),
    ]
    for message in messages:
        yield protocol.encode(message)[protocol.HEADER_SIZE :]
    yield protocol.encode(Hello(1, preloaded=False))[: protocol.HEADER_SIZE]
    yield json.dumps({"type": "none"}).encode()


TARGET = Target("worker", check, seeds, mutator=mutate)
