"""Where the daemon is reached: its socket, whether that socket may be trusted, and its port. Both sides use
it.
"""

import os
import secrets
import stat
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from custody.common.private_files import folder_fault, is_ours
from signerd.errors import DaemonNotRunning, UnsafeFolder

SOCKET = "signerd.sock"
# The only name by which the daemon is called; an http URL must have one.
HOST = "signerd"
# Where the page is entered, with a code that the socket gave out.
ENTER = "/enter"
LEAVE = "/leave"
# Where the page takes what a device without a cable signed: a larger form than others.
ANSWERS = "/answers"
# Where the page follows what happens.
EVENTS = "/v1/events"
PREFIX = "/v1"
# How long an answer may take: one from memory takes milliseconds; the platform may be asked on the way.
QUICK_SECONDS = 40.0
# Nine keys from a device that has to be woken first.
DEVICE_SECONDS = 120.0
# The configuration may give a person at the device a day. A daemon that ends closes the connection.
PERSON_SECONDS = 25 * 3600.0
# The page and apps reach it over TCP at this machine's own address.
IPV4 = "127.0.0.1"
# The whole of it: a program that listens and answers nothing, or one byte after another, does not keep the
# daemon from its start.
ANSWER_SECONDS = 3.0
MOST_READ = 1_000


def is_of_api(path: str) -> bool:
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def taken_by(port: int) -> str:
    """Which program has the port, by its own word: a signerd tells a caller who is not paired that it is
    one.
    """
    from http.client import HTTPConnection, HTTPException

    from custody.common.deadlines import Deadline

    link = HTTPConnection(IPV4, port, timeout=ANSWER_SECONDS)
    with suppress(OSError, HTTPException), Deadline(ANSWER_SECONDS) as deadline, closing(link):
        link.connect()
        deadline.watch(link.sock)
        if deadline.is_over:
            return "another program"
        link.request("GET", f"{PREFIX}/status")
        if b"signerd" in link.getresponse().read(MOST_READ):
            return "what says that it is a signerd, of another state folder"
    return "another program"


@dataclass
class PageAddress:
    """The port over TCP, and why there is none. ``loopback.serve`` sets both, the status tells it.

    ``name``: the page's host, new for each daemon, below the one that browsers resolve to this machine (RFC
    6761, 6.3). Another program may have had the port before, and what it
    left in a browser (a service worker, a cache) belongs to the origin that it had then (L15).
    """

    port: int | None = None
    notes: tuple[str, ...] = ()
    name: str = field(default_factory=lambda: f"{secrets.token_hex(8)}.localhost")

    @property
    def url(self) -> str | None:
        """Where apps call, and where a browser is told how to open the page."""
        return None if self.port is None else f"http://{IPV4}:{self.port}/"

    @property
    def page_url(self) -> str | None:
        """Where the page is. Only the terminal is told, and the browser that it opens."""
        return None if self.port is None else f"http://{self.name}:{self.port}/"


def socket_path(state: Path) -> Path:
    return state / SOCKET


def trusted_socket(state: Path) -> Path:
    """The socket, where only this user can have made it: a password may be sent to it (L12).

    Raises:
        DaemonNotRunning: there is none. UnsafeFolder: a link, another owner, or a folder that others can
        enter.
    """
    path = socket_path(state)
    try:
        socket_status, fault = path.lstat(), folder_fault(state)
    except FileNotFoundError:
        raise DaemonNotRunning(f"no signerd serves {path}") from None
    except OSError as error:
        raise UnsafeFolder(f"{path} cannot be reached: {error.strerror}") from error
    if fault is not None:
        raise UnsafeFolder(fault)
    require_own_socket(path, socket_status)
    return path


def require_own_socket(path: Path, status: os.stat_result) -> None:
    """Raises UnsafeFolder."""
    if not stat.S_ISSOCK(status.st_mode):
        raise UnsafeFolder(f"{path} is not a socket, or is a link to one")
    if not is_ours(status):
        raise UnsafeFolder(f"{path} belongs to another user")
