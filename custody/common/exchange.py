"""HTTP exchanges without I/O: a plan is a generator that yields the next step and is sent its outcome (ADR
7). Retries, pauses, time limits and the size of a response are decided here, for the platform's client, the
daemon's client and ``signerd-hwi``. Each has its own transport; ``Waiting`` drives plans synchronously,
``Awaiting`` in asyncio. Only the standard library is imported: ``signerd-hwi`` starts a process for each
call.
"""

import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import Enum
from functools import partial
from http import HTTPStatus
from typing import Any, Concatenate, Final, Generic, NamedTuple, ParamSpec, Self, TypeVar, overload
from urllib.parse import urlsplit

# A page of 500 proposals with PSBTs of a hundred kilobytes each is fifty million bytes.
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
# A page of 500 proposals with 100 recipients each is 170,000 values. Half a million empty objects take 50 MB;
# as many as 64 MiB of JSON can say would take 2 GB.
MAX_ANSWER_VALUES: Final = 500_000
CONNECT_SECONDS: Final = 5.0
TRIES: Final = 4
# RFC 9110 lets a server name any delay; we wait no longer than this before telling the caller.
LONGEST_RETRY_SECONDS: Final = 30.0
FIRST_BACKOFF_SECONDS: Final = 0.5
BUSY_STATUSES: Final = frozenset({429, 502, 503, 504})
# Python 3.13 changed two phrases to RFC 9110's.
_PHRASES_BEFORE: Final = {413: "Request Entity Too Large", 422: "Unprocessable Entity"}

Answer = TypeVar("Answer")
Core = TypeVar("Core")
P = ParamSpec("P")


@dataclass(frozen=True)
class HttpRequest:
    """A step of a plan, whose outcome is a ``HttpReply`` or a ``NoAnswer``.
    ``silence``: seconds between two pieces of the response. ``whole``: seconds for the whole exchange.
    ``most_bytes`` and ``most_values``: of the response's body, the values where it is JSON.
    A body or a header may hold a secret, and is left out of ``repr``.
    """

    method: str
    url: str
    silence: float
    whole: float
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)
    most_bytes: int = MAX_ANSWER_BYTES
    most_values: int = MAX_ANSWER_VALUES

    @property
    def path(self) -> str:
        return urlsplit(self.url).path


@dataclass(frozen=True)
class HttpReply:
    """``path``: the request's. ``headers``: by their names in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    content: bytes = field(repr=False)
    path: str = ""


class Why(Enum):
    """Why there is no response. ``ENDLESS``: the whole exchange took too long, and a retry would too."""

    NO_CONNECTION = "no connection"
    LATE = "late"
    ENDLESS = "endless"
    BROKEN = "broken"
    UNFIT = "unfit"


class NoAnswer(NamedTuple):
    """``cause``: the transport's exception, or ``Unfit``."""

    why: Why
    cause: Exception


class Unfit(Exception):
    """A response that is compressed or too large. It is not asked for again: it would be the same."""


class Body:
    """Collects the body of one response, within its bounds. Raises Unfit.
    A compressed response is refused: no client asks for one, and its size is known only after unpacking.
    """

    def __init__(self, request: HttpRequest, headers: Mapping[str, str]) -> None:
        self._request = request
        self._bytes = bytearray()
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise Unfit(f"{request.path}: a compressed answer, which was not asked for")

    def add(self, piece: bytes) -> None:
        self._bytes += piece
        if len(self._bytes) > self._request.most_bytes:
            raise Unfit(f"{self._request.path}: an answer of more than {self._request.most_bytes:,} bytes")

    def whole(self) -> bytes:
        if has_more_values(self._bytes, self._request.most_values):
            raise Unfit(f"{self._request.path}: an answer of more than {self._request.most_values:,} values")
        return bytes(self._bytes)


# A string, or a separator between values. An unterminated string matches too, so that every byte is looked at
# once; the possessive quantifiers never backtrack. Compiled only when used: that takes a millisecond, and few
# responses are large enough to need it.
_TOKEN = rb'(?s:"(?:[^"\\]++|\\.?)*+"?|[,\[{])'


def has_more_values(body: bytes | bytearray, most: int) -> bool:
    """Whether a JSON text holds more than ``most`` values: counted before it is parsed, because three bytes
    of it can take a hundred bytes of memory. Linear in its length, also where it is not JSON.
    """
    if sum(body.count(mark) for mark in b",[{") <= most:
        return False
    # Some of these marks may be inside strings. An object's member has two strings for each comma.
    separators = 0
    for number, token in enumerate(re.finditer(_TOKEN, body)):
        separators += not token[0].startswith(b'"')
        if separators > most or number > 3 * most:
            return True
    return False


def is_loopback(host: str) -> bool:
    """Whether it names this machine, so that what is sent there crosses no network."""
    # Imported here: ``signerd-hwi`` does not ask.
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Wait(NamedTuple):
    seconds: float


class Exclusive(NamedTuple):
    """Run this plan while no other plan of the same client runs an exclusive one."""

    plan: "Plan[None]"


