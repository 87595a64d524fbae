"""Asking at an address whether somebody is there: only where no table of the kernel tells, and never while it is in use."""

import asyncio
import socket
from typing import Final

# Emulators answer on the same machine, within a millisecond.
_ANSWER_SECONDS: Final = 0.5
_PING: Final = b"PINGPING"
_PONG: Final = b"PONGPONG"


def unix_is_bound(path: str) -> bool:
    """Connecting a datagram socket sends nothing: whoever is bound there does not notice."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


async def udp_answers(host: str, port: int) -> bool:
    """Trezor's emulators answer PINGPING with PONGPONG."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setblocking(False)  # noqa: FBT003 - the signature is not ours
        try:
            probe.connect((host, port))
            async with asyncio.timeout(_ANSWER_SECONDS):
                await loop.sock_sendall(probe, _PING)
                return await loop.sock_recv(probe, len(_PONG)) == _PONG
        except (OSError, TimeoutError):
            return False


async def tcp_accepts(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            _reader, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
