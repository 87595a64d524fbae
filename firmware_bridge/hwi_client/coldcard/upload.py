"""A file on its way to a Coldcard, block by block."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from hwilib.devices.ckcc.constants import MAX_BLK_LEN
from hwilib.devices.ckcc.protocol import CCProtocolPacker as Packer

# How often the progress is told: about every quarter of a second on a Mk4.
_TELL_EVERY: Final = 16 * MAX_BLK_LEN

OnSent = Callable[[int], None]


def upload(ckcc: Any, content: bytes, on_sent: OnSent) -> tuple[int, bytes]:
    """Length and SHA-256 of what the device has now. `on_sent` hears of the bytes that were sent, and may raise to give up.

    :raises RuntimeError: the device has received something else.
    """
    for at in range(0, len(content), MAX_BLK_LEN):
        if at % _TELL_EVERY == 0:
            on_sent(at)
        ckcc.send_recv(Packer.upload(at, len(content), content[at : at + MAX_BLK_LEN]))
    digest = sha256(content).digest()
    if ckcc.send_recv(Packer.sha256()) != digest:
        raise RuntimeError("the device received another file than was sent")
    return len(content), digest
