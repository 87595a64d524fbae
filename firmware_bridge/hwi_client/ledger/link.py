"""The road to a Ledger: one command out, one answer with a status word back (APDU), under the client that HWI bundles.

HWI's own transports wait for an answer without an end and cannot be told to stop. Watching here, below the client, tells how far a
signing is without touching the client itself, notices a device that has fallen silent, and keeps an app alive whose host has given up:

The Bitcoin app ends itself when it waits for its host for five seconds (app-bitcoin-new 2.4.6, INTERRUPTION_TIMEOUT_TICKS in
src/boilerplate/io_ext.h). A person who says yes to a transaction that nobody waits for any longer would lose the app. So a link that gives
up while a question is on the screen stays there, and answers what the app asks after a yes with a command that ends the signing
before it has begun: the app takes any command but the one that it waits for as that (process_interruption in dispatcher.c).
"""

import contextlib
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hwilib.devices.ledger_bitcoin.client_base import ApduException, TransportClient
from hwilib.devices.ledger_bitcoin.command_builder import (
    BitcoinCommandBuilder,
    BitcoinInsType,
    DefaultInsType,
    FrameworkInsType,
)
from hwilib.devices.ledger_bitcoin.ledgercomm.interfaces.comm import Comm
from hwilib.devices.ledger_bitcoin.ledgercomm.interfaces.hid_device import HID
from hwilib.devices.ledger_bitcoin.ledgercomm.transport import Transport

from firmware_bridge.errors import Busy, Cancelled, TimedOut, WrongApp
from firmware_bridge.families import outcome
from firmware_bridge.hwi_client.base import describe
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.protocol import DeviceFailure

# FOLDED from firmware_bridge/hwi_client/ledger/status.py: A Ledger's status words: what each says, in words for a person who reads the detail of a failure.


OK: Final = 0x9000
INTERRUPTED: Final = 0xE000
SECURITY_NOT_SATISFIED: Final = 0x6982
DENIED: Final = 0x6985
INCORRECT_DATA: Final = 0x6A80
NOT_SUPPORTED: Final = 0x6A82
UNKNOWN_POLICY: Final = 0xB008

QUESTION_OPEN: Final = "it still shows the question of an earlier request; answer no there"

# The Bitcoin app's `sw.h`, and what the device's own software answers in its place.
_WORDS: Final[Mapping[int, str]] = {
    0x5515: "it is locked",
    0x6511: "it is locked, or no app is open",
    0x6700: "a command of the wrong length",
    0x6804: "it is locked",
    0x6901: QUESTION_OPEN,
    SECURITY_NOT_SATISFIED: "it is locked",
    DENIED: "refused on the device",
    INCORRECT_DATA: "it does not accept what it was given",
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
    UNKNOWN_POLICY: "the vault's registration is not of this device, or of another name or order of keys",
}


def ledger_failure(error: BaseException) -> DeviceFailure:
    """The outcome, decided by the status word where there is one: the exceptions' classes differ from client to client."""
    fault = describe(error)
    words = _WORDS.get(fault.status or OK)
    if words is not None:
        fault = replace(fault, text=f"{words} (0x{fault.status:04X})")
    code, detail = outcome(Family.LEDGER, fault)
    # The detail of this outcome is the other app's name, and a status word tells none.
    return DeviceFailure(code, None if code == WrongApp.code and fault.status is not None else detail)


def status_of(error: BaseException) -> int | None:
    return describe(error).status


_CONNECT_SECONDS: Final = 5.0
# How soon a cancel is noticed.
_SLICE_SECONDS: Final = 0.05
# An app that does not answer for so long, where it may be asking its person, is asking.
_ASKING_SECONDS: Final = 0.5
# And where it may not, something is wrong: its own work between two answers takes a fraction of a second.
_ANSWER_SECONDS: Final = 10.0
# For how long a question that nobody waits for is watched. Then a yes ends the app, and still signs nothing.
_ATTEND_SECONDS: Final = 3600.0
# The longest answer to a short command (ISO 7816-4), which all of the app's are.
_MAX_ANSWER: Final = 256
_BITCOIN: Final = BitcoinCommandBuilder.CLA_BITCOIN
_CONTINUE: Final = (BitcoinCommandBuilder.CLA_FRAMEWORK, FrameworkInsType.CONTINUE_INTERRUPTED)
# Questions that no person sees and that change nothing. An xpub has the wish to show it as its first byte.
_VERSION: Final = (BitcoinCommandBuilder.CLA_DEFAULT, DefaultInsType.GET_VERSION)
_FINGERPRINT: Final = (_BITCOIN, BitcoinInsType.GET_MASTER_FINGERPRINT)
_XPUB: Final = (_BITCOIN, BitcoinInsType.GET_EXTENDED_PUBKEY)
_SILENT: Final = b"\x00"
_SILENCE: Final = "it stopped answering in the middle of its work; another program may have used it"


