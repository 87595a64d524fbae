"""Access checks of the private socket and of the TCP port: the caller, the origins allowed, and each app's
rate limit.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from custody.common.pace import Bucket
from signerd.apps.paired import PairedApps
from signerd.callers import PAGE, STRANGER, TERMINAL, LoopbackCaller
from signerd.endpoint import EVENTS, HOST
from signerd.errors import (
    HostRefused,
    InvalidRequest,
    NotForBrowsers,
    NotPaired,
    OriginRefused,
    TooManyRequests,
)
from signerd.loopback.access.headers import SAFE_METHODS, RequestHead, always
from signerd.loopback.access.sessions import PageSessions

# A program that displays events sends a few requests per event; at twenty a second no delay is noticed.
PER_SECOND = 20.0
# A program fetches everything once when it starts.
BURST = 60.0
# Concurrent requests of one app: the second is answered while the first waits for a device or the platform.
AT_ONCE = 2

Request = Callable[[], Coroutine[Any, Any, None]]


@dataclass
class _App:
    bucket: Bucket
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


@dataclass
class AppRates:
    """A token bucket per paired app, by its id."""

    clock: Callable[[], float]
    per_second: float = PER_SECOND
    burst: float = BURST
    _apps: dict[str, _App] = field(default_factory=dict)

    def take(self, who: str) -> None:
        """Take one token. Raises TooManyRequests with the whole seconds until there is one."""
        bucket = self._of(who).bucket
        if wait := bucket.seconds_until(1):
            raise TooManyRequests("this app asks too often", seconds=math.ceil(wait))
        bucket.level -= 1

    async def in_turn(self, who: str, request: Request) -> None:
        """Answer a request for which a token was taken, after the app's earlier requests."""
        async with self._of(who).turns:
            await request()

    def _of(self, who: str) -> _App:
        now = self.clock()
        if who not in self._apps:
            self._apps[who] = _App(Bucket(self.burst, self.per_second, now, self.burst))
        app = self._apps[who]
        app.bucket.fill(now)
        return app


OPEN = "Open the page with `signerd open`."
# What a browser sends as the Origin of an opaque origin.
OPAQUE = "null"
FETCH_SITE, FETCH_DEST = "sec-fetch-site", "sec-fetch-dest"
# A program sends none; a person's own navigation has no initiator.
_BY_NO_SITE = frozenset({None, "none"})


# Whatever listened on the port before had them, too. Apps call the API there.
LASTING_NAMES = ("127.0.0.1", "[::1]", "localhost")


def hosts_at(port: int, *names: str) -> frozenset[str]:
    """The Host values of these names on this port. Browsers omit the port only where it is 80."""
    named = {f"{name}:{port}" for name in names}
    return frozenset(named | set(names) if port == 80 else named)


def require_host(head: RequestHead, hosts: frozenset[str]) -> str:
    """Raises HostRefused for another Host, for none and for more than one."""
    given = head.all("host")
    if len(given) != 1 or given[0] not in hosts:
        raise HostRefused("this is not an address at which signerd can be called")
    return given[0]


def own_origin(host: str) -> str:
    return f"http://{host}"


def require_no_other_site(head: RequestHead, *, at_page: bool) -> None:
    """For a request without another site's Origin: its Sec-Fetch-Site must not name another site either.

    An image or a link sends no Origin and costs as much to answer (L2, L11). The same origin is ours at the
    page's own address only: elsewhere it belongs to who had the port before (L15). Raises OriginRefused.
    """
    site = head.sole(FETCH_SITE)
    if site not in _BY_NO_SITE and not (at_page and site == "same-origin"):
        raise OriginRefused("another site made this request", hint=OPEN)


def require_our_page(head: RequestHead, host: str) -> None:
    """For a request with a page session: no other origin has its secret, and none may use it (L4). Raises
    OriginRefused.
    """
    origin = head.sole("origin")
    if origin is None and head.method in SAFE_METHODS:
        return
    if origin != own_origin(host):
        raise OriginRefused("a request in a session of the page must have the page's origin")


# Headers that browsers add and programs have no reason to send.
BROWSER_HEADERS = frozenset({"origin", "referer", "cookie"})
BROWSER_PREFIXES = ("sec-", "access-control-")
# Sent by the page's script from its origin's storage. A cookie would go to every other port of this host
# (L12).
SESSION_HEADER = "x-signerd-session"


async def _at_once(request: Request) -> None:
    await request()


