"""The device's keys on one network: what a path leads to, as script and as address."""

from dataclasses import dataclass

from device_simulators.seed import Seed
from device_simulators.trezor.messages import MultisigRedeemScript
from device_simulators.trezor.models import Model
from device_simulators.trezor.paths import Path, require_address_path
from device_simulators.trezor.quorum import Quorum
from multisig import DerivationPath, Network, encode_address, hash160, p2pkh, p2wpkh


@dataclass(frozen=True)
class Place:
    """What is at a path: the own key there, its quorum if it has one, and the scripts that follow."""

    path: Path
    public_key: bytes
    quorum: Quorum | None

    @property
    def script_pubkey(self) -> bytes:
        return p2wpkh(self.public_key) if self.quorum is None else self.quorum.script_pubkey

    @property
    def script_code(self) -> bytes:
        """What a segwit v0 signature covers as the script (BIP-143)."""
        return p2pkh(hash160(self.public_key)) if self.quorum is None else self.quorum.witness_script

    @property
    def identity(self) -> bytes | None:
        return None if self.quorum is None else self.quorum.identity


@dataclass(frozen=True)
class Wallet:
    """A seed under a passphrase, on the network that a host means, in a device of a model."""

    seed: Seed
    network: Network
    model: Model

    def public_key(self, path: Path) -> bytes:
        return self.seed.public_key(DerivationPath(path))

    def place(self, path: Path, multisig: MultisigRedeemScript | None) -> Place:
        """What is at this path, with the quorum that the host describes.

        :raises Refused: a path of another form, or a quorum without the own key.
        """
        require_address_path(path, self.network, multisig=multisig is not None)
        key = self.public_key(path)
        return Place(path, key, None if multisig is None else Quorum.from_message(multisig, key))

    def show(self, script_pubkey: bytes) -> str | None:
        """The address as the screen shows it; None for a script without one."""
        return encode_address(script_pubkey, self.network)

    def legacy_address(self, path: Path) -> str:
        """The P2PKH address, by which message signatures name their key."""
        address = self.show(p2pkh(hash160(self.public_key(path))))
        assert address is not None
        return address

    def sign(self, path: Path, digest: bytes) -> bytes:
        return self.seed.sign(DerivationPath(path), digest)

    def sign_message(self, path: Path, digest: bytes) -> bytes:
        return self.seed.sign_recoverable(DerivationPath(path), digest)
