"""One HTTP exchange with the explorer: a deadline, a bound on the answer's size, and no redirects; how often
and how much it is asked, and how long no request is sent after a failure.

The explorer's URL may contain a secret: no error here names it.
"""

import math
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import SplitResult, unquote, urlsplit

from custody.common.exchange import HttpReply, HttpRequest, NoAnswer, Outcome, retry_after
from custody.common.pace import Backoff, no_jitter
from custody.common.plain_http import KeptConnections
from custody.server.errors import ChainUnavailable

# Doubled at each failure in a row, up to the longest.
LONGEST_PAUSE = 300.0
# What an explorer may ask for in Retry-After: an hour is what public ones say at most.
LONGEST_RETRY_AFTER = 3_600.0
# In units of the first pause.
PEACE_AFTER_A_LIE = 30.0


@dataclass(frozen=True)
class RequestPace:
    """Seconds for which an answer is good enough, and the load that the platform makes.

    electrs lets its volatile answers be cached for ten seconds (TTL_SHORT in rest.rs): asking more often
    tells nothing. A script's mempool is asked again after `scripts_seconds`, or later where so many are
    watched that all of them would be more than `requests_per_second`; a new block makes all be asked at once.
    """

    tip_seconds: float = 5.0
    scripts_seconds: float = 30.0
    fees_seconds: float = 60.0
    requests_per_second: float = 20.0
    parallel: int = 4
    first_pause: float = 1.0

    def scripts_period(self, scripts: int) -> float:
        """How long the answers about that many scripts are good enough while no block comes."""
        return self.scripts_seconds and max(self.scripts_seconds, scripts / self.requests_per_second)


class Cooldown:
    """After a failure nothing is sent for a while: a watcher looks twice a second, and must not hammer."""

    def __init__(self, clock: Callable[[], float], first: float) -> None:
        self._clock = clock
        self._pause = Backoff(no_jitter, first, LONGEST_PAUSE)
        self._lock = threading.Lock()
        self._until = -math.inf

    def require_over(self) -> None:
        """Raises ChainUnavailable during the pause after a failure."""
        with self._lock:
            left = math.ceil(self._until - self._clock()) if self._until > self._clock() else 0
        if left:
            raise ChainUnavailable(
                f"The explorer failed, or asked to be left alone: it is asked again in {left} s.",
                retry_after=left,
            )

    def failed(self, retry_after: float = 0.0) -> None:
        """Leave it alone: as long as it asks for, or longer at each failure in a row."""
        with self._lock:
            # Questions that were under way together fail together, and count once.
            first = self._clock() >= self._until
            own = self._pause.next() if first else 0.0
            self._until = max(self._until, self._clock() + max(own, min(retry_after, LONGEST_RETRY_AFTER)))

    def lied(self) -> None:
        """Called for contradictory answers: asking again at once would give the same."""
        with self._lock:
            if self._clock() >= self._until:
                self._until = self._clock() + PEACE_AFTER_A_LIE * self._pause.first

    def worked(self) -> None:
        with self._lock:
            self._pause.reset()


SILENCE_SECONDS = 10.0
# A byte every nine seconds never meets a read time-out, so the whole answer has a deadline, too.
DEADLINE_SECONDS = 30.0
# A page has 25 transactions as JSON, each at most 400,000 weight units: 800,000 digits of hex, and its
# readable forms.
MAX_BODY_BYTES = 32_000_000
# Such a page has a million values at most; as many empty ones as it could hold would take a gigabyte once
# they are read.
MAX_VALUES = 2_000_000
MAX_WORDS = 300
USER_AGENT = "custody"
NOT_A_URL = "An explorer's address is the URL of its API, such as https://blockstream.info/api."
_SENDS_ELSEWHERE = range(300, 400)
# The statuses of a working explorer; any other is a failure.
ANSWERS = frozenset({200, 400, 404, 405})
# Tests have their own.
Transport = Callable[[HttpRequest], Outcome]


