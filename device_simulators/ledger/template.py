"""The descriptor templates that this device knows: one key, or a quorum, in native segwit (BIP-388).

The hardware knows more: the older script kinds, miniscript and taproot. What is not here is refused, never misread.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from device_simulators.ledger.errors import incorrect_data

MAX_TEMPLATE_BYTES = 512
"""The app's limit (common/wallet.h)."""

_TEMPLATE = re.compile(r"wpkh\(@0/\*\*\)|wsh\((sortedmulti|multi)\(([1-9][0-9]?),([^()]+)\)\)", re.ASCII)


class Arrangement(StrEnum):
    """What the order of the keys means for the script."""

    SINGLE = "wpkh"
    SORTED = "sortedmulti"
    AS_GIVEN = "multi"


@dataclass(frozen=True)
class Template:
    """`threshold` of `key_count` keys; every key appears once, in order, as `@i/**`: chain 0 receives, chain 1 is change."""

    arrangement: Arrangement
    threshold: int
    key_count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """:raises Refused: another form, a repeated or skipped key, an impossible quorum."""
        match = _TEMPLATE.fullmatch(text)
        if match is None:
            raise incorrect_data("not a template that this device knows")
        if match[1] is None:
            return cls(Arrangement.SINGLE, 1, 1)
        placeholders = match[3].split(",")
        if placeholders != [f"@{number}/**" for number in range(len(placeholders))]:
            raise incorrect_data("the keys of a template are @0/**, @1/**, … in this order")
        threshold = int(match[2])
        if threshold > len(placeholders):
            raise incorrect_data("a quorum of more keys than there are")
        return cls(Arrangement(match[1]), threshold, len(placeholders))
