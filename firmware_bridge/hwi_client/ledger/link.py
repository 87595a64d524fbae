"""The link to a Ledger, below the client that HWI bundles: one command, one answer with a status word (APDU).

HWI's transports wait for ever and cannot be stopped. This one can, notices a device that has stopped
answering, and lets a `Watch` follow a signing.

The Bitcoin app ends itself when it waits for its host for five seconds (app-bitcoin-new 2.4.6,
INTERRUPTION_TIMEOUT_TICKS in src/boilerplate/io_ext.h). So does one whose question is approved after its host
stopped waiting: nothing is signed.
"""

import contextlib
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from firmware_bridge.errors import BridgeError, Cancelled, TimedOut, WrongApp, from_worker
from firmware_bridge.faults import outcome
from firmware_bridge.hwi_client.base import describe
from firmware_bridge.hwi_client.ledger import library
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.presence.endpoints import host_and_port
from firmware_bridge.protocol import receive_exactly

OK: Final = 0x9000
INTERRUPTED: Final = 0xE000
DENIED: Final = 0x6985
INCORRECT_DATA: Final = 0x6A80
NOT_SUPPORTED: Final = 0x6A82
UNKNOWN_POLICY: Final = 0xB008

# The Bitcoin app's `sw.h`, and statuses of the device's system.
_WORDS: Final[Mapping[int, str]] = {
    0x5515: "it is locked",
    0x6511: "it is locked, or no app is open",
    0x6700: "a command of the wrong length",
    0x6804: "it is locked",
    0x6901: "it still shows the question of an earlier request; answer no there",
    0x6982: "it is locked",
    DENIED: "refused on the device",
    INCORRECT_DATA: "it does not accept this data",
    NOT_SUPPORTED: "the app does not support this",
    0x6A86: "the app does not know these parameters",
    0x6A87: "a command of the wrong length",
    0x6D00: "the app does not know this command",
    0x6E00: "the app does not know this kind of command",
    0x6E01: "the app does not know this kind of command",
    0x6F00: "a technical problem",
    0x6FAA: "it is asleep",
    0xB000: "the app's answer was too long",
    0xB007: "the app was in another state than expected",
    UNKNOWN_POLICY: "the vault's registration is for another device, name or order of keys",
}


def ledger_failure(error: BaseException) -> BridgeError:
    """The outcome, by the status word if there is one: exception classes differ between the clients."""
    fault = describe(error)
    words = _WORDS.get(fault.status or OK)
    if words is not None:
        fault = replace(fault, text=f"{words} (0x{fault.status:04X})")
    meant, detail = outcome(Family.LEDGER, fault)
    # The detail of WrongApp is the other app's name, which a status word does not tell.
    return from_worker(meant.code, None if meant is WrongApp and fault.status is not None else detail)


def status_of(error: BaseException) -> int | None:
    return describe(error).status


_CONNECT_SECONDS: Final = 5.0
# The interval at which a cancel is noticed.
_SLICE_SECONDS: Final = 0.05
# An app that may be asking the person, and does not answer for this long, is asking.
_ASKING_SECONDS: Final = 0.5
# If it may not be asking, this silence is a failure: its own work between two answers takes a fraction of a
# second.
_ANSWER_SECONDS: Final = 10.0
# The longest answer to a short command (ISO 7816-4); the app has no others.
_MAX_ANSWER: Final = 256
# Class and instruction (app-bitcoin-new, doc/bitcoin.md).
_BITCOIN: Final = 0xE1
_CONTINUE: Final = (0xF8, 0x01)
# Commands that show nothing and change nothing. The first byte of an xpub's data says whether to show it.
_VERSION: Final = (0xB0, 0x01)
_FINGERPRINT: Final = (_BITCOIN, 0x05)
_XPUB: Final = (_BITCOIN, 0x00)
_SILENT: Final = b"\x00"
_SILENCE: Final = "it stopped answering in the middle of its work; another program may have used it"


class GarbledAnswer(Exception):
    """The bytes received are not an answer to a command."""


