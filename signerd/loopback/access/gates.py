"""The gates by which a request comes in, the private socket and the port: whose it is, from where it may
come, and how much of the daemon's time an app may take.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from custody.pace import Bucket
from signerd.apps import PairedApps
from signerd.callers import PAGE, STRANGER, TERMINAL, Caller
from signerd.endpoint import EVENTS, HOST
from signerd.errors import (
    HostRefused,
    InvalidRequest,
    NotForBrowsers,
    NotPaired,
    OriginRefused,
    TooManyRequests,
)
from signerd.loopback.access.headers import RequestHead
from signerd.loopback.access.sessions import Sessions


@dataclass
class Metered:
    """Awaits ``what`` in the task that awaits this; tasks of its own that it begins are not timed.

    ``clock``: processor seconds of the loop's thread, so that an app does not pay for what other programs
    keep the machine busy with. Waits for the disk are not counted: what an app may write is bounded by how
    many PSBTs it may import in a minute. ``spent``: what it cost, also where it failed. Raises as ``what``
    does.
    """

    what: Coroutine[Any, Any, None]
    clock: Callable[[], float]
    spent: float = 0.0

    def __await__(self) -> Generator[Any, None, None]:
        """What an await does, written out (PEP 380): each yield is one return to the loop."""
        heard: BaseException | None = None
        while True:
            try:
                waits_for = self._step(heard)
            except StopIteration:
                return
            try:
                heard = yield waits_for
            except BaseException as error:  # noqa: BLE001 - a cancellation, above all: it is for ``what`` to hear
                heard = error

    def _step(self, heard: BaseException | None) -> Any:
        began = self.clock()
        try:
            return self.what.send(None) if heard is None else self.what.throw(heard)
        finally:
            self.spent += self.clock() - began


# A program that shows what happens asks a few times for each event; twenty a second is none that a person
# waits for.
PER_SECOND = 20.0
# A program that starts asks for everything once.
BURST = 60.0
# Of the loop's time, that one token buys: an app has a tenth of it, and no person waits for an app for long.
TOKEN_SECONDS = 0.005
# However much one request cost, the next is answered half a minute later; a machine may sleep in the middle
# of one.
DEEPEST = 600.0
# A second one goes on while the first waits for a device or for the platform.
AT_ONCE = 2

Request = Callable[[], Coroutine[Any, Any, None]]


@dataclass
class _App:
    bucket: Bucket
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


@dataclass
class Rates:
    """By the caller's id: those of the paired apps, which are few. ``work``: see ``Metered.clock``."""

    clock: Callable[[], float]
    work: Callable[[], float] = time.thread_time
    per_second: float = PER_SECOND
    burst: float = BURST
    _apps: dict[str, _App] = field(default_factory=dict)

    def take(self, who: str) -> None:
        """Raises TooManyRequests, with the whole seconds after which there is one again."""
        self._require(who, 1)
        self._of(who).bucket.level -= 1

    async def in_turn(self, who: str, request: Request) -> None:
        """Answer a request for which ``take`` took a token, after those of the same app that came before it.

        What it cost beyond its token is taken afterwards; so however many came at once, they cost what an app
        may. Raises TooManyRequests where those before it have used up what there was.
        """
        async with self._of(who).turns:
            self._require(who, 0)
            metered = Metered(request(), self.work)
            try:
                await metered
            finally:
                self._charge(who, metered.spent / TOKEN_SECONDS - 1)

    def _require(self, who: str, tokens: float) -> None:
        """Raises TooManyRequests."""
        if wait := self._of(who).bucket.seconds_until(tokens):
            raise TooManyRequests("this app asks too often, or for too much", seconds=math.ceil(wait))

    def _charge(self, who: str, tokens: float) -> None:
        bucket = self._of(who).bucket
        bucket.level = max(-DEEPEST, bucket.level - max(0.0, tokens))

    def _of(self, who: str) -> _App:
        now = self.clock()
        if who not in self._apps:
            self._apps[who] = _App(Bucket.full(self.burst, self.per_second, now))
        app = self._apps[who]
        app.bucket.fill(now)
        return app


# What a browser sends in the place of an origin that it does not tell.
OPAQUE = "null"
FETCH_SITE, FETCH_DEST = "sec-fetch-site", "sec-fetch-dest"
_OF_OUR_OWN = frozenset({"same-origin", "none"})


def hosts_at(port: int) -> frozenset[str]:
    """Every name under which this port may be called. Browsers leave the port away at 80 alone."""
    names = ("127.0.0.1", "[::1]", "localhost")
    named = {f"{name}:{port}" for name in names}
    return frozenset(named | set(names) if port == 80 else named)


def require_host(asked: RequestHead, hosts: frozenset[str]) -> str:
    """Raises HostRefused for any other, for none, and for more than one."""
    given = asked.all("host")
    if len(given) != 1 or given[0] not in hosts:
        raise HostRefused("this is not an address at which signerd can be called")
    return given[0]


def own_origin(host: str) -> str:
    return f"http://{host}"


def require_no_other_site(asked: RequestHead) -> None:
    """Of a request without another site's Origin: a browser must not say that another site made it all the
    same.

    A picture or a link brings no Origin, and costs as much to answer (L2, L11). Raises OriginRefused.
    """
    site = asked.sole(FETCH_SITE)
    if site is not None and site not in _OF_OUR_OWN:
        raise OriginRefused("another site made this request", hint="Open the page with `signerd open`.")