def words_of(reply: HttpReply) -> str:
    """The beginning of the body as printable text, to be shown and logged."""
    text = reply.content[: 4 * MAX_WORDS].decode(errors="replace")
    return "".join(c if c.isprintable() else " " for c in text).strip()[:MAX_WORDS]


def check_url(url: str) -> SplitResult:
    """Raises ValueError for anything but https, or plain http inside a private network.

    An attacker on the network path could lie just as the explorer can.
    """
    try:
        address = urlsplit(url)
        host, has_port = address.hostname or "", address.port != 0
    except ValueError:
        # The message repeats the URL, which may contain a password.
        raise ValueError(NOT_A_URL) from None
    can_be_sent = address.path.isascii() and url.isprintable() and " " not in url
    if not host or not has_port or not can_be_sent or address.query or address.fragment:
        raise ValueError(NOT_A_URL)
    if address.scheme != "https" and not (address.scheme == "http" and _is_near(host)):
        raise ValueError("Ask an explorer over https; http is for a private network or an .onion address.")
    return address


def _is_near(host: str) -> bool:
    try:
        return ip_address(host).is_private
    except ValueError:
        # A name without a dot is of this machine or its own network; an onion's address is its key.
        return "." not in host or host.endswith(".onion")


class Wire:
    """Asks one explorer. May be used by several threads."""

    def __init__(
        self,
        url: str,
        *,
        pace: RequestPace,
        transport: Transport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        address = check_url(url)
        user, at, place = address.netloc.rpartition("@")
        self._url = f"{address.scheme}://{place}{address.path.rstrip('/')}"
        self._headers = {"User-Agent": USER_AGENT}
        if at:
            self._headers["Authorization"] = f"Basic {b64encode(unquote(user).encode()).decode()}"
        self._transport = transport or KeptConnections(self._url, pace.parallel + 4)
        self.cooldown = Cooldown(clock, pace.first_pause)

    def close(self) -> None:
        if isinstance(self._transport, KeptConnections):
            self._transport.close()

    def find(self, path: str) -> bytes | None:
        """The body; None where the explorer knows nothing of the kind (404). Raises ChainUnavailable."""
        reply = self._ask("GET", path, self._headers)
        if reply.status == HTTPStatus.NOT_FOUND:
            return None
        if reply.status != HTTPStatus.OK:
            raise ChainUnavailable(f"The explorer refuses a request: {words_of(reply)}")
        return reply.content

    def get(self, path: str) -> bytes:
        """The body of what every explorer has. Raises ChainUnavailable."""
        body = self.find(path)
        if body is None:
            raise ChainUnavailable("The explorer lacks something that an Esplora always has.")
        return body

    def post(self, path: str, text: str) -> HttpReply:
        """Whatever it answers: 200, 400, 404 or 405. Raises ChainUnavailable."""
        return self._ask("POST", path, self._headers | {"Content-Type": "text/plain"}, text.encode())

    def _ask(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> HttpReply:
        self.cooldown.require_over()
        times, bounds = (SILENCE_SECONDS, DEADLINE_SECONDS), (MAX_BODY_BYTES, MAX_VALUES)
        reply = self._transport(HttpRequest(method, self._url + path, *times, headers, content, *bounds))
        if isinstance(reply, NoAnswer):
            self.cooldown.failed()
            reason = type(reply.cause).__name__
            raise ChainUnavailable(f"The explorer gave no whole answer ({reason}).") from reply.cause
        if reply.status in _SENDS_ELSEWHERE:
            self.cooldown.failed()
            raise ChainUnavailable("The explorer redirects to another address, which is not followed.")
        if reply.status not in ANSWERS:
            # A date counts as 0: no clock of the explorer's is compared with ours.
            self.cooldown.failed(retry_after(reply, math.inf) or 0.0)
            raise ChainUnavailable(f"The explorer answers with status {reply.status}.")
        self.cooldown.worked()
        return reply