class Tcp:
    """An emulator's socket: four bytes of length, the data, and (in answers, not counted) two bytes of
    status.
    """

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=_CONNECT_SECONDS)
        # A person may take minutes; the bridge keeps the deadline.
        self._socket.settimeout(None)
        # To notice a machine that has gone.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def send(self, data: bytes) -> None:
        self._socket.sendall(len(data).to_bytes(4) + data)

    def wait(self, seconds: float) -> bool:
        """Whether an answer begins within these seconds."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def recv(self) -> tuple[int, bytes]:
        size = int.from_bytes(receive_exactly(self._socket, 4))
        if size > _MAX_ANSWER:
            raise GarbledAnswer(f"an answer of {size} bytes was announced")
        answer = receive_exactly(self._socket, size)
        return int.from_bytes(receive_exactly(self._socket, 2)), answer

    def close(self) -> None:
        self._socket.close()


class Usb(library.HID):  # type: ignore[misc]  # HWI is untyped
    """HWI's reports of 64 bytes, with a time limit for the first report of an answer."""

    _first = b""

    def wait(self, seconds: float) -> bool:
        """Whether an answer begins within these seconds."""
        if not self._first:
            self._first = bytes(self.device.read(64 + 1, timeout_ms=int(seconds * 1000)))
        return bool(self._first)

    def recv(self) -> tuple[int, bytes]:
        report, self._first = self._first, b""
        data = _payload(report)
        size, data = int.from_bytes(data[:2]), data[2:]
        while len(data) < size:
            data += _payload(bytes(self.device.read(64 + 1, timeout_ms=1000)))
        return int.from_bytes(data[size - 2 : size]), data[: size - 2]


def _payload(report: bytes) -> bytes:
    """The bytes after channel, tag and sequence number."""
    if report[:3] != b"\x01\x01\x05":
        raise GarbledAnswer("a report of another kind, or none")
    return report[5:]


@dataclass(frozen=True)
class Watch:
    """How to follow a command that may ask the person."""

    on_command: Callable[[bytes], None] = lambda _data: None
    on_request: Callable[[bytes], None] = lambda _request: None
    """Called with each request of the app to its host."""
    may_ask: Callable[[], bool] = lambda: True
    """Whether the app may be asking the person while it does not answer."""
    on_asking: Callable[[], None] = lambda: None


class LedgerLink(library.TransportClient):  # type: ignore[misc]  # HWI is untyped
    """The transport of HWI's client."""

    def __init__(self, comm: Tcp | Usb) -> None:
        self._comm = comm
        self._watch: Watch | None = None
        self._given_up = threading.Event()

    def apdu_exchange(self, cla: int, ins: int, data: bytes = b"", p1: int = 0, p2: int = 0) -> bytes:
        """:raises ApduException: any status but success.

        :raises BridgeError: the operation was cancelled, or the device stopped answering.
        """
        self._require_wanted(continuing=(cla, ins) == _CONTINUE)
        watch = self._watch
        if watch is not None and cla == _BITCOIN:
            watch.on_command(data)
        command = _command(cla, ins, data, p1, p2)
        status, answer = self._exchange(command)
        harmless = (cla, ins) in {_VERSION, _FINGERPRINT} or ((cla, ins) == _XPUB and data[:1] == _SILENT)
        if status == INCORRECT_DATA and harmless:
            # An earlier host left the app in the middle of a command: the next command fails once.
            status, answer = self._exchange(command)
        if watch is not None and status == INTERRUPTED:
            watch.on_request(answer)
        if status != OK:
            raise library.ApduException(status, answer)
        return bytes(answer)

    @contextlib.contextmanager
    def watched(self, watch: Watch) -> Iterator[None]:
        """Follow the commands in this block."""
        self._watch = watch
        try:
            yield
        finally:
            self._watch = None

    def begin(self) -> None:
        """A new operation."""
        self._given_up.clear()

    def give_up(self) -> None:
        """End the running operation. Called from another thread. Without a question on the screen the app
        ends it too; else the question stays.
        """
        self._given_up.set()

    def close(self) -> None:
        self._comm.close()

    def _exchange(self, command: bytes) -> tuple[int, bytes]:
        self._comm.send(command)
        waited, reported = 0.0, False
        while not self._comm.wait(_SLICE_SECONDS):
            waited += _SLICE_SECONDS
            if self._watch is None or not self._watch.may_ask():
                if waited >= _ANSWER_SECONDS:
                    raise TimedOut(detail=_SILENCE)
            elif self._given_up.is_set():
                raise Cancelled
            elif waited >= _ASKING_SECONDS and not reported:
                reported = True
                self._watch.on_asking()
        status, answer = self._comm.recv()
        return int(status), bytes(answer)

    def _require_wanted(self, *, continuing: bool) -> None:
        if not self._given_up.is_set():
            return
        if continuing:
            # The app waits for its host. Another command ends the one under way (process_interruption in
            # dispatcher.c); the app answers that the data is wrong.
            self._comm.send(_command(*_FINGERPRINT))
            if self._comm.wait(_ANSWER_SECONDS):
                self._comm.recv()
        raise Cancelled


def open_link(endpoint: Endpoint) -> LedgerLink:
    if endpoint.kind == "tcp":
        return LedgerLink(Tcp(*host_and_port(endpoint.place)))
    device = Usb(hid_path=endpoint.place.encode())
    device.open()
    return LedgerLink(device)


def _command(cla: int, ins: int, data: bytes = b"", p1: int = 0, p2: int = 0) -> bytes:
    return bytes([cla, ins, p1, p2, len(data)]) + data
