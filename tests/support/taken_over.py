"""A worker whose driver a device has compromised: each operation attempts one escape from inside the real
worker.
"""

import ctypes
import functools
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from firmware_bridge import hwi_client, worker
from firmware_bridge.worker import Process

_LIBC = ctypes.CDLL(None, use_errno=True)
_PTRACE_SEIZE = 0x4206
_SET_PTRACER, _ANY_PROCESS = 0x59616D61, -1
_INET_DGRAM = (socket.AF_INET, socket.SOCK_DGRAM)
_INET_STREAM = (socket.AF_INET, socket.SOCK_STREAM)


def _called(result: int) -> None:
    """:raises OSError: a C function has failed."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _journal(args: Mapping[str, Any]) -> None:
    with sqlite3.connect(f"file:{args['journal']}?mode=ro", uri=True) as database:
        database.execute("SELECT count(*) FROM sqlite_master").fetchall()


def _connect(args: Mapping[str, Any]) -> None:
    socket.create_connection(("127.0.0.1", args["tcp"]), timeout=5).close()


def _datagram(args: Mapping[str, Any]) -> None:
    with socket.socket(*_INET_DGRAM) as way:
        way.sendto(b"seed", ("127.0.0.1", args["tcp"]))


def _listen(_args: Mapping[str, Any]) -> None:
    with socket.socket(*_INET_STREAM) as way:
        way.bind(("127.0.0.1", 0))
        way.listen()


def _session_bus(args: Mapping[str, Any]) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as way:
        way.connect(args["bus"])


def _fork(_args: Mapping[str, Any]) -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def _execute(_args: Mapping[str, Any]) -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


def _become(_args: Mapping[str, Any]) -> None:
    """Only the seccomp filter answers before the kernel looks for the file."""
    try:
        os.execv("/nowhere/no-program", ["no-program"])
    except FileNotFoundError:
        return


def _trace(args: Mapping[str, Any]) -> None:
    """It ends with this process."""
    _called(_LIBC.ptrace(_PTRACE_SEIZE, args["victim"], None, None))


def _read_memory(args: Mapping[str, Any]) -> None:
    into = ctypes.create_string_buffer(8)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(into), 8)
    remote = (ctypes.c_size_t * 2)(args["address"], 8)
    _called(_LIBC.process_vm_readv(args["victim"], local, 1, remote, 1, 0))


def _signal_io(args: Mapping[str, Any]) -> None:
    """A signal through a descriptor's owner."""
    import fcntl

    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, args["victim"])
    os.close(reading)
    os.close(writing)


def _keyring(_args: Mapping[str, Any]) -> None:
    """KEYCTL_GET_KEYRING_ID of the user's keyring."""
    _called(_LIBC.syscall(250 if os.uname().machine == "x86_64" else 219, 0, -4, 1))


def _thread(_args: Mapping[str, Any]) -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


def _late_import(_args: Mapping[str, Any]) -> None:
    import wave

    assert wave.__file__


def _own_device(args: Mapping[str, Any]) -> None:
    import termios

    with Path(args["own"]).open("r+b", buffering=0) as port:
        termios.tcgetattr(port.fileno())
        port.write(b"ask")


def _open_for_writing(name: str, args: Mapping[str, Any]) -> None:
    with Path(args[name]).open("r+b", buffering=0):
        pass


FORBIDDEN: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "open the journal": _journal,
    "copy the journal": lambda args: Path(args["journal"]).read_bytes(),
    "open the journal to others": lambda args: Path(args["journal"]).chmod(0o644),
    "remove the journal": lambda args: Path(args["journal"]).replace(args["journal"]),
    "list the state folder": lambda args: list(Path(args["state"]).iterdir()),
    "read the home": lambda args: Path(args["home"], ".ssh", "id_ed25519").read_text(),
    "write to /tmp": lambda args: Path(args["state"]).parent.joinpath("left-behind").write_text("x"),
    "read another process's environment": lambda args: Path(f"/proc/{args['victim']}/environ").read_bytes(),
    "open another device": functools.partial(_open_for_writing, "other"),
    "connect over TCP": _connect,
    "send a datagram": _datagram,
    "listen": _listen,
    "call the session bus": _session_bus,
    "fork": _fork,
    "start a program": _execute,
    "become a program": _become,
    "trace a process": _trace,
    "read a process's memory": _read_memory,
    "signal a process": lambda args: os.kill(args["victim"], signal.SIGCONT),
    "signal a process by a descriptor": _signal_io,
    "slow a process down": lambda args: os.setpriority(os.PRIO_PROCESS, args["victim"], 19),
    "use the keyring": _keyring,
}
NEEDED: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "use its own device": _own_device,
    "start a thread": _thread,
    "import late": _late_import,
    "signal itself": lambda _args: os.kill(os.getpid(), signal.SIGCONT),
}


class _TakenOver:
    """A driver: see `firmware_bridge.protocol.DeviceClient`. Returns how each attempt ended."""

    def call(self, op: str, args: Mapping[str, Any]) -> str:
        try:
            {**FORBIDDEN, **NEEDED}[op](args)
        except Exception as error:  # noqa: BLE001 - what stops an attempt is the answer
            return type(error).__name__
        return "done"

    def cancel(self) -> None: ...

    def close(self) -> None: ...


def _entry(channel: socket.socket, endpoint: str, network: str, *, confined: bool) -> None:
    hwi_client.open_device = lambda *_args: _TakenOver()  # type: ignore[assignment,return-value]
    worker.main(channel, endpoint, network, confined=confined)


def start(channel: socket.socket, endpoint: str, network: str, *, confined: bool) -> Process:
    return worker.spawn(channel, endpoint, network, entry=functools.partial(_entry, confined=confined))


def let_be_traced() -> int:
    """For the victim: lets any process trace it, even where the system allows only parents. Returns an
    address in its memory.
    """
    _LIBC.prctl(_SET_PTRACER, _ANY_PROCESS, 0, 0, 0)
    return id(_LIBC)
