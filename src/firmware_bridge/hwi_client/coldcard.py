"""Coldcard through the ckcc library that HWI bundles: HWI's own client has no enrolment and polls without an end.

A new handshake re-keys the device's one session, so whoever connects second breaks what the first one does; but the device
keeps its question and its result until somebody collects them, and a later session can.
"""

import math
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import hid
from hwilib.devices.ckcc.client import UnixSimulatorPipe
from hwilib.devices.ckcc.constants import AF_CLASSIC, MAX_BLK_LEN
from hwilib.devices.ckcc.protocol import CCProtocolPacker as Packer
from hwilib.devices.ckcc.protocol import CCProtoError, CCUserRefused
from hwilib.key import ExtendedKey

from firmware_bridge.errors import Cancelled
from firmware_bridge.hwi_client.base import (
    Args,
    NotAvailable,
    OpenDevice,
    Operation,
    decode_base64,
    encode_base64,
    probed,
)
from firmware_bridge.hwi_client.coldcard_cipher import Ckcc
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.port import Caller, DeviceFailure, Opening
from multisig import Network

# MAX_TXN_LEN of the Mk4's firmware. Earlier models take 384 KiB and say so themselves.
MAX_PSBT_BYTES: Final = 2 * 1024 * 1024
# HWI polls every 250 ms; a person's OK is noticed sooner here, and a poll costs the device next to nothing.
_POLL_SECONDS: Final = 0.1
# ckcc waits twice this long. A Coldcard that validates or signs 250 inputs answers nobody for several seconds.
_POLL_ANSWER_MS: Final = 30_000
# How soon it is noticed that nobody is at the other end of a simulator's socket any more.
_LIVENESS_SECONDS: Final = 0.5
_ABSTRACT_NAMES: Final = sys.platform.startswith("linux")


