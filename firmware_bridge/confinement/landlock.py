"""Landlock: a process gives up the file system, TCP ports, and signals to other processes, for good. Needs no
privilege.

Source: Documentation/userspace-api/landlock.rst and include/uapi/linux/landlock.h of Linux 6.18. No library
is used: the only one on the package index that is not new is a development release of ABI 4
(docs/adr/0025-device-workers-are-confined.md).
"""

import ctypes
import functools
import os
import stat
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# The same numbers on every architecture.
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_GET_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_NET_PORT: Final = 2

# Rights to files; the first ABI has the first 13 bits.
_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
_ABI_1: Final = (1 << 13) - 1
_REFER: Final = 1 << 13  # ABI 2
_TRUNCATE: Final = 1 << 14  # ABI 3
_IOCTL_DEV: Final = 1 << 15  # ABI 5
_OF_FILES: Final = _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

_BIND_TCP: Final = 1 << 0  # ABI 4
_CONNECT_TCP: Final = 1 << 1
# Abstract Unix sockets, and signals, of processes outside (ABI 6).
_SCOPES: Final = 0b11

READ: Final = _READ_FILE | _READ_DIR
LIST: Final = _READ_DIR
USE_DEVICE: Final = _READ_FILE | _WRITE_FILE | _IOCTL_DEV


@dataclass(frozen=True)
class PathRule:
    """`rights` below `path`; a missing path is skipped."""

    path: Path
    rights: int


def abi() -> int:
    """The kernel's version of Landlock; 0 if it has none, or if it is switched off."""
    if sys.platform != "linux":
        return 0
    try:
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_GET_VERSION))
    except OSError:
        return 0


def restrict(rules: Iterable[PathRule], tcp_ports: Iterable[int]) -> int:
    """Allow this thread, and those that it starts, these files and connections to these TCP ports, and no
    others. Returns the ABI.

    Needs `no_new_privs`.

    :raises OSError: the kernel refused; the thread is unchanged.
    """
    version = abi()
    if not version:
        return 0
    handled = _ABI_1
    for least, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        handled |= right if version >= least else 0
    # A kernel refuses a structure with fields that it does not know.
    size = 8 if version < 4 else 16 if version < 6 else 24
    attr = struct.pack("=QQQ", handled, _BIND_TCP | _CONNECT_TCP, _SCOPES)[:size]
    ruleset = _call(_CREATE_RULESET, attr, ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for rule in rules:
            _allow_path(ruleset, rule, handled)
        for port in tcp_ports if version >= 4 else ():
            _add(ruleset, _NET_PORT, struct.pack("=QQ", _CONNECT_TCP, port))
        _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    return version


def _allow_path(ruleset: int, rule: PathRule, handled: int) -> None:
    if sys.platform != "linux":
        return
    try:
        parent = os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        is_folder = stat.S_ISDIR(os.fstat(parent).st_mode)
        rights = rule.rights & handled & (handled if is_folder else _OF_FILES)
        if rights:
            _add(ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, parent))
    finally:
        os.close(parent)


def _add(ruleset: int, kind: int, attr: bytes) -> None:
    _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(kind), attr, ctypes.c_uint32(0))


@functools.cache
def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *args: object) -> int:
    """:raises OSError: with the kernel's errno."""
    result = int(libc().syscall(ctypes.c_long(number), *args))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
