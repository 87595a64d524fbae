"""Multisig wallets as the device has them on record, in memory or in a file.

Only wsh(sortedmulti): the real device also knows P2SH and wrapped forms, which no vault of ours uses. How a
wallet that is to be enrolled compares with those on record: `has_similar` in the firmware's
`shared/multisig.py`.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from device_simulators.coldcard.replies import CommandRefused
from device_simulators.coldcard.wire import MAX_COSIGNERS, MAX_WALLET_NAME
from device_simulators.errors import VirtualDeviceError
from multisig import (
    DerivationPath,
    Fingerprint,
    KeyOrigin,
    MultisigError,
    Network,
    OriginKey,
    multisig_script,
)


@dataclass(frozen=True)
class ColdcardWallet:
    """M of N cosigners. Raises CommandRefused, in the firmware's words, for a record it would not keep."""

    name: str
    threshold: int
    cosigners: tuple[OriginKey, ...]

    def __post_init__(self) -> None:
        if (
            not 1 <= len(self.name) <= MAX_WALLET_NAME
            or not self.name.isascii()
            or not self.name.isprintable()
        ):
            raise CommandRefused("name must be ascii, 1..20 long")
        if not 1 <= self.threshold <= len(self.cosigners) <= MAX_COSIGNERS:
            raise CommandRefused("M/N range")
        if len(self.paths) != len(self.cosigners):
            raise CommandRefused("dup XFP")

    @cached_property
    def paths(self) -> dict[Fingerprint, DerivationPath]:
        return {key.origin.fingerprint: key.origin.path for key in self.cosigners}

    @property
    def policy(self) -> str:
        return f"{self.threshold} of {len(self.cosigners)}"

    def same_keys(self, other: "ColdcardWallet") -> bool:
        return frozenset(self.cosigners) == frozenset(other.cosigners)

    def matches(self, origins: Iterable[KeyOrigin]) -> bool:
        """Are these the wallet's fingerprints, each with a path below its account?"""
        listed = list(origins)
        return len(listed) == len(self.cosigners) and all(
            origin.fingerprint in self.paths and origin.path.starts_with(self.paths[origin.fingerprint])
            for origin in listed
        )

    def fingerprints_xor(self) -> int:
        """How `msck` names a set of cosigners: their fingerprints as little-endian numbers, combined by
        xor.
        """
        result = 0
        for fingerprint in self.paths:
            result ^= int.from_bytes(bytes(fingerprint), "little")
        return result

    def script_at(self, path: DerivationPath) -> bytes:
        """The witness script at the chain and index that a path ends in."""
        return multisig_script(self.threshold, tuple(key for key, _origin in self._keys_at(path)))

    def shown_at(self, path: DerivationPath) -> tuple[str, ...]:
        """How the screen names that script's keys, in their order. The part of a path that cannot be verified
        from here, the account's, is blanked out.
        """
        tail = "".join(f"/{step}" for step in tuple(path)[-2:])
        return tuple(
            f"[{shown_fingerprint(origin.fingerprint)}{'/_' * len(origin.path)}{tail}]"
            for _key, origin in self._keys_at(path)
        )

    def _keys_at(self, path: DerivationPath) -> list[tuple[bytes, KeyOrigin]]:
        chain, index = tuple(path)[-2:]
        keys = {key.xpub.derive_public_key(chain, index): key.origin for key in self.cosigners}
        return sorted(keys.items())


def shown_fingerprint(fingerprint: Fingerprint) -> str:
    """Upper-case, as the device's screen has it."""
    return fingerprint.hex.upper()


class InvalidWalletFile(VirtualDeviceError):
    code = "invalid-wallet-file"
    hint = "Restore the file, or remove it and enrol the wallets again."


