"""What a worker gives up before it opens its device: a worker that its device has taken over reaches that
device and the pipe to the bridge, and nothing else.

`no_new_privs` and limits always, Landlock and seccomp where the kernel has them.
docs/understand/sandboxes.md has the table of what each kind of device needs, and from which source.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firmware_bridge.confinement import landlock, seccomp
from firmware_bridge.confinement.landlock import LIST, READ, USE_DEVICE, PathRule
from firmware_bridge.confinement.seccomp import Socket
from firmware_bridge.model import Endpoint
from firmware_bridge.presence.endpoints import host_and_port, loopback_hosts
from firmware_bridge.presence.usb import device_nodes

_SET_NO_NEW_PRIVS: Final = 38
# Linux's numbers.
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM = 1, 2
_KOBJECT_UEVENT: Final = 15
_DESCRIPTORS: Final = "/proc/self/fd"

# What Python imports late and the C library loads late: codecs, character sets.
_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/dev/urandom")
# How a name such as localhost is looked up.
_NAMES: Final = (
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/gai.conf",
)
# libusb and libudev read the bus here, without opening a device.
_BUS: Final = ("/sys/bus", "/sys/class", "/sys/dev", "/sys/devices", "/run/udev", "/etc/udev")


@dataclass(frozen=True)
class Confinement:
    """What confines a process: the ABI of Landlock (0: none), and whether its system calls are filtered."""

    landlock: int = 0
    seccomp: bool = False


def available() -> Confinement:
    """What this system can do. Nothing is changed."""
    return Confinement(landlock.abi(), seccomp.available())


def confine(endpoint: Endpoint, channel: int) -> Confinement:
    """Give up what is not needed to drive the device at `endpoint` and to answer on the descriptor `channel`.

    For good, and for every thread that starts later. A layer that the kernel does not have, or refuses, is
    left out: the result says which ones hold.
    """
    if sys.platform != "linux":
        return Confinement()
    import resource

    _close_others(channel)
    # No secrets in a core file, and no writing to any file.
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (0, 0))
    landlock.libc().prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    version, filtered = 0, False
    with contextlib.suppress(OSError):
        version = landlock.restrict(rules(endpoint), tcp_ports(endpoint))
    with contextlib.suppress(OSError):
        filtered = seccomp.restrict(sockets(endpoint))
    return Confinement(version, filtered)


def rules(endpoint: Endpoint) -> Iterator[PathRule]:
    """The files that the worker may use from now on."""
    yield from _FOR_ALL
    match endpoint.kind:
        case "udp" | "tcp":
            yield from (PathRule(Path(path), READ) for path in _NAMES)
        case "hid" | "webusb":
            yield from (PathRule(Path(path), READ) for path in _BUS)
            yield PathRule(Path("/dev/bus/usb"), LIST)
            yield from (PathRule(node, USE_DEVICE) for node in device_nodes(endpoint))
        case "serial":
            yield PathRule(Path(endpoint.place), USE_DEVICE)


def _imported_from() -> Iterator[Path]:
    """Where Python finds its modules; not the folder of a checkout, which may hold anything."""
    yield Path(os.__file__).parent
    yield from (path for path in map(Path, sys.path) if path.name in {"site-packages", "dist-packages"})
    for package in ("firmware_bridge", "multisig", "hwilib"):
        yield from map(Path, getattr(sys.modules.get(package), "__path__", ()))


_FOR_ALL: Final = (
    *(PathRule(path, READ) for path in (*_imported_from(), *map(Path, _LIBRARIES))),
    PathRule(Path(os.devnull), USE_DEVICE),
)


def tcp_ports(endpoint: Endpoint) -> tuple[int, ...]:
    return (host_and_port(endpoint.place)[1],) if endpoint.kind == "tcp" else ()


def sockets(endpoint: Endpoint) -> tuple[Socket, ...]:
    """The sockets that the worker may open from now on. A real device needs none but the kernel's messages
    about the bus, without which libusb does not start.
    """
    match endpoint.kind:
        case "hid" | "webusb":
            return (Socket(_AF_NETLINK, protocol=_KOBJECT_UEVENT),)
        case "unix":
            return (Socket(_AF_UNIX, _DATAGRAM),)
        case "udp":
            kinds: tuple[int, ...] = (_DATAGRAM,)
        case "tcp":
            # On another machine its name has to be resolved.
            host, _port = host_and_port(endpoint.place)
            kinds = (_STREAM,) if loopback_hosts(host) else (_STREAM, _DATAGRAM)
        case _:
            return ()
    return tuple(Socket(family, kind) for family in (_AF_INET, _AF_INET6) for kind in kinds)


def _descriptors() -> list[int]:
    """The open ones, and the one that read the folder, which is closed by now."""
    try:
        return [int(name) for name in os.listdir(_DESCRIPTORS)]  # noqa: PTH208 - in every worker's start
    except OSError:
        return []


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


# The fork server imports this module after HWI, whose hidapi opens libusb once for all workers. A worker
# keeps those descriptors, and none that multiprocessing passed to it later: the fork server's life line, and
# the pipe to the process that removes shared memory on request.
_AT_IMPORT: Final = frozenset(filter(_is_open, _descriptors()))


def _close_others(channel: int) -> None:
    for descriptor in set(_descriptors()) - _AT_IMPORT - {channel}:
        with contextlib.suppress(OSError):
            os.close(descriptor)
