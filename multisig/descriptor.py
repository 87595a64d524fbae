"""The one form of descriptor that is supported, and its checksum (BIP-380, BIP-383, BIP-389).

`wsh(sortedmulti(M,[fingerprint/path]xpub/<0;1>/*,…))#checksum`
"""

import re
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import xor
from typing import Self

from multisig.errors import InvalidDescriptor, MultisigError
from multisig.keys import OriginKey
from multisig.network import Network
from multisig.script import MAX_COSIGNERS
from multisig.shown import ByMember

_INPUT = "0123456789()[],'/*abcdefgh@:$%{}IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~ijklmnopqrstuvwxyzABCDEFGH`#\"\\ "
_CHECKSUM = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_CHECKSUM_LENGTH = 8
_GENERATOR = (0xF5DEE51989, 0xA9FDCA3312, 0x1BAB10E32D, 0x3706B1677A, 0x644D626FFD)
# What the five bits that are shifted out add to the residue, for each of their 32 values.
_REDUCTION = tuple(
    reduce(xor, (generator for bit, generator in enumerate(_GENERATOR) if top >> bit & 1), 0)
    for top in range(32)
)

# A key expression has about 150 characters; texts much longer than 15 of them are refused.
MAX_CHARACTERS = 4096
_SORTED_MULTI = re.compile(r"wsh\(sortedmulti\(([1-9][0-9]?),([^()]*)\)\)", re.ASCII)
_MULTIPATH = "/<0;1>/*"
_ONE_CHAIN = re.compile(r".*[a-zA-Z0-9]/([01])/\*", re.ASCII)
# By how they begin, the first that fits: what else a descriptor may be (BIP-381 to BIP-386).
_OTHERS = {
    "wsh(sortedmulti(": None,
    "wsh(multi(": "multi(), whose keys keep the order in which they are written",
    "wsh(": "wsh() with another script than a plain quorum, such as miniscript",
    "sh(wsh(": "sh(wsh()), which is nested segwit",
    "sh(": "sh(), which is not segwit",
    "tr(": "tr(), which is taproot",
    "rawtr(": "rawtr(), which is taproot",
    "wpkh(": "wpkh(), which has a single key",
    "pkh(": "pkh(), which has a single key",
    "pk(": "pk(), which has a single key",
    "combo(": "combo(), which has a single key",
    "addr(": "addr(), which has no keys",
    "raw(": "raw(), which has no keys",
}
_COPY = "Copy the whole descriptor again, with the # and its eight last characters."
_ANOTHER_KIND = "Take a vault of that form. Another program made this one, and can spend from it."
_WITH_BOTH = "Export it again in the form that has <0;1>, for receiving and change in one (BIP-389)."
_NO_ORIGIN = (
    "Ask whoever made the vault for the device's fingerprint and the key's path: [d34db33f/48h/0h/0h/2h]xpub…"
)


def checksum(descriptor: str) -> str:
    """The eight characters that belong behind "#" (BIP-380, Checksum). Raises InvalidDescriptor."""
    residue, group, count = 1, 0, 0
    for character in descriptor:
        position = _INPUT.find(character)
        if position < 0:
            raise InvalidDescriptor(
                f"The descriptor has U+{ord(character):04X}, a character that descriptors do not use.",
                hint="Copy it again as plain text. Where a text program wrote \u2019 for ', write h.",
            )
        residue = _polymod(residue, position & 31)
        group, count = group * 3 + (position >> 5), count + 1
        if count == 3:
            residue, group, count = _polymod(residue, group), 0, 0
    if count:
        residue = _polymod(residue, group)
    for _ in range(_CHECKSUM_LENGTH):
        residue = _polymod(residue, 0)
    residue ^= 1
    return "".join(_CHECKSUM[residue >> 5 * (7 - i) & 31] for i in range(_CHECKSUM_LENGTH))


def _polymod(residue: int, value: int) -> int:
    return (residue & 0x7FFFFFFFF) << 5 ^ value ^ _REDUCTION[residue >> 35]


def with_checksum(descriptor: str) -> str:
    return f"{descriptor}#{checksum(descriptor)}"


