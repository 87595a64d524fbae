"""Policies: the vault of several cosigners and the profile of one person. Both give scripts and addresses."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, partial
from typing import Any, Self

from multisig.descriptor import SortedMulti, with_checksum
from multisig.errors import InvalidDescriptor, InvalidKey, InvalidPath, MultisigError, WrongNetwork
from multisig.hashes import sha256
from multisig.keys import HARDENED, DerivationPath, Fingerprint, KeyOrigin, OriginKey
from multisig.network import Network
from multisig.script import encode_address, multisig_script, p2wpkh, p2wsh
from multisig.shown import ByMember

_MULTISIG_PURPOSE = 48
_P2WSH_SCRIPT_TYPE = 2
_PROFILE_PURPOSE = 84


def multisig_account_path(network: Network, account: int = 0) -> DerivationPath:
    """m/48h/coin/account/2h, native segwit multisig (BIP-48). Raises InvalidPath."""
    return _hardened(_MULTISIG_PURPOSE, network.coin_type, account, _P2WSH_SCRIPT_TYPE)


def profile_account_path(network: Network, account: int = 0) -> DerivationPath:
    """m/84h/coin/account, a person's own single-signature account (BIP-84). Raises InvalidPath."""
    return _hardened(_PROFILE_PURPOSE, network.coin_type, account)


def account_of(path: DerivationPath) -> int:
    """The account's number in a path of this shape: its third level where that is hardened, else 0."""
    level = path.indexes[2] if len(path) > 2 else 0
    return level - HARDENED if level >= HARDENED else 0


def _hardened(*levels: int) -> DerivationPath:
    if any(not 0 <= level < HARDENED for level in levels):
        raise InvalidPath("An account's number is from 0 to 2147483647.")
    return DerivationPath(tuple(level + HARDENED for level in levels))


RECEIVE = 0
CHANGE = 1
# Beyond it a device warns or refuses, and a wallet that scans would not find the coins again: an absurd index
# is a way to hold coins to ransom (S9). The figure is Trezor's (trezor-firmware,
# core/src/apps/common/paths.py).
MAX_INDEX = 1_000_000

# Of each vault, beside its keys (`multisig.keys`).
_SCRIPTS_KEPT = 32

# 160 bits: two quorums with the same code would cost 2^80 tries, as two scripts of one P2SH address do.
_CODE_BYTES = 20
_CODE_GROUP = 4
# Crockford's alphabet has no I, L, O, U, which are misread or misheard.
_RFC4648 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_CROCKFORD = str.maketrans(_RFC4648, "0123456789ABCDEFGHJKMNPQRSTVWXYZ")

_AccountPath = Callable[[Network, int], DerivationPath]


