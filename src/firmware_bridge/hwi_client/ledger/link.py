"""The road to a Ledger: one command out, one answer with a status word back (APDU), under the client that HWI bundles.

HWI's own TCP transport takes what one read happens to return for the whole answer, and a closed connection for a status of
nothing at all. Watching here, below the client, also tells how far a signing is without touching the client itself.
"""

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

from hwilib.devices.ledger_bitcoin.client_base import ApduException, TransportClient
from hwilib.devices.ledger_bitcoin.client_command import ClientCommandCode
from hwilib.devices.ledger_bitcoin.command_builder import (
    BitcoinCommandBuilder,
    BitcoinInsType,
    DefaultInsType,
)
from hwilib.devices.ledger_bitcoin.ledgercomm.interfaces.comm import Comm
from hwilib.devices.ledger_bitcoin.ledgercomm.interfaces.hid_device import HID
from hwilib.devices.ledger_bitcoin.ledgercomm.transport import Transport

from firmware_bridge.hwi_client.ledger.status import INCORRECT_DATA, INTERRUPTED, OK
from firmware_bridge.model import Endpoint

_CONNECT_SECONDS: Final = 5.0
# The longest answer to a short command (ISO 7816-4), which all of the app's are.
_MAX_ANSWER: Final = 256
_BITCOIN: Final = BitcoinCommandBuilder.CLA_BITCOIN
# Questions that no person sees and that change nothing. An xpub has the wish to show it as its first byte.
_VERSION: Final = (BitcoinCommandBuilder.CLA_DEFAULT, DefaultInsType.GET_VERSION)
_FINGERPRINT: Final = (_BITCOIN, BitcoinInsType.GET_MASTER_FINGERPRINT)
_XPUB: Final = (_BITCOIN, BitcoinInsType.GET_EXTENDED_PUBKEY)
_SILENT: Final = b"\x00"

OnYield = Callable[[], None]


class GarbledAnswer(Exception):
    """What came back is no answer to a command."""


class Tcp(Comm):  # type: ignore[misc]  # HWI is untyped
    """An emulator's socket: four bytes of length, the data, and (in answers, not counted) two bytes of status."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._socket: Any = None
        self._answers: Any = None

    def open(self) -> None:
        self._socket = socket.create_connection(self._address, timeout=_CONNECT_SECONDS)
        # A person may think for minutes; whoever asks keeps the deadline.
        self._socket.settimeout(None)
        # A machine that is gone without a word is noticed all the same.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._answers = self._socket.makefile("rb")

    def send(self, data: bytes) -> int:
        self._socket.sendall(len(data).to_bytes(4) + data)
        return len(data)

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
        self._answers.close()
        self._socket.close()

    def _receive(self, size: int) -> bytes:
        data = bytes(self._answers.read(size))
        if len(data) < size:
            raise ConnectionResetError("the device closed the connection")
        return data


class Link(TransportClient):  # type: ignore[misc]  # HWI is untyped
    """What the client sends its commands through."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._on_yield: OnYield | None = None
        self._refusals: frozenset[int] = frozenset()
        self._refused = False

    def apdu_exchange(self, cla: int, ins: int, data: bytes = b"", p1: int = 0, p2: int = 0) -> bytes:
        """:raises ApduException: any status but success."""
        command = Transport.apdu_header(cla, ins, p1, p2, None, len(data)) + bytes(data)
        status, answer = self._comm.exchange(command)
        if status == INCORRECT_DATA and _is_harmless(cla, ins, data):
            # The app was left in the middle of a command: it says so once, to whoever comes next, and forgets it.
            status, answer = self._comm.exchange(command)
        if status == INTERRUPTED and answer[:1] == bytes([ClientCommandCode.YIELD]) and self._on_yield:
            self._on_yield()
        self._refused = self._refused or status in self._refusals
        if status != OK:
            raise ApduException(status, answer)
        return bytes(answer)

    @contextlib.contextmanager
    def refusals(self, statuses: frozenset[int]) -> Iterator[Callable[[], bool]]:
        """Meanwhile these words are a person's no; gives the way to learn whether there was one.

        HWI's legacy client swallows every failure where the person looks at the outputs, goes on with another command, and
        fails with the answer to that.
        """
        self._refusals, self._refused = statuses, False
        try:
            yield lambda: self._refused
        finally:
            self._refusals = frozenset()

    @contextlib.contextmanager
    def watching(self, on_yield: OnYield) -> Iterator[None]:
        """Meanwhile call this for each result that the device hands over before its last word."""
        self._on_yield = on_yield
        try:
            yield
        finally:
            self._on_yield = None

    def stop(self) -> None:
        self._comm.close()


def open_link(endpoint: Endpoint) -> Link:
    comm = _comm(endpoint)
    comm.open()
    return Link(comm)


def _comm(endpoint: Endpoint) -> Any:
    if endpoint.kind == "tcp":
        host, _, port = endpoint.place.rpartition(":")
        return Tcp(host, int(port))
    return HID(hid_path=endpoint.place.encode())


def _is_harmless(cla: int, ins: int, data: bytes) -> bool:
    return (cla, ins) in {_VERSION, _FINGERPRINT} or ((cla, ins) == _XPUB and data[:1] == _SILENT)
