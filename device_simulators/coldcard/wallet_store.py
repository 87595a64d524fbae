"""The enrolled wallets: in memory, and in a file where one is given."""

import json
import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from device_simulators.coldcard.errors import CommandRefused
from device_simulators.coldcard.wallet import Wallet
from device_simulators.errors import VirtualDeviceError
from multisig import KeyOrigin, MultisigError, Network, OriginKey


class InvalidWalletFile(VirtualDeviceError):
    code = "invalid-wallet-file"
    hint = "Restore the file, or remove it and enrol the wallets again."


class XpubPolicy(StrEnum):
    """The device's setting for a transaction that brings its wallet's xpubs along and whose wallet is not on record."""

    FACTORY = "factory"
    """Offer to import while no wallet is on record, verify afterwards: as the device is delivered."""
    OFFER = "offer"
    VERIFY = "verify"
    TRUST = "trust"


class WalletStore:
    """Newest last. One record for each set of fingerprints, paths and threshold with the same keys."""

    def __init__(self, network: Network, file: Path | None = None) -> None:
        """:raises InvalidWalletFile: `file` exists and is not one that this class wrote for this network."""
        self._network = network
        self._file = file
        self._wallets: tuple[Wallet, ...] = ()
        if file is not None and file.exists():
            self._wallets = _load(file, network)

    def __iter__(self) -> Iterator[Wallet]:
        return iter(self._wallets)

    def __len__(self) -> int:
        return len(self._wallets)

    def find(self, threshold: int, origins: Iterable[KeyOrigin]) -> Wallet | None:
        """The wallet with this threshold to which these fingerprints and paths belong."""
        listed = list(origins)
        return next((w for w in self._wallets if w.threshold == threshold and w.matches(listed)), None)

    def candidates(self, origins: Iterable[KeyOrigin]) -> list[Wallet]:
        """The wallets of any threshold to which these fingerprints and paths belong."""
        listed = list(origins)
        return [wallet for wallet in self._wallets if wallet.matches(listed)]

    def knows(self, threshold: int, count: int, fingerprints_xor: int) -> bool:
        """The question `msck` asks."""
        return any(
            (w.threshold, len(w.cosigners), w.fingerprints_xor()) == (threshold, count, fingerprints_xor)
            for w in self._wallets
        )

    def twin(self, wallet: Wallet) -> Wallet | None:
        """The record with the same policy and the same keys, whatever its name."""
        return next(
            (w for w in self._wallets if w.threshold == wallet.threshold and w.same_keys(wallet)), None
        )

    def has_name(self, name: str, *, beside: Wallet | None = None) -> bool:
        """Whether a record other than `beside` has this name."""
        return any(w.name == name for w in self._wallets if w is not beside)

    def keep(self, wallet: Wallet) -> None:
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


def _to_record(wallet: Wallet) -> dict[str, Any]:
    return {
        "name": wallet.name,
        "threshold": wallet.threshold,
        "cosigners": [str(key) for key in wallet.cosigners],
    }


def _load(file: Path, network: Network) -> tuple[Wallet, ...]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["network"] != network.value:
            raise InvalidWalletFile(
                f"{file} holds wallets of {document['network']}, the device is on {network.value}"
            )
        return tuple(_from_record(record, network) for record in document["wallets"])
    except (OSError, ValueError, KeyError, TypeError, MultisigError, CommandRefused) as error:
        raise InvalidWalletFile(f"{file} cannot be read as enrolled wallets: {error}") from error


def _from_record(record: dict[str, Any], network: Network) -> Wallet:
    keys = tuple(OriginKey.parse(text, network) for text in record["cosigners"])
    return Wallet(record["name"], record["threshold"], keys)