class WalletStore:
    """Newest last. One record for each set of fingerprints, paths and threshold with the same keys."""

    def __init__(self, network: Network, file: Path | None = None) -> None:
        """:raises InvalidWalletFile: `file` exists and is not one that this class wrote for this network."""
        self._network = network
        self._file = file
        self._wallets: tuple[ColdcardWallet, ...] = ()
        if file is not None and file.exists():
            self._wallets = _load(file, network)

    def __iter__(self) -> Iterator[ColdcardWallet]:
        return iter(self._wallets)

    def find(self, threshold: int, origins: Iterable[KeyOrigin]) -> ColdcardWallet | None:
        """The wallet with this threshold to which these fingerprints and paths belong."""
        listed = list(origins)
        return next((w for w in self._wallets if w.threshold == threshold and w.matches(listed)), None)

    def candidates(self, origins: Iterable[KeyOrigin]) -> list[ColdcardWallet]:
        """The wallets of any threshold to which these fingerprints and paths belong."""
        listed = list(origins)
        return [wallet for wallet in self._wallets if wallet.matches(listed)]

    def knows(self, threshold: int, count: int, fingerprints_xor: int) -> bool:
        """The question `msck` asks."""
        return any(
            (w.threshold, len(w.cosigners), w.fingerprints_xor()) == (threshold, count, fingerprints_xor)
            for w in self._wallets
        )

    def twin(self, wallet: ColdcardWallet) -> ColdcardWallet | None:
        """The record with the same policy and the same keys, whatever its name."""
        return next(
            (w for w in self._wallets if w.threshold == wallet.threshold and w.same_keys(wallet)), None
        )

    def has_name(self, name: str, *, beside: ColdcardWallet | None = None) -> bool:
        """Whether a record other than `beside` has this name."""
        return any(w.name == name for w in self._wallets if w is not beside)

    def keep(self, wallet: ColdcardWallet) -> None:
        """Put on record; a twin under another name gives way."""
        twin = self.twin(wallet)
        self._wallets = (*(w for w in self._wallets if w is not twin), wallet)
        self._save()

    def _save(self) -> None:
        if self._file is None:
            return
        draft = self._file.with_name(self._file.name + ".new")
        document = {"network": self._network.value, "wallets": [_to_record(w) for w in self._wallets]}
        with draft.open("w", encoding="utf-8") as stream:
            json.dump(document, stream, indent=2)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(self._file)


def _to_record(wallet: ColdcardWallet) -> dict[str, Any]:
    return {
        "name": wallet.name,
        "threshold": wallet.threshold,
        "cosigners": [str(key) for key in wallet.cosigners],
    }


def _load(file: Path, network: Network) -> tuple[ColdcardWallet, ...]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["network"] != network.value:
            raise InvalidWalletFile(
                f"{file} holds wallets of {document['network']}, the device is on {network.value}"
            )
        return tuple(_from_record(record, network) for record in document["wallets"])
    except (OSError, ValueError, KeyError, TypeError, MultisigError, CommandRefused) as error:
        raise InvalidWalletFile(f"{file} cannot be read as enrolled wallets: {error}") from error


def _from_record(record: dict[str, Any], network: Network) -> ColdcardWallet:
    keys = tuple(OriginKey.parse(text, network) for text in record["cosigners"])
    return ColdcardWallet(record["name"], record["threshold"], keys)


_SIMILAR = (
    "WARNING: This new wallet is similar to an existing wallet, but will NOT replace it. "
    "Consider deleting previous wallet first. Differences: "
)


@dataclass(frozen=True)
class Comparison:
    """`remark` is the screen's first line. A `duplicate` is shown, and no button keeps it."""

    remark: str
    duplicate: bool = False


def compare(wallet: ColdcardWallet, store: WalletStore) -> Comparison:
    origins = [key.origin for key in wallet.cosigners]
    known = store.find(wallet.threshold, origins)
    if known is not None and not known.same_keys(wallet):
        return Comparison(_SIMILAR + "xpubs")
    if store.has_name(wallet.name, beside=known):
        return Comparison("Duplicate wallet. Name already exists.", duplicate=True)
    if known is not None:
        return Comparison("Duplicate wallet. All details are the same as existing!", duplicate=True)
    similar = store.candidates(origins)
    if not similar:
        return Comparison("Create new multisig wallet?")
    xpubs = any(other.cosigners != wallet.cosigners for other in similar)
    return Comparison(f"{_SIMILAR}M differs{', xpubs' if xpubs else ''}")