class GarbledAnswer(Exception):
    """What came back is no answer to a command."""


class Tcp(Comm):  # type: ignore[misc]  # HWI is untyped
    """An emulator's socket: four bytes of length, the data, and (in answers, not counted) two bytes of status."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._socket: Any = None

    def open(self) -> None:
        self._socket = socket.create_connection(self._address, timeout=_CONNECT_SECONDS)
        # A person may think for minutes; whoever asks keeps the deadline.
        self._socket.settimeout(None)
        # A machine that is gone without a word is noticed all the same.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def send(self, data: bytes) -> int:
        self._socket.sendall(len(data).to_bytes(4) + data)
        return len(data)

    def wait(self, seconds: float) -> bool:
        """Whether an answer has begun to come within these seconds."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def recv(self) -> tuple[int, bytes]:
        size = int.from_bytes(self._receive(4))
        if size > _MAX_ANSWER:
            raise GarbledAnswer(f"an answer of {size} bytes was announced")
        answer = self._receive(size)
        return int.from_bytes(self._receive(2)), answer

    def exchange(self, data: bytes) -> tuple[int, bytes]:
        self.send(data)
        return self.recv()

    def close(self) -> None:
        self._socket.close()

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._socket.recv(size - len(data))
            if not chunk:
                raise ConnectionResetError("the device closed the connection")
            data += chunk
        return bytes(data)


class Usb(HID):  # type: ignore[misc]  # HWI is untyped
    """HWI's reports of 64 bytes, with an end to the wait for the first of an answer."""

    _first = b""

    def wait(self, seconds: float) -> bool:
        """Whether an answer has begun to come within these seconds."""
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
    """What follows the channel, the tag and the running number."""
    if report[:3] != b"\x01\x01\x05":
        raise GarbledAnswer("a report of another kind, or none")
    return report[5:]


@dataclass(frozen=True)
class Watch:
    """What is to be known of a command that a person may be asked about. `refusals`: the status words of a no."""

    refusals: frozenset[int]
    on_command: Callable[[bytes], None] = lambda _data: None
    on_request: Callable[[bytes], None] = lambda _request: None
    """Called with each request of the app to its host."""
    may_ask: Callable[[], bool] = lambda: True
    """Whether the app, when it does not answer, may be asking its person."""
    on_asking: Callable[[], None] = lambda: None