@dataclass(frozen=True)
class Admitted:
    """``stands``: whether the caller would be admitted again, asked during a long answer (L13).

    ``in_turn`` answers the request: the person's at once, an app's within its rate (L11). Raises
    TooManyRequests.
    """

    caller: LoopbackCaller
    session: object | None = None
    stands: Callable[[], bool] = field(default=always, repr=False)
    in_turn: Callable[[Request], Awaitable[None]] = field(default=_at_once, repr=False)


@dataclass(frozen=True)
class SocketGate:
    """Of the private socket, for the user's own programs: a request that looks like a browser's is refused
    (L1-L4).
    """

    tokens: PairedApps
    rates: AppRates

    def reader(self, head: RequestHead) -> str | None:
        """As of ``PortGate``: none."""
        if head.all("host") != (HOST,):
            raise NotForBrowsers(f"the Host must be '{HOST}'")
        for name, _value in head.headers:
            if name in BROWSER_HEADERS or name.startswith(BROWSER_PREFIXES):
                raise NotForBrowsers(f"a request with the header '{name}' is not answered")
        _refuse_upgrade(head)
        return None

    def admit(self, head: RequestHead) -> Admitted:
        token = head.token()
        return Admitted(TERMINAL) if token is None else _app(self.tokens, self.rates, head, token)


class PortGate:
    """Of the TCP port, which every page in the user's browser can call (ADR 19). It checks a request's head
    in two steps, so that an app's site can read why the second one failed.

    ``page_name``: the page's host, as ``endpoint.PageAddress`` has it. Only there is a session one of ours.
    """

    def __init__(
        self, port: int, page_name: str, tokens: PairedApps, sessions: PageSessions, rates: AppRates
    ) -> None:
        self._page_hosts = hosts_at(port, page_name)
        self._hosts = self._page_hosts | hosts_at(port, *LASTING_NAMES)
        self._tokens = tokens
        self._sessions = sessions
        self._rates = rates

    def reader(self, head: RequestHead) -> str | None:
        """The foreign origin that may read the answer, if any. Raises leaves of LoopbackError."""
        host = require_host(head, self._hosts)
        _refuse_upgrade(head)
        origin, at_page = head.sole("origin"), host in self._page_hosts
        ours = {None, own_origin(host)} if at_page else {None}
        if head.enters:
            # The form that `signerd open` writes is a file, whose origin is opaque. No other site knows the
            # page's address (L16).
            if not at_page or origin not in {*ours, OPAQUE}:
                raise OriginRefused("the page is entered at its own address", hint=OPEN)
            return None
        if origin in ours:
            require_no_other_site(head, at_page=at_page)
            return None
        if origin == OPAQUE or origin not in self._tokens.origins():
            raise OriginRefused("this site was not let in")
        return origin

    def admit(self, head: RequestHead) -> Admitted:
        """Raises leaves of LoopbackError."""
        if head.enters:
            # From a local file: so by a top-level window, and no frame or script of another site.
            if head.sole(FETCH_DEST) not in {None, "document"}:
                raise OriginRefused("the page is entered by a window of its own")
            return Admitted(STRANGER)
        token, secret = head.token(), head.sole(SESSION_HEADER)
        if token is not None and secret is not None:
            raise InvalidRequest("a request speaks for an app or for the page, not for both")
        if token is not None:
            return _app(self._tokens, self._rates, head, token)
        return Admitted(STRANGER) if secret is None else self._page(head, secret)

    def _page(self, head: RequestHead, secret: str) -> Admitted:
        require_our_page(head, require_host(head, self._page_hosts))
        session = self._sessions.find(secret, by_itself=head.is_by_itself)
        if session is None:
            return Admitted(STRANGER)
        return Admitted(PAGE, session, lambda: self._sessions.stands(secret))


Gate = SocketGate | PortGate


def _app(tokens: PairedApps, rates: AppRates, head: RequestHead, token: str) -> Admitted:
    """Raises NotPaired, TooManyRequests."""
    origin = head.sole("origin")
    caller = tokens.caller(token, origin)
    who = caller.app_id or caller.name
    rates.take(who)
    # A stream lasts for hours and counts against the limit of streams instead.
    in_turn = _at_once if head.path == EVENTS else partial(rates.in_turn, who)
    return Admitted(caller, stands=lambda: _stands(tokens, token, origin), in_turn=in_turn)


def _stands(tokens: PairedApps, token: str, origin: str | None) -> bool:
    try:
        tokens.caller(token, origin)
    except NotPaired:
        return False
    return True


def _refuse_upgrade(head: RequestHead) -> None:
    """Events are a plain HTTP response; there are no WebSockets."""
    if head.all("upgrade"):
        raise InvalidRequest("no other protocol is spoken here")
