"""Fingerprints, derivation paths, extended public keys and key origins (BIP-32, BIP-380); and public child
key derivation (BIP-32, CKDpub).
"""

import hmac
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

from multisig import encodings, secp256k1
from multisig.errors import InvalidKey, InvalidPath, WrongNetwork
from multisig.hashes import hash160
from multisig.network import Network, NetworkKind
from multisig.shown import AsWritten

HARDENED = 0x8000_0000
MAX_CHILD_NUMBER = 0xFFFF_FFFF
# BIP-32 serialises the depth in one byte.
MAX_DEPTH = 255
_XPUB_BYTES = 78
_STEP = re.compile(r"(0|[1-9][0-9]{0,9})(['hH]?)", re.ASCII)
_FINGERPRINT = re.compile(r"[0-9a-fA-F]{8}", re.ASCII)
_ORIGIN_KEY = re.compile(r"\[([^\[\]/]*)((?:/[^\[\]]*)?)\]([^\[\]/]*)", re.ASCII)

_PRIVATE_VERSIONS = {bytes.fromhex("0488ade4"), bytes.fromhex("04358394")}
_PRIVATE_HINT = "Never type or paste a private key. Export the public key (xpub or tpub) from the device."
_SLIP132_HINT = "Ask the wallet or device for the plain form, which starts with xpub or tpub."
# SLIP-132, Registered HD version bytes: public forms whose prefix also names a script type.
_SLIP132_VERSIONS = {
    bytes.fromhex(version): name
    for version, name in {
        "049d7cb2": "ypub", "0295b43f": "Ypub", "04b24746": "zpub", "02aa7ed3": "Zpub",
        "044a5262": "upub", "024289ef": "Upub", "045f1cf6": "vpub", "02575483": "Vpub",
    }.items()
}  # fmt: skip


@dataclass(frozen=True, order=True, repr=False)
class Fingerprint(AsWritten):
    """The first four bytes of the hash160 of a public key: a name for a key, not a proof of it (BIP-32)."""

    value: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.value, bytes) or len(self.value) != 4:
            raise InvalidKey("A fingerprint has four bytes.")

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """From eight hexadecimal digits. Raises InvalidKey."""
        if not _FINGERPRINT.fullmatch(text):
            raise InvalidKey("A fingerprint has eight hexadecimal digits.")
        return cls(bytes.fromhex(text))

    @property
    def hex(self) -> str:
        return self.value.hex()

    def __bytes__(self) -> bytes:
        return self.value

    def __str__(self) -> str:
        return self.hex


@dataclass(frozen=True, order=True, repr=False)
class DerivationPath(AsWritten):
    """Child numbers from a key downwards; those of 2^31 and above are hardened (BIP-32)."""

    indexes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.indexes) > MAX_DEPTH:
            raise InvalidPath("The path has more than 255 levels.")
        _require_child_numbers(self.indexes)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Like "m/48h/1h/0h/2h"; "m/" may be missing, ' and H mean h. Raises InvalidPath."""
        if text in {"m", "m/", ""}:
            return cls()
        steps = text.removeprefix("m/").split("/")
        if len(steps) > MAX_DEPTH:
            raise InvalidPath("The path has more than 255 levels.")
        return cls(tuple(_parse_step(step) for step in steps))

    def __truediv__(self, below: "DerivationPath | str | int") -> "DerivationPath":
        """Further down; add HARDENED to a number for a hardened child. Raises InvalidPath."""
        if isinstance(below, int):
            below = DerivationPath((below,))
        if isinstance(below, str):
            below = DerivationPath.parse(below)
        return DerivationPath(self.indexes + below.indexes)

    def starts_with(self, other: "DerivationPath") -> bool:
        return self.indexes[: len(other)] == other.indexes

    def __len__(self) -> int:
        return len(self.indexes)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indexes)

    def __bool__(self) -> bool:
        """Always true: an empty path is a path, the master key's."""
        return True

    def __str__(self) -> str:
        return "/".join(("m", *(f"{i - HARDENED}h" if i >= HARDENED else str(i) for i in self.indexes)))


def _require_child_numbers(indexes: Iterable[int]) -> None:
    # One loop without a call for each number: every key of every coin has a path.
    for index in indexes:
        if type(index) is not int or not 0 <= index <= MAX_CHILD_NUMBER:
            raise InvalidPath("A path's levels are whole numbers from 0 to 2147483647, hardened or not.")


def _parse_step(text: str) -> int:
    match = _STEP.fullmatch(text)
    if match is None or int(match[1]) >= HARDENED:
        raise InvalidPath(f"A level of the path is {text[:12]!a}: write 0 to 2147483647, with h or without.")
    return int(match[1]) + (HARDENED if match[2] else 0)


