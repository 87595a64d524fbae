"""Wallet policies (BIP-388; app-bitcoin-new, doc/wallet.md): the policy that a host commits to, fetched and
proven, and what it is: a vault, or one person's account.

Of the templates: one key, or a sorted quorum, in native segwit. The hardware knows more: the older script
kinds, miniscript and taproot. What is not here is refused, never misread.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from device_simulators.ledger.host import HASH_BYTES, Host
from device_simulators.ledger.work import incorrect_data, not_supported
from multisig import Network, OriginKey, Profile, Vault, hash160, p2pkh
from multisig.wire import Reader, compact_size

MAX_KEY_INFO_BYTES = 46 + 113
MAX_TEMPLATE_BYTES = 512
MAX_NAME_BYTES = 64
MAX_KEYS = 15
"""The app's limits (common/wallet.h, constants.h)."""
MAX_POLICY_BYTES = 2 + MAX_NAME_BYTES + 9 + HASH_BYTES + 9 + HASH_BYTES

_TEMPLATE = re.compile(r"wpkh\(@0/\*\*\)|wsh\(sortedmulti\(([1-9][0-9]?),([^()]+)\)\)", re.ASCII)
_VERSION = 2
"""Version 1 is that of an app older than any with this protocol; this device does not know it."""


def parse_template(text: str) -> tuple[int | None, int]:
    """(threshold, number of keys) of a quorum, whose keys appear once, in order, as `@i/**`: chain 0
    receives, chain 1 is change; no threshold for a single key.

    :raises Refused: another form, or a repeated or skipped key.
    """
    match = _TEMPLATE.fullmatch(text)
    if match is None:
        raise incorrect_data("not a template that this device knows")
    if match[1] is None:
        return None, 1
    placeholders = match[2].split(",")
    if placeholders != [f"@{number}/**" for number in range(len(placeholders))]:
        raise incorrect_data("the keys of a template are @0/**, @1/**, … in this order")
    return int(match[1]), len(placeholders)


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
class KnownPolicy:
    """Every piece fetched, and proven to be the one that the id commits to. `keys` are the texts of `of`'s
    keys, as the host committed to them.
    """

    name: str
    template: str
    keys: tuple[str, ...]
    of: Vault | Profile

    @property
    def cosigners(self) -> tuple[OriginKey, ...]:
        return self.of.cosigners if isinstance(self.of, Vault) else (self.of.key,)

    def script_code(self, chain: int, index: int) -> bytes:
        """What a segwit v0 signature covers as the script (BIP-143)."""
        if isinstance(self.of, Vault):
            return self.of.witness_script(chain, index)
        return p2pkh(hash160(self.of.key.xpub.derive_public_key(chain, index)))


async def fetch_policy(host: Host, header: Header, network: Network) -> KnownPolicy:
    """The template and the keys behind a header.

    :raises Refused: the host lies, or the template is not one that this device knows.
    :raises MultisigError: the keys are no vault, and no person's account.
    """
    text = await host.preimage(header.template_hash, MAX_TEMPLATE_BYTES)
    template = text.decode("ascii", errors="replace")
    threshold, count = parse_template(template)
    if (len(text), count) != (header.template_length, header.key_count):
        raise incorrect_data("the template has another length or number of keys than the policy says")
    keys = [
        (await host.element(header.keys_root, count, at, MAX_KEY_INFO_BYTES)).decode("ascii", "replace")
        for at in range(count)
    ]
    if any("h" in key.partition("]")[0] for key in keys):
        raise incorrect_data("a hardened step has the mark ' and no other")
    parsed = tuple(OriginKey.parse(key, network) for key in keys)
    of = Profile(network, parsed[0]) if threshold is None else Vault(network, threshold, parsed)
    return KnownPolicy(header.name.decode("ascii", errors="replace"), template, tuple(keys), of)
