"""A Digital Bitbox on a UDP port: encrypted JSON, a real seed, a count of wrong passwords,
and a touch button.

It answers HWI as the emulator of firmware 5 does on its socket:
one datagram for each request and reply.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hwilib.devices.digitalbitbox import decrypt_aes, derive_keys, encrypt_aes

from device_simulators.seed import Seed
from firmware_bridge.model import Endpoint, Family
from multisig import DerivationPath, Network

_COMPACT_HEADER = 31


@dataclass
class DigitalBitboxPeer:
    """The device. `decide` is the touch of the button; `commands` lists the requests,
    `None` for one that it could not read.
    """

    seed: Seed
    password: str | None = "correct horse"
    seeded: bool = True
    attempts: int = 10
    decide: Callable[[], bool] = lambda: True
    commands: list[str | None] = field(default_factory=list)
    errors: dict[str, tuple[Any, str]] = field(default_factory=dict)
    vanish_at: str | None = None
    _echoed: str | None = None

    def answer(self, datagram: bytes) -> bytes | None:
        if datagram == b'{"ping":""}':
            self.commands.append("ping")
            return json.dumps({"ping": "password" if self.password else "false"}).encode()
        try:
            command = json.loads(self._decrypt(datagram))
        except ValueError:
            self.commands.append(None)
            return self._count_down()
        (name,) = command
        self.commands.append(name)
        if name == self.vanish_at:
            return None
        return self._encrypt(json.dumps(self._obey(name, command[name])))

    def _obey(self, name: str, argument: Any) -> dict[str, Any]:
        if name in self.errors:
            code, message = self.errors[name]
            return {"error": {"code": code, "message": message}}
        return getattr(self, f"_do_{name}")(argument)

    def _do_device(self, _argument: str) -> dict[str, Any]:
        return {"device": {"name": "Digital Bitbox", "version": "v5.0.0", "seeded": self.seeded}}

    def _do_led(self, _argument: str) -> dict[str, Any]:
        return {"led": "success"}

    def _do_xpub(self, path: str) -> dict[str, Any]:
        return {"xpub": str(self.seed.xpub(_path(path), Network.MAINNET))}

    def _do_sign(self, argument: dict[str, Any]) -> dict[str, Any]:
        """The first request is only echoed; the same one again is signed."""
        text = json.dumps(argument)
        if self._echoed != text:
            self._echoed = text
            return {"sign": "", "echo": "for the paired phone"}
        self._echoed = None
        if not self.decide():
            return {"error": {"code": 600, "message": "Aborted by user."}}
        return {"sign": [self._sign(item["hash"], item["keypath"]) for item in argument["data"]]}

    def _sign(self, digest: str, path: str) -> dict[str, str]:
        compact = self.seed.sign_recoverable(_path(path), bytes.fromhex(digest))
        return {"sig": compact[1:].hex(), "recid": f"{compact[0] - _COMPACT_HEADER:02x}"}

    def _count_down(self) -> bytes:
        self.attempts -= 1
        message = f"{self.attempts} attempts remain before the device is reset."
        return json.dumps({"error": {"code": 900, "message": message}}).encode()

    def _decrypt(self, datagram: bytes) -> bytes:
        encryption, authentication = derive_keys(self.password or "")
        data = base64.b64decode(datagram)
        if not hmac.compare_digest(hmac.new(authentication, data[:-32], hashlib.sha256).digest(), data[-32:]):
            raise ValueError("another password")
        return decrypt_aes(encryption, data[:-32])

    def _encrypt(self, text: str) -> bytes:
        encryption, authentication = derive_keys(self.password or "")
        data = encrypt_aes(encryption, text.encode())
        sealed = base64.b64encode(data + hmac.new(authentication, data, hashlib.sha256).digest())
        return json.dumps({"ciphertext": sealed.decode()}).encode()


def _path(text: str) -> DerivationPath:
    return DerivationPath.parse(text.replace("'", "h"))


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        datagram, sock = self.request
        answer = self.server.peer.answer(datagram)
        if answer is not None:
            sock.sendto(answer, self.client_address)
            return
        self.server.socket.close()


class _Server(socketserver.ThreadingUDPServer):
    daemon_threads = True
    max_packet_size = 65536


@contextlib.contextmanager
def plugged_in(peer: DigitalBitboxPeer) -> Iterator[Endpoint]:
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.peer = peer
        thread = threading.Thread(target=_serve, args=(server,), daemon=True)
        thread.start()
        try:
            yield Endpoint(Family.DIGITALBITBOX, f"udp:127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
            thread.join()


def _serve(server: _Server) -> None:
    """Serves until it is shut down or its socket is closed."""
    with contextlib.suppress(ValueError):
        server.serve_forever(poll_interval=0.02)