@dataclass(frozen=True, order=True, repr=False)
class KeyOrigin(AsWritten):
    """Where a key comes from: the master key's fingerprint and the path from it (BIP-380, Key
    Expressions).
    """

    fingerprint: Fingerprint
    path: DerivationPath

    @classmethod
    def parse(cls, text: str) -> Self:
        """Like "d34db33f/48h/1h/0h/2h". Raises InvalidKey, InvalidPath."""
        fingerprint, slash, path = text.partition("/")
        if slash and (not path or path.startswith("m")):
            raise InvalidPath("The key origin ends with a slash or names the master key twice.")
        return cls(Fingerprint.from_hex(fingerprint), DerivationPath.parse(path))

    def __str__(self) -> str:
        return f"{self.fingerprint}{str(self.path).removeprefix('m')}"


@dataclass(frozen=True, repr=False)
class ExtendedPublicKey(AsWritten):
    """A public key with the chain code from which its unhardened children follow (BIP-32).

    `child_number` is its own number below its parent, `public_key` 33 bytes compressed, `chain_code` 32
    bytes.
    """

    kind: NetworkKind
    depth: int
    parent_fingerprint: Fingerprint
    child_number: int
    chain_code: bytes
    public_key: bytes

    def __post_init__(self) -> None:
        _require_child_numbers((self.child_number,))
        if not 0 <= self.depth <= MAX_DEPTH or len(self.chain_code) != 32:
            raise InvalidKey("The extended key's depth or chain code is out of range.")
        if self.depth == 0 and (self.child_number or any(self.parent_fingerprint.value)):
            raise InvalidKey("The extended key claims to be a master key and to have a parent.")
        if not secp256k1.is_public_key(self.public_key):
            raise InvalidKey("The extended key holds no valid compressed public key.")

    @classmethod
    def parse(cls, text: str, network: Network | None = None) -> Self:
        """From its Base58Check text; white space around and inside it is dropped, as copying a line break in.

        Raises InvalidKey, and WrongNetwork where `network` is given and the key is for another kind.
        """
        try:
            data = encodings.decode_base58check("".join(text.split()))
        except encodings.Base58Error as error:
            raise InvalidKey(f"This is not an extended key: {error}.") from error
        key = cls.from_bytes(data)
        if network is not None:
            key.require_network(network)
        return key

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """From its 78 bytes (BIP-32, Serialization format). Raises InvalidKey."""
        version = data[:4]
        _refuse_version(version)
        if len(data) != _XPUB_BYTES:
            raise InvalidKey("This is not an extended public key: it has the wrong length.")
        kind = next((kind for kind in NetworkKind if kind.xpub_version == version), None)
        if kind is None:
            raise InvalidKey("This is not an extended public key: its prefix is unknown.")
        return cls(
            kind=kind,
            depth=data[4],
            parent_fingerprint=Fingerprint(data[5:9]),
            child_number=int.from_bytes(data[9:13]),
            chain_code=data[13:45],
            public_key=data[45:],
        )

    def require_network(self, network: Network) -> None:
        """Raises WrongNetwork."""
        if self.kind is not network.kind:
            raise WrongNetwork(f"The extended key is for {self.kind}, and {network} was expected.")

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Its own fingerprint, not its parent's or the master key's."""
        return Fingerprint(hash160(self.public_key)[:4])

    def derive(self, path: DerivationPath) -> "ExtendedPublicKey":
        """The extended key that many levels below. Raises InvalidPath where a level is hardened."""
        key = self
        for index in path:
            key = key._child(index)
        return key

    def _child(self, index: int) -> "ExtendedPublicKey":
        _require_unhardened(index)
        if self.depth == MAX_DEPTH:
            raise InvalidPath("Nothing can be derived below level 255.")
        public_key, chain_code = _child_of(self.public_key, self.public_key, self.chain_code, index)
        return ExtendedPublicKey(self.kind, self.depth + 1, self.fingerprint, index, chain_code, public_key)

    def derive_public_key(self, chain: int, index: int) -> bytes:
        """The compressed public key at /chain/index. Raises InvalidPath where one of the two is hardened."""
        _require_unhardened(chain, index)
        return grandchild(self.public_key, self.chain_code, chain, index)

    def serialize(self) -> bytes:
        """Its 78 bytes (BIP-32, Serialization format)."""
        return self._bytes

    # Cached: every PSBT of its vault contains it.
    @cached_property
    def _bytes(self) -> bytes:
        return b"".join((
            self.kind.xpub_version,
            self.depth.to_bytes(1),
            self.parent_fingerprint.value,
            self.child_number.to_bytes(4),
            self.chain_code,
            self.public_key,
        ))  # fmt: skip

    def __str__(self) -> str:
        return self._text

    # Cached: descriptors and messages about a vault repeat it.
    @cached_property
    def _text(self) -> str:
        return encodings.encode_base58check(self.serialize())


def _refuse_version(version: bytes) -> None:
    if version in _PRIVATE_VERSIONS:
        raise InvalidKey("This is a private key.", hint=_PRIVATE_HINT)
    name = _SLIP132_VERSIONS.get(version)
    if name is not None:
        raise InvalidKey(
            f"This extended key is in the {name} form, which is not supported.", hint=_SLIP132_HINT
        )


def plain_form(text: str, *forms: str) -> str:
    """An extended key that is written in one of these forms of SLIP-132 ("Zpub"), as xpub or tpub. Any other
    text is returned as it is.
    """
    try:
        data = encodings.decode_base58check(text)
    except encodings.Base58Error:
        return text
    form = _SLIP132_VERSIONS.get(data[:4])
    if form not in forms:
        return text
    kind = NetworkKind.MAINNET if form[0] in "yYzZ" else NetworkKind.TESTNET
    return encodings.encode_base58check(kind.xpub_version + data[4:])


def _require_unhardened(*indexes: int) -> None:
    _require_child_numbers(indexes)
    if max(indexes) >= HARDENED:
        raise InvalidPath("A hardened child cannot be derived from a public key.")


@dataclass(frozen=True, repr=False)
class OriginKey(AsWritten):
    """An extended public key and where it comes from: "[d34db33f/48h/1h/0h/2h]tpub…" (BIP-380)."""

    origin: KeyOrigin
    xpub: ExtendedPublicKey

    @classmethod
    def parse(cls, text: str, network: Network | None = None) -> Self:
        """Raises InvalidKey, InvalidPath, WrongNetwork."""
        match = _ORIGIN_KEY.fullmatch(text.strip())
        if match is None:
            raise InvalidKey("This is not a key with its origin, such as [d34db33f/48h/0h/0h/2h]xpub….")
        return cls(KeyOrigin.parse(match[1] + match[2]), ExtendedPublicKey.parse(match[3], network))

    @property
    def fingerprint(self) -> Fingerprint:
        """The master key's fingerprint: that of the device."""
        return self.origin.fingerprint

    def require_agreement(self) -> None:
        """Check that the extended key's depth, child number and parent agree with its origin (S17). Raises
        InvalidKey.
        """
        path = self.origin.path
        if self.xpub.depth != len(path):
            raise InvalidKey(
                f"The extended key is at depth {self.xpub.depth}, its path {path} at {len(path)}."
            )
        if path.indexes and self.xpub.child_number != path.indexes[-1]:
            raise InvalidKey(f"The extended key is not the last level of its path {path}.")
        if self._known_fingerprint() not in {None, self.fingerprint}:
            raise InvalidKey("The extended key belongs to another master key than its fingerprint says.")

    def _known_fingerprint(self) -> Fingerprint | None:
        if self.xpub.depth == 0:
            return self.xpub.fingerprint
        return self.xpub.parent_fingerprint if self.xpub.depth == 1 else None

    def __str__(self) -> str:
        return f"[{self.origin}]{self.xpub}"