class _UnixPipe(UnixSimulatorPipe):  # type: ignore[misc]  # HWI is untyped
    """The simulator's socket at any path. ckcc's own name for the reply socket is built from that path and may not exist."""

    def __init__(self, path: str) -> None:
        self.socket_path = path
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.pipe_name = ""
        self.pipe = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self.pipe.bind(self._own_name())
            self.pipe.connect(path)
        except OSError:
            self.close()
            raise

    def _own_name(self) -> str:
        if _ABSTRACT_NAMES:
            # The kernel picks an abstract name: no file that another user could prepare, none left behind by a kill.
            return ""
        self._folder = tempfile.TemporaryDirectory()
        self.pipe_name = str(Path(self._folder.name) / "s")
        return self.pipe_name

    def read(self, max_count: int, timeout_ms: int | None = None) -> bytes | None:
        """As ckcc's, but nobody's answer is awaited from a socket that is closed: datagrams do not tell."""
        left = math.inf if not timeout_ms else timeout_ms / 1000
        while left > 0:
            wait = min(left, _LIVENESS_SECONDS)
            self.pipe.settimeout(wait)
            try:
                return self.pipe.recv(max_count)
            except TimeoutError:
                left -= wait
                self._require_listener()
        return None

    def _require_listener(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            probe.connect(self.socket_path)

    def close(self) -> None:
        self.pipe.close()
        if self._folder is not None:
            self._folder.cleanup()


class ColdcardDevice(OpenDevice):
    family = Family.COLDCARD

    def __init__(self, ckcc: Ckcc, network: Network, caller: Caller) -> None:
        self._ckcc = ckcc
        self._network = network
        self._caller = caller
        self._give_up = threading.Event()

    def operations(self) -> Mapping[str, Operation]:
        return {
            "probe": self._probe,
            "fingerprint": self._fingerprint,
            "xpubs": self._xpubs,
            "sign": self._sign,
            "sign_message": self._sign_message,
            "enrol": self._enrol,
        }

    def call(self, op: str, args: Args) -> Any:
        self._give_up.clear()
        return super().call(op, args)

    def cancel(self) -> None:
        """Stop waiting. The device's question stays on its screen: it knows no cancel."""
        self._give_up.set()

    def close(self) -> None:
        self._ckcc.close()

    def _probe(self, args: Args) -> Any:
        return probed(self._model(), fingerprint=self._fingerprint(args))

    def _model(self) -> str:
        try:
            lines = self._ckcc.firmware_version()
        except CCProtoError:
            return "Coldcard"
        # Date, version, bootloader, full date, hardware: older firmware stops earlier.
        return f"Coldcard {lines[4].capitalize()}" if len(lines) > 4 else "Coldcard"

    def _fingerprint(self, _args: Args) -> Any:
        """Asked anew: the one from the handshake would not show a passphrase that was entered since."""
        return str(ExtendedKey.deserialize(self._read_xpub("m/0h")).parent_fingerprint.hex())

    def _xpubs(self, args: Args) -> Any:
        xpubs = [self._read_xpub(path) for path in args["paths"]]
        return {"fingerprint": self._fingerprint(args), "xpubs": xpubs}

    def _read_xpub(self, path: str) -> str:
        return str(self._ckcc.send_recv(Packer.get_xpub(path.replace("h", "'"))))

    def _sign(self, args: Args) -> Any:
        psbt = decode_base64(args["psbt"])
        if len(psbt) > MAX_PSBT_BYTES:
            raise NotAvailable(f"a Coldcard takes {MAX_PSBT_BYTES} bytes at most, and this is {len(psbt)}")
        if args["resume"] and (collected := self._resume()) is not None:
            return collected
        self._caller.tell("sending", "Sending the transaction to the device")
        size, digest = self._ckcc.upload_file(psbt, blksize=MAX_BLK_LEN)
        self._ckcc.send_recv(Packer.sign_transaction(size, digest))
        return self._collect_transaction(None)

    def _resume(self) -> str | None:
        """The answer to an earlier, cut-off attempt at this same transaction, waiting for it where it is still open.

        None where there is nothing to collect. A "no" to that attempt is no answer to this one: the person is asked again.
        """
        try:
            done = self._ckcc.send_recv(Packer.get_signed_txn())
        except (CCProtoError, CCUserRefused):
            return None
        return self._collect_transaction(done)

    def _collect_transaction(self, done: tuple[Any, Any] | None) -> str:
        if done is None:
            self._caller.tell("confirm-transaction", "Confirm the transaction on the device")
            done = self._await_result(Packer.get_signed_txn())
        size, digest = done
        self._caller.tell("receiving", "Fetching the signatures from the device")
        return encode_base64(self._ckcc.download_file(size, digest, file_number=1))

    def _sign_message(self, args: Args) -> Any:
        path = args["path"].replace("h", "'")
        self._ckcc.send_recv(Packer.sign_message(args["text"].encode(), path, AF_CLASSIC))
        self._caller.tell("confirm-message", "Confirm the message on the device")
        _address, signature = self._await_result(Packer.get_signed_msg())
        return encode_base64(signature)

    def _await_result(self, poll: bytes) -> tuple[Any, Any]:
        while True:
            done = self._ckcc.send_recv(poll, timeout=_POLL_ANSWER_MS)
            if done is not None:
                first, second = done
                return first, second
            self._pause()

    def _pause(self) -> None:
        if self._give_up.wait(_POLL_SECONDS):
            raise DeviceFailure(Cancelled.code, None)

    def _enrol(self, args: Args) -> Any:
        policy = args["policy"]
        check = Packer.multisig_check(policy["threshold"], len(policy["keys"]), args["xor"])
        if not args["again"] and self._ckcc.send_recv(check):
            return None
        size, digest = self._ckcc.upload_file(args["file"].encode("ascii"), blksize=MAX_BLK_LEN)
        self._ckcc.send_recv(Packer.multisig_enroll(size, digest))
        self._caller.tell("confirm-enrolment", "Compare the vault's details on the device and confirm")
        self._await_enrolment(check)
        return None

    def _await_enrolment(self, check: bytes) -> None:
        """There is no answer of its own: a refusal is told like that of a transaction, an OK leaves no request behind."""
        while True:
            try:
                self._ckcc.send_recv(Packer.get_signed_txn(), timeout=_POLL_ANSWER_MS)
            except CCProtoError:
                if self._ckcc.send_recv(check):
                    return
                raise
            self._pause()


def open_coldcard(endpoint: Endpoint, network: Network, caller: Caller, opening: Opening) -> ColdcardDevice:  # noqa: ARG001 - a handshake starts afresh by itself
    """Connect, agree on a session key, and make sure that nobody sits in between (S21)."""
    ckcc = Ckcc(dev=_connect(endpoint))
    try:
        ckcc.check_mitm()
    except BaseException:
        ckcc.close()
        raise
    return ColdcardDevice(ckcc, network, caller)


def _connect(endpoint: Endpoint) -> Any:
    if endpoint.kind == "unix":
        return _UnixPipe(endpoint.place)
    device = hid.device()
    device.open_path(endpoint.place.encode())
    return device
