"""Wallet policies (BIP-388; app-bitcoin-new, doc/wallet.md): keys with their origins, the descriptor
template, the policy that a host commits to, and the scripts that follow from it.

Of the templates: one key, or a quorum, in native segwit. The hardware knows more: the older script kinds,
miniscript and taproot. What is not here is refused, never misread.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Self

from device_simulators.ledger.host import HASH_BYTES, Host
from device_simulators.ledger.work import incorrect_data, not_supported
from multisig import (
    HARDENED,
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    KeyOrigin,
    hash160,
    multisig_script,
    p2pkh,
    p2wpkh,
    p2wsh,
)
from multisig.wire import Reader, compact_size

MAX_KEY_INFO_BYTES = 46 + 113
"""The app's limit: an origin and an extended public key (common/wallet.h)."""
MAX_ORIGIN_STEPS = 8
"""The app's limit on the steps of an origin (constants.h)."""

_KEY_INFO = re.compile(
    r"(?:\[([0-9a-f]{8})((?:/[0-9]{1,10}'?)*)\])?([1-9A-HJ-NP-Za-km-z]{111,112})", re.ASCII
)


@dataclass(frozen=True)
class KeyInfo:
    """`text` is what the host committed to and the person is shown. Without an `origin` its owner is
    unknown.
    """

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
    """`threshold` of `key_count` keys; every key appears once, in order, as `@i/**`: chain 0 receives, chain
    1 is change.
    """

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


MAX_NAME_BYTES = 64
MAX_KEYS = 15
"""The app's limits."""
MAX_POLICY_BYTES = 2 + MAX_NAME_BYTES + 9 + HASH_BYTES + 9 + HASH_BYTES

_VERSION = 2
"""Version 1 is that of an app older than any with this protocol; this device does not know it."""


@dataclass(frozen=True)
class Header:
    """A policy as it is serialised: name, and commitments to template and keys. Its SHA-256 is the policy's
    id.
    """

    name: bytes
    template_length: int
    template_hash: bytes
    key_count: int
    keys_root: bytes

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """:raises Refused: another version, or a limit exceeded. :raises WireError: bytes too few or too
        many.
        """
        reader = Reader(data)
        if reader.uint(1) != _VERSION:
            raise incorrect_data("wallet policies of version 2 only")
        name = reader.take(reader.uint(1))
        template_length, template_hash = reader.compact_size(), reader.take(HASH_BYTES)
        key_count, keys_root = reader.compact_size(), reader.take(HASH_BYTES)
        reader.finish()
        if len(name) > MAX_NAME_BYTES or template_length > MAX_TEMPLATE_BYTES:
            raise incorrect_data("the name or the template is too long")
        if key_count > MAX_KEYS:
            raise not_supported(f"at most {MAX_KEYS} keys")
        return cls(name, template_length, template_hash, key_count, keys_root)

    @property
    def id(self) -> bytes:
        return sha256(
            bytes((_VERSION, len(self.name)))
            + self.name
            + compact_size(self.template_length)
            + self.template_hash
            + compact_size(self.key_count)
            + self.keys_root
        ).digest()


@dataclass(frozen=True)
class Policy:
    """A wallet: every piece fetched, and proven to be the one that the id commits to."""

    header: Header
    template_text: str
    template: Template
    keys: tuple[KeyInfo, ...]

    @property
    def name(self) -> str:
        return self.header.name.decode("ascii", errors="replace")

    def script_pubkey(self, chain: int, index: int) -> bytes:
        if self.template.arrangement is Arrangement.SINGLE:
            return p2wpkh(self._public_keys(chain, index)[0])
        return p2wsh(self._witness_script(chain, index))

    def script_code(self, chain: int, index: int) -> bytes:
        """What a segwit v0 signature covers as the script (BIP-143)."""
        if self.template.arrangement is Arrangement.SINGLE:
            return p2pkh(hash160(self._public_keys(chain, index)[0]))
        return self._witness_script(chain, index)

    def _witness_script(self, chain: int, index: int) -> bytes:
        keys = self._public_keys(chain, index)
        if self.template.arrangement is Arrangement.SORTED:
            keys.sort()
        return multisig_script(self.template.threshold, keys)

    def _public_keys(self, chain: int, index: int) -> list[bytes]:
        return [key.xpub.derive_public_key(chain, index) for key in self.keys]


async def fetch_policy(host: Host, header: Header) -> Policy:
    """The template and the keys behind a header.

    :raises Refused: the host lies, or the template is not one that this device knows.
    """
    text = await host.preimage(header.template_hash, MAX_TEMPLATE_BYTES)
    if len(text) != header.template_length:
        raise incorrect_data("the template has another length than the policy says")
    template = Template.parse(text.decode("ascii", errors="replace"))
    if template.key_count != header.key_count:
        raise incorrect_data("the template has another number of keys than the policy")
    keys = [
        KeyInfo.parse(await host.element(header.keys_root, header.key_count, at, MAX_KEY_INFO_BYTES))
        for at in range(header.key_count)
    ]
    return Policy(header, text.decode("ascii"), template, tuple(keys))
