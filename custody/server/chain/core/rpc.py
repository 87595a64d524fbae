"""bitcoind's JSON-RPC over HTTP: batches, deadlines, bounded responses, and a sentence for every failure.
An RPC error is a value, because often it is the answer ("no such transaction"). Any other failure raises
ChainUnavailable, whose sentence says what to do. (Core: httprpc.cpp, rpc/protocol.h.)
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar

from pydantic import SecretStr

from custody.common.exchange import HttpReply, HttpRequest, NoAnswer, Why
from custody.common.plain_http import KeptConnections
from custody.server.errors import ChainUnavailable

# A cookie is "__cookie__:" and 64 hexadecimal digits.
MAX_COOKIE_BYTES = 1_024


@dataclass(frozen=True)
class Password:
    """A user of the node's `rpcauth` setting. ``hint``: what to look at where the node refuses them."""

    user: str
    password: SecretStr = field(repr=False)
    hint: ClassVar[str] = "Compare user and password with the node's rpcauth line."

    def read(self) -> tuple[str, str]:
        return self.user, self.password.get_secret_value()


@dataclass(frozen=True)
class CookieFile:
    """The node's cookie file, which the node rewrites at each start."""

    path: Path
    hint: ClassVar[str] = "Check that the cookie file is this node's."

    def read(self) -> tuple[str, str]:
        """The current user and password. Raises ChainUnavailable."""
        try:
            with self.path.open("rb") as file:
                content = file.read(MAX_COOKIE_BYTES + 1)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ChainUnavailable(
                f"The node's cookie file cannot be read ({reason}). Check that the node runs, and that this "
                "program's user may read it (rpccookieperms=group)."
            ) from error
        user, colon, password = content.decode("latin-1").strip().partition(":")
        if not colon or not user or len(content) > MAX_COOKIE_BYTES:
            raise ChainUnavailable("The node's cookie file does not hold a cookie.")
        return user, password


# For HTTP basic authentication (RFC 7617).
Credentials = Password | CookieFile

ANSWER_SECONDS = 30.0
# A block of four million bytes is twice that in hexadecimal, and a hundred transactions of the largest
# standard size are eighty million.
MAX_ANSWER_BYTES = 128 * 1024 * 1024
# A list of txids of that size has as many.
MAX_VALUES = 2_000_000
MAX_WORDS = 200
# Its work queue holds 16 calls by default, 64 in later releases (-rpcworkqueue), and others ask it too.
MAX_CONNECTIONS = 8

# rpc/protocol.h
NOT_FOUND = -5
INVALID_PARAMETER = -8
DESERIALIZATION = -22
TRANSACTION_ERROR = -25
TRANSACTION_REJECTED = -26
ALREADY_IN_CHAIN = -27
WARMING_UP = -28
UNKNOWN_METHOD = -32601


@dataclass(frozen=True)
class RpcCall:
    """A method and its positional parameters."""

    method: str
    params: tuple[object, ...] = ()


@dataclass(frozen=True)
class RpcFailed:
    """The node's error for one call, in its words."""

    code: int
    message: str