# Two branches of 15 cosigners in a few dozen vaults, and every key of a transaction of a thousand inputs and
# six cosigners. A key takes 400 bytes.
_BRANCHES_KEPT = 1024
_KEYS_KEPT = 6_144


@lru_cache(maxsize=_KEYS_KEPT)
def grandchild(public_key: bytes, chain_code: bytes, branch: int, index: int) -> bytes:
    """The public key at /branch/index."""
    point, branch_key, branch_code = _branch(public_key, chain_code, branch)
    return _child_of(point, branch_key, branch_code, index)[0]


@lru_cache(maxsize=_BRANCHES_KEPT)
def _branch(public_key: bytes, chain_code: bytes, index: int) -> tuple[bytes, bytes, bytes]:
    branch_key, branch_code = _child_of(public_key, public_key, chain_code, index)
    return secp256k1.uncompressed(branch_key), branch_key, branch_code


def _child_of(point: bytes, public_key: bytes, chain_code: bytes, index: int) -> tuple[bytes, bytes]:
    """Public key and chain code of the unhardened child. ``point``: the public key as it is read fastest."""
    digest = hmac.digest(chain_code, public_key + index.to_bytes(4), "sha512")
    try:
        derived = secp256k1.tweaked_public_key(point, digest[:32])
    except ValueError as error:
        # BIP-32: probability below 2^-127; proceed with the next index.
        raise InvalidKey(f"The key has no child {index}.") from error
    return derived, digest[32:]