def require_our_page(asked: RequestHead, host: str) -> None:
    """Of a request with the session of the page: no other page has its secret, and none may use it (L4).
    Raises OriginRefused.
    """
    origin = asked.sole("origin")
    if origin is None and asked.is_safe:
        return
    if origin != own_origin(host):
        raise OriginRefused("a request in a session of the page must have the page's origin")


def require_navigation(asked: RequestHead) -> None:
    """Entering begins with a file of ours: the request must come from a top-level window, not from another
    site's frame or script. Raises OriginRefused.
    """
    if asked.sole(FETCH_DEST) not in {None, "document"}:
        raise OriginRefused("the page is entered by a window of its own")


# What a browser sends of its own accord; a program has no reason to.
BROWSER_HEADERS = frozenset({"origin", "referer", "cookie"})
BROWSER_PREFIXES = ("sec-", "access-control-")
# Sent by the page's own script from the storage of its origin. A cookie would go to every other port of this
# host, too (L12).
SESSION_HEADER = "x-signerd-session"


def _always() -> bool:
    return True


async def _at_once(request: Request) -> None:
    await request()


@dataclass(frozen=True)
class Admitted:
    """``stands``: whether the caller would still be let in, for an answer that goes on for long (L13).

    ``in_turn`` answers the request: a person's at once, an app's after its others and at its expense (L11).
    Raises TooManyRequests.
    """

    caller: Caller
    session: object | None = None
    stands: Callable[[], bool] = field(default=_always, repr=False)
    in_turn: Callable[[Request], Awaitable[None]] = field(default=_at_once, repr=False)


class Gate(Protocol):
    """Reads a request's head in two steps, so that an app's own site can read why the second one failed."""

    def reader(self, asked: RequestHead) -> str | None:
        """The other origin that may read the answer, if any. Raises leaves of LoopbackError."""
        ...

    def admit(self, asked: RequestHead, reader: str | None) -> Admitted:
        """Raises leaves of LoopbackError."""
        ...


class SocketGate:
    """Of the private socket: the person's own programs; no browser gets here, and what looks like one is
    refused (L1-L4).
    """

    def __init__(self, tokens: PairedApps, rates: Rates) -> None:
        self._tokens = tokens
        self._rates = rates

    def reader(self, asked: RequestHead) -> str | None:
        if asked.all("host") != (HOST,):
            raise NotForBrowsers(f"the Host must be '{HOST}'")
        for name, _value in asked.headers:
            if name in BROWSER_HEADERS or name.startswith(BROWSER_PREFIXES):
                raise NotForBrowsers(f"a request with the header '{name}' is not answered")
        _refuse_upgrade(asked)
        return None

    def admit(self, asked: RequestHead, reader: str | None) -> Admitted:  # noqa: ARG002 - no other site reads an answer here
        token = asked.token()
        return Admitted(TERMINAL) if token is None else _app(self._tokens, self._rates, asked, token)


class PortGate:
    """Of the TCP port, where every page of the person's browser can call (ADR 19)."""

    def __init__(self, port: int, tokens: PairedApps, sessions: Sessions, rates: Rates) -> None:
        self._hosts = hosts_at(port)
        self._tokens = tokens
        self._sessions = sessions
        self._rates = rates

    def reader(self, asked: RequestHead) -> str | None:
        host = require_host(asked, self._hosts)
        _refuse_upgrade(asked)
        origin, own = asked.sole("origin"), own_origin(host)
        if asked.enters and origin in {None, own, OPAQUE}:
            return None
        if origin in {None, own}:
            require_no_other_site(asked)
            return None
        if origin == OPAQUE or origin not in self._tokens.origins():
            raise OriginRefused("this site was not let in")
        return origin

    def admit(self, asked: RequestHead, reader: str | None) -> Admitted:  # noqa: ARG002 - the request's own Origin counts
        if asked.enters:
            require_navigation(asked)
            return Admitted(STRANGER)
        token, secret = asked.token(), asked.sole(SESSION_HEADER)
        if token is not None and secret is not None:
            raise InvalidRequest("a request speaks for an app or for the page, not for both")
        if token is not None:
            return _app(self._tokens, self._rates, asked, token)
        return Admitted(STRANGER) if secret is None else self._page(asked, secret)

    def _page(self, asked: RequestHead, secret: str) -> Admitted:
        require_our_page(asked, require_host(asked, self._hosts))
        session = self._sessions.find(secret, by_itself=asked.is_by_itself)
        if session is None:
            return Admitted(STRANGER)
        return Admitted(PAGE, session, lambda: self._sessions.stands(secret))


def _app(tokens: PairedApps, rates: Rates, asked: RequestHead, token: str) -> Admitted:
    """Raises NotPaired, TooManyRequests."""
    origin = asked.sole("origin")
    caller = tokens.caller(token, origin)
    who = caller.app_id or caller.name
    rates.take(who)
    # A stream goes on for hours, and is counted among the streams.
    in_turn = _at_once if asked.path == EVENTS else partial(rates.in_turn, who)
    return Admitted(caller, stands=lambda: _stands(tokens, token, origin), in_turn=in_turn)


def _stands(tokens: PairedApps, token: str, origin: str | None) -> bool:
    try:
        tokens.caller(token, origin)
    except NotPaired:
        return False
    return True


def _refuse_upgrade(asked: RequestHead) -> None:
    """Events come as a plain answer; no WebSocket is spoken here."""
    if asked.all("upgrade"):
        raise InvalidRequest("no other protocol is spoken here")