class Rpc:
    """Thread-safe. `name` is the node's name in errors, which never show its address."""

    def __init__(
        self,
        url: str,
        credentials: Credentials,
        *,
        name: str = "The node",
        answer_seconds: float = ANSWER_SECONDS,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._url = url
        self._credentials = credentials
        self._name = name
        self._seconds = answer_seconds
        self._max_bytes = max_answer_bytes
        self._transport = KeptConnections(url, MAX_CONNECTIONS)

    def close(self) -> None:
        self._transport.close()

    def ask(self, *calls: RpcCall, seconds: float | None = None) -> tuple[Any, ...]:
        """The answers in order, each a JSON value or Failed; all calls are one batch, which the node
        processes in order. Raises ChainUnavailable.
        """
        body = json.dumps(
            [
                {"id": number, "method": call.method, "params": call.params}
                for number, call in enumerate(calls)
            ]
        ).encode()
        reply = self._send(body, seconds or self._seconds)
        self._require_answered(reply.status)
        return self._read_batch(reply.content, calls)

    def _send(self, body: bytes, seconds: float) -> HttpReply:
        # Read each time: a restarted node has another cookie.
        identity = b64encode(":".join(self._credentials.read()).encode()).decode()
        headers = {"Content-Type": "application/json", "Authorization": f"Basic {identity}"}
        outcome = self._transport(
            HttpRequest("POST", self._url, seconds, seconds, headers, body, self._max_bytes, MAX_VALUES)
        )
        match outcome:
            case HttpReply():
                return outcome
            case NoAnswer(Why.LATE | Why.ENDLESS):
                trouble = "does not answer in time. See whether it is up and what keeps it busy."
            case NoAnswer(Why.UNFIT):
                trouble = f"sends what is not read: {outcome.cause}."
            case _:
                reason = type(outcome.cause).__name__
                trouble = f"cannot be reached ({reason}). Check that it runs, and its address."
        raise ChainUnavailable(f"{self._name} {trouble}") from outcome.cause

    def _require_answered(self, status: int) -> None:
        match status:
            case HTTPStatus.OK | HTTPStatus.INTERNAL_SERVER_ERROR:
                return
            case HTTPStatus.UNAUTHORIZED:
                trouble = f"refuses the user or the password. {self._credentials.hint}"
            case HTTPStatus.FORBIDDEN:
                trouble = "forbids the call. Check its rpcallowip, and that rpcwhitelist names every method."
            case HTTPStatus.SERVICE_UNAVAILABLE:
                trouble = "has too much to do (work queue full). Raise its rpcworkqueue."
            case _:
                trouble = f"answers with HTTP status {status}: that is not a bitcoind. Check the address."
        raise ChainUnavailable(f"{self._name} {trouble}")

    def _read_batch(self, content: bytes, calls: Sequence[RpcCall]) -> tuple[Any, ...]:
        try:
            replies = json.loads(content, parse_float=Decimal)
        except (ValueError, RecursionError) as error:
            raise self._garbage("no JSON") from error
        if isinstance(replies, dict):
            # One error for the whole request.
            self._require_ready(_failure(replies))
            raise self._garbage("one reply for several calls")
        if not isinstance(replies, list) or len(replies) != len(calls):
            raise self._garbage("not one reply for each call")
        by_id = {reply.get("id"): reply for reply in replies if isinstance(reply, dict)}
        if set(by_id) != set(range(len(calls))):
            raise self._garbage("replies to other calls")
        return tuple(self._answer(by_id[number], call) for number, call in enumerate(calls))

    def _answer(self, reply: dict[str, Any], call: RpcCall) -> Any:
        failure = _failure(reply)
        if failure is None:
            if "result" not in reply:
                raise self._garbage("a reply without result")
            return reply["result"]
        self._require_ready(failure)
        if failure.code == UNKNOWN_METHOD:
            raise ChainUnavailable(
                f"{self._name} does not know {call.method}. Bitcoin Core 25 or later is needed."
            )
        return failure

    def _require_ready(self, failure: RpcFailed | None) -> None:
        if failure is not None and failure.code == WARMING_UP:
            raise ChainUnavailable(f"{self._name} is still starting: {failure.message}")

    def _garbage(self, what: str) -> ChainUnavailable:
        return ChainUnavailable(
            f"{self._name} answers with something that is not JSON-RPC ({what}). Check the address."
        )


def _failure(reply: dict[str, Any]) -> RpcFailed | None:
    error = reply.get("error")
    if error is None:
        return None
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return RpcFailed(0, "an error without a code")
    return RpcFailed(error["code"], tidy(error.get("message")))


def tidy(words: object) -> str:
    """A node's message on one line, cut to MAX_WORDS characters."""
    text = words if isinstance(words, str) else ""
    return "".join(letter if letter.isprintable() else " " for letter in text[:MAX_WORDS]).strip()
