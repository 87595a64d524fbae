"""The link to a Coldcard: HID or a simulator's Unix socket, its encryption, and uploads."""

import math
import socket
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import hid
from coincurve import PrivateKey, PublicKey
from coincurve.ecdsa import cdata_to_der, deserialize_compact, signature_normalize
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from hwilib.devices.ckcc.client import ColdcardDevice, UnixSimulatorPipe
from hwilib.devices.ckcc.constants import MAX_BLK_LEN
from hwilib.devices.ckcc.protocol import CCProtocolPacker as Packer
from hwilib.devices.ckcc.utils import decode_xpub

from firmware_bridge.model import Endpoint

# How soon it is noticed that a simulator has gone.
_LIVENESS_SECONDS: Final = 0.5
_ABSTRACT_NAMES: Final = sys.platform.startswith("linux")


class UnixPipe(UnixSimulatorPipe):  # type: ignore[misc]  # HWI is untyped
    """The simulator's socket at any path. ckcc builds the reply socket's name from that path, and it may not
    exist.
    """

    socket_path: str
    pipe_name: str
    pipe: socket.socket

    def __init__(self, path: str) -> None:
        if sys.platform == "win32":
            raise OSError("the simulator's socket needs Unix")
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
            # The kernel picks an abstract name: no file that another user could prepare, or that a kill would
            # leave behind.
            return ""
        self._folder = tempfile.TemporaryDirectory()
        self.pipe_name = str(Path(self._folder.name) / "s")
        return self.pipe_name

    def read(self, max_count: int, timeout_ms: int | None = None) -> bytes | None:
        """As ckcc's, but raises if the simulator's socket was closed, which datagrams do not tell."""
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
        if sys.platform == "win32":
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            probe.connect(self.socket_path)

    def close(self) -> None:
        self.pipe.close()
        if self._folder is not None:
            self._folder.cleanup()


def connect(endpoint: Endpoint) -> Any:
    """The connection, as ckcc expects it."""
    if endpoint.kind == "unix":
        return UnixPipe(endpoint.place)
    device = hid.device()
    device.open_path(endpoint.place.encode())
    return device


_UNCOMPRESSED = b"\x04"


class Ckcc(ColdcardDevice):  # type: ignore[misc]  # HWI is untyped
    """ckcc's client, with libsecp256k1 and OpenSSL instead of ecdsa and pyaes, which are pure Python.

    ckcc asks for that: "should be replaced in subclasses if you have other EC libraries". pyaes takes three
    quarters of the time of signing a large transaction, and ecdsa's first multiplication 15 ms.
    """

    def ec_setup(self) -> bytes:
        self.my_key = PrivateKey()
        return self.my_key.public_key.format(compressed=False)[1:]

    def ec_mult(self, his_pubkey: bytes) -> bytes:
        """:raises ValueError: the device's point is not on the curve."""
        point = PublicKey(_UNCOMPRESSED + his_pubkey).multiply(self.my_key.secret)
        del self.my_key
        return sha256(point.format(compressed=False)[1:]).digest()

    def aes_setup(self, session_key: bytes) -> None:
        """One stream each way, both from counter 0."""
        start = CTR(bytes(16))
        self.encrypt_request = Cipher(AES256(session_key), start).encryptor().update
        self.decrypt_response = Cipher(AES256(session_key), start).decryptor().update

    def mitm_verify(self, sig: bytes, expected_xpub: Any) -> bool:
        """Whether the key of `expected_xpub` has signed the session's key, so that there is no man in the
        middle (S21).
        """
        public_key, _chain_code = decode_xpub(expected_xpub)
        try:
            # ckcc accepts a high S, libsecp256k1 only a low one.
            _, lower = signature_normalize(deserialize_compact(sig[1:]))
            return PublicKey(public_key).verify(cdata_to_der(lower), self.session_key, hasher=None)
        except ValueError:
            return False


# How often progress is reported: about every quarter of a second on a Mk4.
_TELL_EVERY: Final = 16 * MAX_BLK_LEN

OnSent = Callable[[int], None]


def upload(ckcc: Any, content: bytes, on_sent: OnSent) -> tuple[int, bytes]:
    """Upload a file. Returns its length and SHA-256. `on_sent` is called with the bytes sent so far, and may
    raise to stop.

    :raises RuntimeError: the device received something else.
    """
    for at in range(0, len(content), MAX_BLK_LEN):
        if at % _TELL_EVERY == 0:
            on_sent(at)
        ckcc.send_recv(Packer.upload(at, len(content), content[at : at + MAX_BLK_LEN]))
    digest = sha256(content).digest()
    if ckcc.send_recv(Packer.sha256()) != digest:
        raise RuntimeError("the device received another file than was sent")
    return len(content), digest
