"""The kernel's lists of the sockets on this machine: `/proc/net/udp`, `udp6`, `tcp`, `tcp6` and `unix`.
Reading them sends nothing to any program.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

Address = IPv4Address | IPv6Address

# include/net/tcp_states.h. An unconnected UDP socket is "closed", a connected one "established".
ESTABLISHED: Final = 0x01
CLOSED: Final = 0x07
LISTENING: Final = 0x0A

_WORD: Final = 4
_LOOPBACK: Final[tuple[Address, ...]] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
_UNIX_PATH: Final = 7


@dataclass(frozen=True)
class InetSocket:
    """One UDP or TCP socket. `inode` is the number in the links of its owner's descriptors."""

    local: Address
    port: int
    remote: Address
    remote_port: int
    state: int
    inode: int

    def hears(self, hosts: Sequence[Address]) -> bool:
        """Whether the socket receives what is sent to one of these addresses. A wildcard covers its IP
        version, `::` both.
        """
        return any(_covers(self.local, host) for host in hosts)


def _covers(bound: Address, host: Address) -> bool:
    mapped = bound.ipv4_mapped if isinstance(bound, IPv6Address) else None
    if bound.is_unspecified or (mapped is not None and mapped.is_unspecified):
        return bound.version == 6 or host.version == 4
    return host in {bound, mapped}


def loopback_hosts(host: str) -> tuple[Address, ...]:
    """The loopback addresses that `host` may mean; none if it is another machine."""
    if host == "localhost":
        return _LOOPBACK
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return ()
    return (address,) if address.is_loopback else ()


def inet_sockets(table: str, ports: Iterable[int]) -> list[InetSocket]:
    """The sockets of a table with one of these ports at either end. Malformed lines are ignored."""
    endings = tuple(f":{port:04X}" for port in ports)
    found: list[InetSocket] = []
    if not any(ending in table for ending in endings):
        return found
    for line in table.splitlines()[1:]:
        fields = line.split(maxsplit=10)
        if len(fields) > 9 and (fields[1].endswith(endings) or fields[2].endswith(endings)):
            socket = _inet_socket(fields)
            if socket is not None:
                found.append(socket)
    return found


def _inet_socket(fields: Sequence[str]) -> InetSocket | None:
    try:
        local, port = _end(fields[1])
        remote, remote_port = _end(fields[2])
        return InetSocket(local, port, remote, remote_port, int(fields[3], 16), int(fields[9]))
    except ValueError:
        return None


def _end(text: str) -> tuple[Address, int]:
    digits, _colon, port = text.partition(":")
    return _address(bytes.fromhex(digits)), int(port, 16)


def _address(words: bytes) -> Address:
    """The kernel prints each word as a number in this machine's byte order."""
    if sys.byteorder == "little":
        words = b"".join(words[at : at + _WORD][::-1] for at in range(0, len(words), _WORD))
    return ip_address(words)


def unix_paths(table: str) -> frozenset[str]:
    """The paths of bound Unix sockets."""
    lines = (line.split(maxsplit=_UNIX_PATH) for line in table.splitlines()[1:])
    return frozenset(fields[_UNIX_PATH] for fields in lines if len(fields) > _UNIX_PATH)