class Link(TransportClient):  # type: ignore[misc]  # HWI is untyped
    """What the client sends its commands through."""

    def __init__(self, comm: Tcp | Usb) -> None:
        self._comm = comm
        self._watch: Watch | None = None
        self._refused = False
        self._given_up = threading.Event()
        self._closing = threading.Event()
        self._attendant: threading.Thread | None = None
        self._broken = False

    def apdu_exchange(self, cla: int, ins: int, data: bytes = b"", p1: int = 0, p2: int = 0) -> bytes:
        """:raises ApduException: any status but success.

        :raises DeviceFailure: it was given up, or the device fell silent.
        """
        self._require_wanted(continuing=(cla, ins) == _CONTINUE)
        watch = self._watch
        if watch is not None and cla == _BITCOIN:
            watch.on_command(data)
        command = _command(cla, ins, data, p1, p2)
        status, answer = self._exchange(command)
        if status == INCORRECT_DATA and _is_harmless(cla, ins, data):
            # The app was left in the middle of a command: it says so once, to whoever comes next, and forgets it.
            status, answer = self._exchange(command)
        if watch is not None and status == INTERRUPTED:
            watch.on_request(answer)
        self._refused = self._refused or (watch is not None and status in watch.refusals)
        if status != OK:
            raise ApduException(status, answer)
        return bytes(answer)

    @contextlib.contextmanager
    def watched(self, watch: Watch) -> Iterator[Callable[[], bool]]:
        """Meanwhile a person may be asked; gives the way to learn whether they have said no.

        HWI's legacy client swallows every failure where the person looks at the outputs, goes on with another command, and
        fails with the answer to that.
        """
        self._watch, self._refused = watch, False
        try:
            yield lambda: self._refused
        finally:
            self._watch = None

    def begin(self) -> None:
        """A new operation.

        :raises DeviceFailure: the device still shows the question of one that was given up.
        """
        if self.question_open:
            raise DeviceFailure(Busy.code, QUESTION_OPEN, question_open=True)
        self._given_up.clear()
        if self._broken:
            # While nobody worked with it. What is there now may be well.
            self._broken = False
            self._comm.close()
            self._comm.open()

    def give_up(self) -> None:
        """From another thread: end the operation under way. Without a question on the screen the app ends it too."""
        self._given_up.set()

    @property
    def question_open(self) -> bool:
        return self._attendant is not None and self._attendant.is_alive()

    def stop(self) -> None:
        self._closing.set()
        if self._attendant is not None:
            self._attendant.join(10 * _SLICE_SECONDS)
        self._comm.close()

    def _exchange(self, command: bytes) -> tuple[int, bytes]:
        self._comm.send(command)
        waited, told = 0.0, False
        while not self._comm.wait(_SLICE_SECONDS):
            waited += _SLICE_SECONDS
            if self._watch is None or not self._watch.may_ask():
                if waited >= _ANSWER_SECONDS:
                    raise DeviceFailure(TimedOut.code, _SILENCE)
            elif self._given_up.is_set():
                self._stay()
            elif waited >= _ASKING_SECONDS and not told:
                told = True
                self._watch.on_asking()
        return self._receive()

    def _receive(self) -> tuple[int, bytes]:
        status, answer = self._comm.recv()
        return int(status), bytes(answer)

    def _require_wanted(self, *, continuing: bool) -> None:
        if not self._given_up.is_set():
            return
        if continuing and not self.question_open:
            self._end_command()
        raise DeviceFailure(Cancelled.code, None, question_open=self.question_open)

    def _end_command(self) -> None:
        """The app waits for its host, and takes this for the end of its command: it answers that the data is wrong."""
        self._comm.send(_command(*_FINGERPRINT))
        if self._comm.wait(_ANSWER_SECONDS):
            self._receive()

    def _stay(self) -> None:
        self._attendant = threading.Thread(target=self._attend, name="ledger-question", daemon=True)
        self._attendant.start()
        raise DeviceFailure(Cancelled.code, None, question_open=True)

    def _attend(self) -> None:
        """Wait until the question is off the screen. No transaction is signed, and what else comes is dropped."""
        left = _ATTEND_SECONDS
        try:
            while not self._comm.wait(_SLICE_SECONDS):
                left -= _SLICE_SECONDS
                if self._closing.is_set() or left <= 0:
                    self._broken = True
                    return
            if self._receive()[0] == INTERRUPTED:
                self._end_command()
        except Exception:  # noqa: BLE001 - whatever the transport raises: the next operation connects anew
            self._broken = True


def open_link(endpoint: Endpoint) -> Link:
    comm = _comm(endpoint)
    comm.open()
    return Link(comm)


def _comm(endpoint: Endpoint) -> Any:
    if endpoint.kind == "tcp":
        host, _, port = endpoint.place.rpartition(":")
        return Tcp(host, int(port))
    return Usb(hid_path=endpoint.place.encode())


def _command(cla: int, ins: int, data: bytes = b"", p1: int = 0, p2: int = 0) -> bytes:
    return bytes(Transport.apdu_header(cla, ins, p1, p2, None, len(data))) + bytes(data)


def _is_harmless(cla: int, ins: int, data: bytes) -> bool:
    return (cla, ins) in {_VERSION, _FINGERPRINT} or ((cla, ins) == _XPUB and data[:1] == _SILENT)
