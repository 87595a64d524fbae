"""The keys of a wallet policy, as text with or without their origin (BIP-388, key information vector)."""

import re
from dataclasses import dataclass
from typing import Self

from device_simulators.ledger.errors import incorrect_data
from multisig import HARDENED, DerivationPath, ExtendedPublicKey, Fingerprint, KeyOrigin

MAX_KEY_INFO_BYTES = 46 + 113
"""The app's limit: an origin and an extended public key (common/wallet.h)."""
MAX_ORIGIN_STEPS = 8
"""The app's limit on the steps of an origin (constants.h)."""

_KEY_INFO = re.compile(
    r"(?:\[([0-9a-f]{8})((?:/[0-9]{1,10}'?)*)\])?([1-9A-HJ-NP-Za-km-z]{111,112})", re.ASCII
)


@dataclass(frozen=True)
class KeyInfo:
    """`text` is what the host committed to and the person is shown. Without an `origin` nobody can say whose it is."""

    text: str
    origin: KeyOrigin | None
    xpub: ExtendedPublicKey

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """:raises Refused: not such a text; a hardened step has the mark ' and no other.

        :raises MultisigError: the extended key itself is wrong.
        """
        text = data.decode("ascii", errors="replace")
        match = _KEY_INFO.fullmatch(text)
        if match is None:
            raise incorrect_data("not a key with its origin")
        origin = None
        if match[1] is not None:
            origin = KeyOrigin(Fingerprint.from_hex(match[1]), _path(match[2]))
        return cls(text, origin, ExtendedPublicKey.parse(match[3]))


def _path(text: str) -> DerivationPath:
    steps = text.split("/")[1:]
    if len(steps) > MAX_ORIGIN_STEPS:
        raise incorrect_data("an origin of too many steps")
    return DerivationPath(tuple(_step(step) for step in steps))


def _step(text: str) -> int:
    number = int(text.removesuffix("'"))
    if number >= HARDENED:
        raise incorrect_data("a step beyond 2147483647")
    return number + HARDENED if text.endswith("'") else number
