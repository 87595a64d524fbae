"""Wallet policies: what the host commits to, and the scripts that follow from it (app-bitcoin-new, doc/wallet.md)."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from device_simulators.ledger.errors import incorrect_data, not_supported
from device_simulators.ledger.host import Host
from device_simulators.ledger.key_info import MAX_KEY_INFO_BYTES, KeyInfo
from device_simulators.ledger.merkle import HASH_BYTES
from device_simulators.ledger.template import MAX_TEMPLATE_BYTES, Arrangement, Template
from multisig import hash160, multisig_script, p2pkh, p2wpkh, p2wsh
from multisig.wire import Reader, compact_size

MAX_NAME_BYTES = 64
MAX_KEYS = 15
"""The app's limits."""
MAX_POLICY_BYTES = 2 + MAX_NAME_BYTES + 9 + HASH_BYTES + 9 + HASH_BYTES

_VERSION = 2
"""Version 1 is that of an app older than any with this protocol; this device does not know it."""
_PRINTABLE = range(0x20, 0x7F)


@dataclass(frozen=True)
class Header:
    """A policy as it is serialised: name, and commitments to template and keys. Its SHA-256 is the policy's id."""

    name: bytes
    template_length: int
    template_hash: bytes
    key_count: int
    keys_root: bytes

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """:raises Refused: another version, or a limit exceeded. :raises WireError: bytes too few or too many."""
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

    @property
    def has_good_name(self) -> bool:
        """1 to 64 printable ASCII characters, no space at either end: what a person can tell apart on a small screen."""
        name = self.name
        return bool(name) and all(byte in _PRINTABLE for byte in name) and name.strip(b" ") == name


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
