"""How ``custody chain`` reaches the server that runs the embedded chain: over a Unix socket in the chain's
folder, to which only its user can connect, with one line of JSON in each direction. So these commands load
neither the database nor the platform.
"""

import json
import os
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # The commands do not load the consensus engine.
    from custody.server.chain.embedded import EmbeddedChain

_NAME: Final = "commands.sock"
_LONGEST_LINE: Final = 4_096
# Generous: our own command may be slow on a busy machine.
_READING_SECONDS: Final = 30.0
# Paying much may mine a thousand blocks first, which takes seconds, and many times that on a busy machine.
_ANSWER_SECONDS: Final = 300.0


class NotServed(Exception):
    """No server runs the embedded chain of this folder, or it does not answer."""


class MiningRefused(Exception):
    """The chain cannot do it. The sentence says why."""


def ask(folder: Path, question: dict[str, Any]) -> dict[str, Any]:
    """``{"mine": count}`` gives the new tip's height and block hash; ``{"fund": address, "sats":
    amount}`` the payment's txid, which waits for the next block. Raises NotServed, MiningRefused.
    """
    with socket.socket(socket.AF_UNIX) as ours:
        ours.settimeout(_ANSWER_SECONDS)
        try:
            with _path_in(folder) as path:
                ours.connect(str(path))
            ours.sendall(json.dumps(question).encode() + b"\n")
            with ours.makefile("rb") as answers:
                line = answers.readline(_LONGEST_LINE)
        except (FileNotFoundError, ConnectionError, TimeoutError):
            line = b""
    if not line:
        raise NotServed
    answer: dict[str, Any] = json.loads(line)
    if "refused" in answer:
        raise MiningRefused(answer["refused"])
    return answer


@contextmanager
def mining_served(folder: Path, chain: "EmbeddedChain") -> Iterator[None]:
    """Answers the commands of this folder, one after the other, in a thread."""
    with _Listener(chain) as listener:
        with _path_in(folder) as path:
            # This process alone has the chain open, so an existing socket is left of one that was killed.
            path.unlink(missing_ok=True)
            listener.open(path)
        thread = threading.Thread(target=listener.serve_forever, name="mining", daemon=True)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown()
            thread.join()
            (folder / _NAME).unlink(missing_ok=True)


class _Listener(socketserver.UnixStreamServer):
    def __init__(self, chain: "EmbeddedChain") -> None:
        super().__init__("", _Connection, bind_and_activate=False)
        self.chain = chain

    def open(self, path: Path) -> None:
        if sys.platform == "linux":
            # The file gets this mode when it is created: other users can never connect.
            os.fchmod(self.fileno(), 0o600)
        self.socket.bind(str(path))
        path.chmod(0o600)
        self.server_activate()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: the command ended before it was answered."""

    def answer(self, line: bytes) -> dict[str, Any]:
        from custody.server.errors import CustodyError
        from multisig import MultisigError, sats

        try:
            question = json.loads(line)
            if "mine" in question:
                last = self.chain.mine(int(question["mine"]))[-1]
                return {"height": last.height, "block_hash": last.hash}
            return {"txid": self.chain.fund(str(question["fund"]), sats(question["sats"]))}
        except (ValueError, MultisigError, CustodyError) as error:
            return {"refused": str(error)}


class _Connection(socketserver.StreamRequestHandler):
    timeout = _READING_SECONDS
    server: _Listener

    def handle(self) -> None:
        line = self.rfile.readline(_LONGEST_LINE)
        if line:
            self.wfile.write(json.dumps(self.server.answer(line)).encode() + b"\n")


@contextmanager
def _path_in(folder: Path) -> Iterator[Path]:
    """A path of the socket that fits into sockaddr_un (108 bytes on Linux), however long the folder's
    path is.
    """
    if sys.platform != "linux":
        yield folder / _NAME
        return
    opened = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield Path(f"/proc/self/fd/{opened}/{_NAME}")
    finally:
        os.close(opened)