Outcome = HttpReply | NoAnswer
Step = HttpRequest | Wait | Exclusive
Plan = Generator[Step, Outcome | None, Answer]


def exchange(request: HttpRequest) -> Plan[Outcome]:
    """Send the request once."""
    outcome = yield request
    assert outcome is not None, "something was sent"
    return outcome


def attempt(
    request: HttpRequest, *, repeatable: bool, jitter: Callable[[], float], now: Callable[[], float]
) -> Plan[Outcome]:
    """Send the request; if it is repeatable, again after a pause while the server is busy or silent."""
    # Imported here: ``signerd-hwi`` repeats nothing.
    from custody.common.pace import Backoff

    backoff = Backoff(jitter, first=FIRST_BACKOFF_SECONDS)
    for _ in range(TRIES - 1 if repeatable else 0):
        outcome = yield from exchange(request)
        sent_at = 0.0
        if isinstance(outcome, HttpReply):
            if outcome.status not in BUSY_STATUSES:
                return outcome
            sent_at = retry_after(outcome, now()) or 0.0
        elif outcome.why in {Why.UNFIT, Why.ENDLESS}:
            return outcome
        if sent_at > LONGEST_RETRY_SECONDS:
            return outcome
        # Jitter: clients that got the same Retry-After must not all come back at the same moment.
        yield Wait(max(sent_at * (1.0 + jitter()), backoff.next()))
    return (yield from exchange(request))


def retry_after(reply: HttpReply, now: float) -> float | None:
    """The seconds of either form of ``Retry-After`` (RFC 9110, section 10.2.3)."""
    text = reply.headers.get("retry-after", "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def phrase_of(status: HTTPStatus) -> str:
    """The reason phrase, the same on every Python."""
    return _PHRASES_BEFORE.get(status, status.phrase)


def is_success(reply: HttpReply) -> bool:
    """2xx, or 304."""
    return (
        HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES or reply.status == HTTPStatus.NOT_MODIFIED
    )


class Waiting(Generic[Core]):
    """Runs plans in the caller's thread. ``core``: the client's state, passed to each plan. Use a client as a
    context manager.
    """

    def __init__(
        self, core: Core, perform: Callable[[HttpRequest], Outcome], sleep: Callable[[float], None]
    ) -> None:
        self.core = core
        self._perform = perform
        self._sleep = sleep
        self._alone = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held between two calls."""

    def run(self, plan: Plan[Answer]) -> Answer:
        """Drive a plan to its answer. Raises what the plan raises."""
        outcome: Outcome | None = None
        while True:
            try:
                step = plan.send(outcome)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]  # StopIteration does not carry the plan's type
            outcome = None
            match step:
                case HttpRequest():
                    outcome = self._perform(step)
                case Wait(seconds):
                    self._sleep(seconds)
                case Exclusive(inner):
                    with self._alone:
                        self.run(inner)


class Awaiting(Generic[Core]):
    """``Waiting`` for asyncio. ``close``: ends the connections that the client keeps."""

    def __init__(
        self,
        core: Core,
        perform: Callable[[HttpRequest], Awaitable[Outcome]],
        sleep: Callable[[float], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        # Imported here: a synchronous program needs no event loop.
        import asyncio

        self.core = core
        self._perform = perform
        self._sleep = sleep
        self._alone = asyncio.Lock()
        self.aclose = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.aclose()

    async def run(self, plan: Plan[Answer]) -> Answer:
        """Drive a plan to its answer. Raises what the plan raises."""
        outcome: Outcome | None = None
        while True:
            try:
                step = plan.send(outcome)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]  # StopIteration does not carry the plan's type
            outcome = None
            match step:
                case HttpRequest():
                    outcome = await self._perform(step)
                case Wait(seconds):
                    await self._sleep(seconds)
                case Exclusive(inner):
                    async with self._alone:
                        await self.run(inner)


class method(Generic[Core, P, Answer]):  # noqa: N801 - reads as the decorator that it is
    """A plan as a method: plain on a synchronous client, a coroutine on an asynchronous one, typed on both.
    ``shown``: the function whose parameters ``help()`` shows, where it is not the plan.
    """

    def __init__(
        self,
        plan: Callable[Concatenate[Core, P], Plan[Answer]],
        shown: Callable[P, Any] | None = None,
    ) -> None:
        self.plan = plan
        self._shown = shown
        self.__doc__ = plan.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Waiting[Core], owner: type | None = None) -> Callable[P, Answer]: ...
    @overload
    def __get__(
        self, client: Awaiting[Core], owner: type | None = None
    ) -> Callable[P, Coroutine[Any, Any, Answer]]: ...
    def __get__(self, client: Any, owner: type | None = None) -> Any:
        if client is None:
            return self

        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.run(self.plan(client.core, *args, **kwargs))

        bound.__doc__ = self.__doc__
        bound.plan = self.plan  # type: ignore[attr-defined]  # a function's own attribute
        # For help() and notebooks, which compute the signature only when asked.
        bound.__wrapped__ = self._shown or partial(self.plan, client.core)  # type: ignore[attr-defined]  # a function's own attribute
        return bound