@dataclass(frozen=True, repr=False)
class Vault(ByMember):
    """`threshold` of `cosigners` in native segwit: wsh(sortedmulti(…)) with BIP-48 accounts.

    Building one checks all that can be checked (S17; BIP-388, BIP-67): the quorum, keys and fingerprints that
    differ, and that each key's network, depth, last level and path agree. Raises InvalidDescriptor,
    InvalidKey, WrongNetwork.
    """

    network: Network
    threshold: int
    cosigners: tuple[OriginKey, ...]

    def __post_init__(self) -> None:
        SortedMulti(self.threshold, self.cosigners)
        for key in self.cosigners:
            require_account(key, self.network, multisig_account_path)
        _require_distinct([key.xpub.public_key for key in self.cosigners], "key")
        _require_distinct([key.fingerprint for key in self.cosigners], "fingerprint")

    def __getstate__(self) -> dict[str, Any]:
        """The policy alone is pickled, without its caches."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_descriptor(cls, text: str, network: Network, *, strict: bool = True) -> Self:
        """From a descriptor, with its checksum where `strict`.

        Raises InvalidDescriptor, InvalidKey, WrongNetwork.
        """
        parsed = SortedMulti.parse(text, network, strict=strict)
        return cls(network, parsed.threshold, parsed.keys)

    @cached_property
    def descriptor(self) -> str:
        """Canonical text with checksum; the cosigners stand in the order they were given."""
        return str(SortedMulti(self.threshold, self.cosigners))

    def chain_descriptor(self, chain: int) -> str:
        """The descriptor of one chain alone, with checksum: Core before 29 reads no ``<0;1>`` (BIP-389)."""
        keys = ",".join(f"{key}/{chain}/*" for key in self.cosigners)
        return with_checksum(f"wsh(sortedmulti({self.threshold},{keys}))")

    @cached_property
    def verification_code(self) -> str:
        """The code by which signers compare their quorum, without trusting a platform.

        It does not depend on the cosigners' order. Anyone can compute it: sort the key expressions as text,
        write the descriptor with its checksum, take the first 20 bytes of its SHA-256 in Crockford's base 32,
        in groups of four.
        """
        keys = tuple(sorted(self.cosigners, key=str))
        digest = sha256(str(SortedMulti(self.threshold, keys)).encode("ascii"))
        code = base64.b32encode(digest[:_CODE_BYTES]).decode("ascii").translate(_CROCKFORD)
        return "-".join(code[i : i + _CODE_GROUP] for i in range(0, len(code), _CODE_GROUP))

    @property
    def has_disjoint_quorums(self) -> bool:
        """Two disjoint sets of signers can each spend (2M <= N), so a signer may never see what the others
        sign.
        """
        return 2 * self.threshold <= len(self.cosigners)

    def cosigner_for(self, fingerprint: Fingerprint) -> OriginKey | None:
        """The cosigner whose master key has that fingerprint; None where there is none."""
        return next((key for key in self.cosigners if key.fingerprint == fingerprint), None)

    def witness_script(self, chain: int, index: int) -> bytes:
        """The multisig script at /chain/index, keys sorted (BIP-67). Raises InvalidPath."""
        return self._witness_scripts(chain, index)

    # Building, watching, checking and finalising derive the same few scripts again.
    @cached_property
    def _witness_scripts(self) -> Callable[[int, int], bytes]:
        return lru_cache(_SCRIPTS_KEPT, typed=True)(partial(_witness_script, self.threshold, self.cosigners))

    def script_pubkey(self, chain: int, index: int) -> bytes:
        """Raises InvalidPath."""
        return p2wsh(self.witness_script(chain, index))

    def address(self, chain: int, index: int) -> str:
        """Raises InvalidPath."""
        return _address(self.script_pubkey(chain, index), self.network)

    def derivations(self, chain: int, index: int) -> dict[bytes, KeyOrigin]:
        """Each public key of that script and its origin, as a PSBT needs them (BIP-174). Raises
        InvalidPath.
        """
        return _derivations(self.cosigners, chain, index)


@dataclass(frozen=True, repr=False)
class Profile(ByMember):
    """A person's own single-signature account, wpkh at m/84h/coin/accounth (BIP-84).

    Building one checks that the key's network, depth, last level and path agree. Raises InvalidKey,
    WrongNetwork.
    """

    network: Network
    key: OriginKey

    def __post_init__(self) -> None:
        require_account(self.key, self.network, profile_account_path)

    def chain_descriptor(self, chain: int) -> str:
        """The descriptor of one chain, with checksum (BIP-382)."""
        return with_checksum(f"wpkh({self.key}/{chain}/*)")

    def cosigner_for(self, fingerprint: Fingerprint) -> OriginKey | None:
        """The key, where its master key has that fingerprint; else None."""
        return self.key if self.key.fingerprint == fingerprint else None

    def script_pubkey(self, chain: int, index: int) -> bytes:
        """Raises InvalidPath."""
        _require_in_bounds(chain, index)
        return p2wpkh(self.key.xpub.derive_public_key(chain, index))

    def address(self, chain: int, index: int) -> str:
        """Raises InvalidPath."""
        return _address(self.script_pubkey(chain, index), self.network)

    def derivations(self, chain: int, index: int) -> dict[bytes, KeyOrigin]:
        """The public key of that script and its origin. Raises InvalidPath."""
        return _derivations((self.key,), chain, index)


Policy = Vault | Profile


def _witness_script(threshold: int, cosigners: Sequence[OriginKey], chain: int, index: int) -> bytes:
    _require_in_bounds(chain, index)
    keys = sorted([key.xpub.derive_public_key(chain, index) for key in cosigners])
    return multisig_script(threshold, keys)


def _address(script: bytes, network: Network) -> str:
    address = encode_address(script, network)
    assert address is not None, "P2WSH and P2WPKH have an address on every network"
    return address


def _derivations(keys: Sequence[OriginKey], chain: int, index: int) -> dict[bytes, KeyOrigin]:
    _require_in_bounds(chain, index)
    return {
        key.xpub.derive_public_key(chain, index): KeyOrigin(
            key.fingerprint, DerivationPath((*key.origin.path.indexes, chain, index))
        )
        for key in keys
    }


def _require_in_bounds(chain: int, index: int) -> None:
    if chain not in {RECEIVE, CHANGE}:
        raise InvalidPath("An address is on chain 0 (receive) or 1 (change).")
    if not 0 <= index <= MAX_INDEX:
        raise InvalidPath(f"An address index is from 0 to {MAX_INDEX}.")


def require_account(key: OriginKey, network: Network, account_path: _AccountPath) -> None:
    """Check that it is such an account's, and agrees with its origin. Raises InvalidKey, WrongNetwork."""
    key.xpub.require_network(network)
    # Wallets write 00000000 where they do not know the device: no device has it, and several keys would share
    # it.
    if not any(bytes(key.fingerprint)):
        raise InvalidKey("The fingerprint 00000000 is a placeholder and names no device.")
    path = key.origin.path
    expected = account_path(network, account_of(path))
    if path != expected:
        raise _wrong_path(key, network, expected)
    key.require_agreement()


def _wrong_path(key: OriginKey, network: Network, expected: DerivationPath) -> MultisigError:
    path = key.origin.path
    if path.indexes[:1] + path.indexes[2:] == expected.indexes[:1] + expected.indexes[2:]:
        return WrongNetwork(f"The path {path} is for another network than {network}.")
    return InvalidKey(
        f"The key of {key.fingerprint} is at {path}, which is not an account of this kind.",
        hint=f"Export the key at a path like {expected}.",
    )


def _require_distinct(values: Sequence[object], what: str) -> None:
    if len(set(values)) != len(values):
        raise InvalidDescriptor(
            f"Two cosigners have the same {what}.",
            hint="Each cosigner needs a device with a seed of its own.",
        )
