"""The line that a device signs when its key is registered: written by the platform, read again by the
signer's side.

One printable ASCII line: purpose, network, user, nonce, and the SHA-256 of every (path, xpub) that is
offered. The signer's side computes the digest itself before it asks a person to sign.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from custody.schemas.common import (
    ApiNetwork,
)

PURPOSE = "Register signing key"
# Coldcard takes 2 to 240 printable characters without two spaces in a row; 200 leaves room.
MAX_CHALLENGE_CHARACTERS = 200
_LINE = re.compile(
    rf"{PURPOSE} network:(mainnet|testnet) user:([1-9][0-9]{{0,18}}) nonce:([0-9a-f]{{32}}) "
    rf"keys:([0-9a-f]{{64}})"
)


def offered_digest(offered: Iterable[tuple[str, str]]) -> str:
    """SHA-256 in hex over the lines ``<path> <xpub>``, sorted. Paths are written ``m/48h/1h/0h/2h``."""
    lines = sorted(f"{path} {xpub}\n" for path, xpub in offered)
    return sha256("".join(lines).encode()).hexdigest()


@dataclass(frozen=True)
class ChallengeLine:
    """``nonce``: 32 hex digits; ``keys_digest``: 64, as ``offered_digest`` gives them."""

    network: ApiNetwork
    user_id: int
    nonce: str
    keys_digest: str

    def __str__(self) -> str:
        return (
            f"{PURPOSE} network:{self.network} user:{self.user_id} nonce:{self.nonce} keys:{self.keys_digest}"
        )

    @classmethod
    def parse(cls, text: str) -> "ChallengeLine":
        """Raises ValueError for anything but such a line: a signer must never sign another text by
        this door.
        """
        match = _LINE.fullmatch(text)
        if match is None:
            raise ValueError("this is not a challenge for registering a key")
        network: ApiNetwork = "mainnet" if match[1] == "mainnet" else "testnet"
        return cls(network, int(match[2]), match[3], match[4])
