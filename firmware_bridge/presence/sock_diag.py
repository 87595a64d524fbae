"""Which TCP sockets listen, asked of the kernel: `/proc/net/tcp` walks through every bucket for connections, 1 ms and more.

The question that `ss -lt` asks (sock_diag(7)); it goes to the kernel, and to nobody else.
"""

import socket
import struct
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from firmware_bridge.presence.kernel_sockets import LISTENING, Address, InetSocket

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_REQUEST_DUMP: Final = 0x301
_ERROR: Final = 2
_DONE: Final = 3
_HEADER: Final = struct.Struct("=IHHII")
_QUESTION: Final = struct.Struct("=BBBBI48x")
# family, state, two timers; source and destination port, source, destination, interface, cookie; times, queues, owner, inode
_ANSWER: Final = struct.Struct("=BBBB2s2s16s16s12s16sI")
_SECONDS: Final = 0.5
_BUFFER: Final = 1 << 16
# What Linux calls the two families, whatever this build of Python was given.
_FAMILIES: Final = {4: 2, 6: 10}


def listening(version: int) -> list[InetSocket]:
    """Every TCP socket for this version of IP that listens in this network namespace.

    :raises OSError: this kernel does not answer the question.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_SECONDS)
        return list(_listening(kernel, _FAMILIES[version]))


def _listening(kernel: socket.socket, family: int) -> Iterator[InetSocket]:
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, 1 << LISTENING)
    size = _HEADER.size + len(question)
    kernel.send(_HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 0, 0) + question)
    while True:
        for kind, body in messages(kernel.recv(_BUFFER)):
            if kind == _DONE:
                return
            if kind == _ERROR:
                raise OSError("the kernel does not tell which sockets listen")
            yield parse(body)


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, body) of each netlink message. A length that cannot be ends the reading."""
    at = 0
    while at + _HEADER.size <= len(data):
        size, kind, _flags, _sequence, _sender = _HEADER.unpack_from(data, at)
        if size < _HEADER.size:
            return
        yield kind, data[at + _HEADER.size : at + size]
        at += (size + 3) & ~3


def parse(body: bytes) -> InetSocket:
    """:raises OSError: the kernel's answer has another form than ours."""
    if len(body) < _ANSWER.size:
        raise OSError("an answer of sock_diag is too short")
    family, state, _, _, port, remote_port, local, remote, _, _, inode = _ANSWER.unpack_from(body)
    return InetSocket(
        _address(family, local),
        int.from_bytes(port, "big"),
        _address(family, remote),
        int.from_bytes(remote_port, "big"),
        state,
        inode,
    )


def _address(family: int, packed: bytes) -> Address:
    return IPv4Address(packed[:4]) if family == _FAMILIES[4] else IPv6Address(packed)
