"""One HTTP exchange with a server that a member named (P51): at a checked public address, with TLS, without
redirects, within a deadline. Used for webhooks and identity providers.
"""

import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from custody.common.deadlines import Deadline
from custody.server.rules.webhooks import WebhookUrl, is_public_text

# For a whole attempt: resolving the name, connecting, TLS, and the status of the response.
ATTEMPT_SECONDS: Final = 10.0
# The resolver's own time-outs are longer, and cannot be set from here.
NAME_SECONDS: Final = 4.0
# How many of a receiver's addresses are tried: one dead address must not use up the time of the others.
MAX_ADDRESSES: Final = 3
CONNECT_SECONDS: Final = 3.0

# The addresses of a name, as text. Raises OSError.
Resolve = Callable[[str], Sequence[str]]
# A connection to an address and port, within seconds. Raises OSError.
Connect = Callable[[tuple[str, int], float], socket.socket]


class DeliveryTrouble(StrEnum):
    """Why an attempt failed, for the receiver's operator; never text that the peer sent."""

    NAME_NOT_FOUND = "name-not-found"
    ADDRESS_NOT_PUBLIC = "address-not-public"
    UNREACHABLE = "unreachable"
    TLS_FAILED = "tls-failed"
    TIMED_OUT = "timed-out"
    BAD_ANSWER = "bad-answer"
    REDIRECTED = "redirected"
    REFUSED = "refused"
    # The platform's own fault: it cannot decrypt the secret that signs.
    SECRET_UNREADABLE = "secret-unreadable"  # noqa: S105 - a name
    DISABLED = "webhook-disabled"


@dataclass(frozen=True)
class ReceiverAnswer:
    status: int
    body: bytes


class Undelivered(Exception):
    def __init__(self, trouble: DeliveryTrouble) -> None:
        super().__init__(trouble.value)
        self.trouble = trouble


def _late_or(trouble: DeliveryTrouble, deadline: Deadline) -> Undelivered:
    return Undelivered(DeliveryTrouble.TIMED_OUT if deadline.is_over else trouble)


def look_up(host: str) -> list[str]:
    """The addresses from the system's resolver."""
    addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    # Each once, in the resolver's order of preference.
    return list(dict.fromkeys(str(address[0]) for *_, address in addresses))


class ClosedAnyhow(ssl.SSLSocket):
    """Closes the socket that `wrap_socket` leaves open where the peer hangs up during the handshake."""

    def __del__(self) -> None:
        """Closes it without the warning of Python's own socket."""
        self.close()


class Sender:
    """``ca_file``: a private CA beside the system's, for receivers that the operator allows. Ignores proxies
    in the environment: a proxy would resolve the name itself, after our check.
    """

    def __init__(
        self,
        resolve: Resolve = look_up,
        ca_file: Path | None = None,
        *,
        connect: Connect = socket.create_connection,
        seconds: float = ATTEMPT_SECONDS,
    ) -> None:
        self._resolve = resolve
        self._connect_to = connect
        self._seconds = seconds
        self._ca_file = ca_file
        if ca_file is not None:
            # A wrong file must fail at startup; the system's CAs need not be read for that.
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(ca_file)

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """Created at the first delivery: loading the system's authorities is the slowest part of the
        start.
        """
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.sslsocket_class = ClosedAnyhow
        if self._ca_file is not None:
            context.load_verify_locations(self._ca_file)
        return context

    def ask(
        self, method: str, url: WebhookUrl, body: bytes, headers: Mapping[str, str], most: int = 0
    ) -> ReceiverAnswer:
        """``most``: how many bytes the response's body may have; 0 does not read it. Raises Undelivered."""
        with Deadline(self._seconds) as deadline:
            line = self._connect(url, deadline)
            with line:
                secured = self._secure(line, url, deadline)
                with secured:
                    return _exchange(secured, method, url, body, headers, most, deadline)

    def _connect(self, url: WebhookUrl, deadline: Deadline) -> socket.socket:
        """Connects to a checked address, not to the name, which could resolve differently now (DNS
        rebinding).
        """
        for address in self._addresses(url)[:MAX_ADDRESSES]:
            with suppress(OSError):
                line = self._connect_to((address, url.port), min(CONNECT_SECONDS, deadline.left()))
                deadline.watch(line)
                return line
        raise _late_or(DeliveryTrouble.UNREACHABLE, deadline)

    def _addresses(self, url: WebhookUrl) -> Sequence[str]:
        """All addresses must be public: a name with both kinds is an attack on an internal host."""
        # The trailing dot keeps the resolver from appending the search domains of our own network.
        name = url.host if url.is_allowed else f"{url.host}."
        addresses = _within(min(NAME_SECONDS, self._seconds), lambda: self._resolve(name))
        if not addresses:
            raise Undelivered(DeliveryTrouble.NAME_NOT_FOUND)
        if not url.is_allowed and not all(is_public_text(address) for address in addresses):
            raise Undelivered(DeliveryTrouble.ADDRESS_NOT_PUBLIC)
        return addresses

    def _secure(self, line: socket.socket, url: WebhookUrl, deadline: Deadline) -> ssl.SSLSocket:
        line.settimeout(deadline.left())
        try:
            return self._context.wrap_socket(line, server_hostname=url.host)
        except ssl.SSLCertVerificationError as error:
            raise Undelivered(DeliveryTrouble.TLS_FAILED) from error
        except OSError as error:
            raise _late_or(DeliveryTrouble.TLS_FAILED, deadline) from error


def _exchange(
    line: ssl.SSLSocket,
    method: str,
    url: WebhookUrl,
    body: bytes,
    headers: Mapping[str, str],
    most: int,
    deadline: Deadline,
) -> ReceiverAnswer:
    connection = HTTPConnection(url.host, url.port)
    # It is connected already, and must not reconnect by itself.
    connection.sock, connection.auto_open = line, 0
    line.settimeout(deadline.left())
    try:
        connection.request(method, url.target, body or None, {"Host": url.authority, **headers})
        response = connection.getresponse()
        content = response.read(most + 1) if most else b""
    except HTTPException as error:
        raise _late_or(DeliveryTrouble.BAD_ANSWER, deadline) from error
    except OSError as error:
        raise _late_or(DeliveryTrouble.UNREACHABLE, deadline) from error
    finally:
        connection.close()
    if deadline.is_over:
        # http.client takes headers that end early for complete.
        raise Undelivered(DeliveryTrouble.TIMED_OUT)
    if len(content) > most or (most and response.length):
        # Longer than it may be, or shorter than it says.
        raise Undelivered(DeliveryTrouble.BAD_ANSWER)
    return ReceiverAnswer(response.status, content)


def _within(seconds: float, ask: Callable[[], Sequence[str]]) -> Sequence[str]:
    """The result of ``ask`` if it comes in time, else nothing. It runs in a daemon thread, because a resolver
    may hang until its own time-outs.
    """
    result: list[Sequence[str]] = []

    def run() -> None:
        with suppress(OSError, UnicodeError):
            result.append(ask())

    thread = threading.Thread(target=run, name="resolver", daemon=True)
    thread.start()
    thread.join(seconds)
    return result[0] if result else ()