def strip_checksum(text: str, *, strict: bool = True) -> str:
    """The descriptor before "#". A wrong checksum is always refused, a missing one where `strict`.

    Raises InvalidDescriptor.
    """
    descriptor, separator, given = text.partition("#")
    if not separator:
        if strict:
            raise InvalidDescriptor("The descriptor has no checksum.", hint=_COPY)
        checksum(descriptor)
        return descriptor
    if given != checksum(descriptor):
        raise InvalidDescriptor(
            "The descriptor's checksum is wrong: a character is mistyped or missing.", hint=_COPY
        )
    return descriptor


@dataclass(frozen=True, repr=False)
class SortedMulti(ByMember):
    """`threshold` of `keys`, whose script keys are sorted for each address (BIP-67). Raises
    InvalidDescriptor.
    """

    threshold: int
    keys: tuple[OriginKey, ...]

    def __post_init__(self) -> None:
        if not 1 <= self.threshold <= len(self.keys) <= MAX_COSIGNERS:
            raise InvalidDescriptor(
                f"A quorum of {self.threshold} out of {len(self.keys)} is not possible.",
                hint="Take 1 to 15 cosigners, and a threshold of at least 1 and at most their number.",
            )

    @classmethod
    def parse(cls, text: str, network: Network | None = None, *, strict: bool = True) -> Self:
        """From a descriptor, which needs its checksum where `strict`.

        Raises InvalidDescriptor, and WrongNetwork where `network` is given and a key is for another kind.
        """
        text = text.strip()
        if len(text) > MAX_CHARACTERS:
            raise InvalidDescriptor(f"The descriptor has more than {MAX_CHARACTERS} characters.")
        return cls(*_read(text, network, strict=strict))

    def __str__(self) -> str:
        """The canonical text: keys in their order, h for hardened, with checksum."""
        keys = ",".join(f"{key}{_MULTIPATH}" for key in self.keys)
        return with_checksum(f"wsh(sortedmulti({self.threshold},{keys}))")


# The same few vaults are read again for each proposal and each check of it.
@lru_cache(maxsize=64)
def _read(text: str, network: Network | None, *, strict: bool) -> tuple[int, tuple[OriginKey, ...]]:
    # The checksum first: a mistyped character may make another form of it. A missing one is said last.
    body = strip_checksum(text, strict=False)
    match = _SORTED_MULTI.fullmatch(body)
    if match is None:
        raise other_form(body)
    if strict and body == text:
        strip_checksum(text)
    expressions = match[2].split(",")
    return int(match[1]), tuple(
        _parse_key(number, expression, network) for number, expression in enumerate(expressions, start=1)
    )


def other_form(body: str) -> InvalidDescriptor:
    """Names the kind of descriptor that begins so."""
    kind = next((words for start, words in _OTHERS.items() if body.startswith(start)), None)
    if kind is None:
        return InvalidDescriptor("This is not written as wsh(sortedmulti(M,key,…)) is.", hint=_COPY)
    return InvalidDescriptor(
        f"A vault here is wsh(sortedmulti(M,key,…)), and this is {kind}.", hint=_ANOTHER_KIND
    )


def _parse_key(number: int, expression: str, network: Network | None) -> OriginKey:
    which = f"Key {number} of the descriptor"
    # White space and the mark H pass where a person pastes a lone key, but BIP-380 has neither.
    if " " in expression:
        raise InvalidDescriptor(f"{which} has a space in it.")
    if not expression:
        raise InvalidDescriptor(f"{which} is missing: nothing stands between two commas.")
    if not expression.startswith("["):
        raise InvalidDescriptor(f"{which} has no origin before it.", hint=_NO_ORIGIN)
    if not expression.endswith(_MULTIPATH):
        alone = _ONE_CHAIN.fullmatch(expression)
        if alone is None:
            raise InvalidDescriptor(f"{which} does not end in {_MULTIPATH}.", hint=_WITH_BOTH)
        chain = "change" if int(alone[1]) else "receiving"
        raise InvalidDescriptor(f"{which} gives the {chain} addresses alone.", hint=_WITH_BOTH)
    text = expression.removesuffix(_MULTIPATH)
    if "H" in text.partition("]")[0]:
        raise InvalidDescriptor(f"{which} has H in its path, where BIP-380 has h or '.")
    try:
        key = OriginKey.parse(text)
    except MultisigError as error:
        raise InvalidDescriptor(f"{which} is not usable: {error}", hint=error.hint) from error
    if network is not None:
        key.xpub.require_network(network)
    return key
