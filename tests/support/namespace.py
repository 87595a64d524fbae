"""Runs programs in a network and with an empty /tmp of their own, where HWI's fixed addresses are free.

Needs Linux, util-linux and user namespaces, but not root. Without them the tests are skipped.
"""

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 900  # seconds

# The project itself may be below /tmp: it is mounted again in the new one.
_SETUP = """
set -e
cd "$PROJECT"
mount -t tmpfs tmpfs /tmp
case "$PROJECT/" in /tmp/*)
    mkdir -p "$PROJECT"
    mount --no-canonicalize --bind /proc/self/cwd "$PROJECT"
    cd "$PROJECT"
esac
exec "$@"
"""
_ENTER = ("unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c", _SETUP, "sh")
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1


def run_isolated(module, *arguments, deadline=DEADLINE):
    """Runs a module of tests.support in a namespace of its own; returns the JSON that it prints last."""
    _require_namespaces()
    done = _run(sys.executable, "-m", f"tests.support.{module}", *arguments, deadline=deadline)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def isolated(*command: str) -> tuple[list[str], dict[str, str]]:
    """The command line and environment that run the command in a namespace of its own."""
    environment = {**os.environ, "PROJECT": str(ROOT), "PYTHONPATH": str(ROOT)}
    return [*_ENTER, *command], environment


def _run(*command, deadline=DEADLINE):
    started, environment = isolated(*command)
    return subprocess.run(
        started, env=environment, capture_output=True, text=True, timeout=deadline, check=False
    )


def _require_namespaces():
    if sys.platform != "linux" or shutil.which("unshare") is None:
        pytest.skip("no namespaces: this needs Linux and util-linux's unshare")
    tried = _run(sys.executable, "-c", "")
    if tried.returncode:
        pytest.skip(f"no user namespace is to be had here: {tried.stderr.strip()}")


def raise_loopback() -> None:
    """Brings up the loopback interface of this namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh22x", b"lo", 0)
        _, flags = struct.unpack("16sh22x", fcntl.ioctl(probe, _SIOCGIFFLAGS, request))
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))
