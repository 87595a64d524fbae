"""The device's keys on one network: what a path leads to, as script and as address; the paths and coins that
the firmware's strict safety checks allow; and the multisig that a host describes beside an input, an output
or an address.

The firmware has no registered wallets: the host describes the quorum each time, and the device recognises
change by the quorum's *identity*. Keys hash into it in the order they are sent, unless the host says that
their order is lexicographic (firmware 1.13.0). So change of a sortedmulti whose keys are sent in script order
is not recognised, and neither is it where keys come without their chain code. Paths are tuples of child
numbers, as they come on the wire.
"""

from dataclasses import dataclass
from typing import Self

from device_simulators.seed import Seed
from device_simulators.trezor.messages import HDNode, HDNodePath, KeyOrder, MultisigRedeemScript
from device_simulators.trezor.work import TrezorRefused, data_error
from multisig import (
    HARDENED,
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    Network,
    NetworkKind,
    encode_address,
    hash160,
    multisig_script,
    p2pkh,
    p2wpkh,
    p2wsh,
    sha256,
)

Path = tuple[int, ...]

MAX_ACCOUNT = 100
MAX_ADDRESS_INDEX = 1_000_000
MAX_DEPTH = 8
"""Limits of the firmware's path schemas: beyond them a key would be hard to find again (S9)."""

_COINS = {"Bitcoin": Network.MAINNET, "Testnet": Network.TESTNET4}
_DEFAULT_COIN = "Bitcoin"
_MULTISIG_P2WSH = 2


def network_of(coin_name: str | None) -> Network:
    """The network that a host means: the device itself is set to none. On every test network it writes
    addresses as tb1.

    :raises Refused: a coin that this device does not know.
    """
    network = _COINS.get(_DEFAULT_COIN if coin_name is None else coin_name)
    if network is None:
        raise data_error("Invalid coin name")
    return network


def require_key_path(path: Path) -> None:
    """For a public key: any path of any coin.

    :raises Refused: too deep a path.
    """
    if len(path) > MAX_DEPTH:
        raise forbidden_path()


def require_address_path(path: Path, network: Network, *, multisig: bool) -> None:
    """For an address, a coin or a signature: the full BIP-48 P2WSH path for a multisig, the full BIP-84 path
    for a single key.

    :raises Refused: anything else.
    """
    if not (is_multisig_path(path, network) if multisig else is_single_path(path, network)):
        raise forbidden_path()


def require_message_path(path: Path, network: Network) -> None:
    """For a message: any full address path.

    :raises Refused: anything else, such as the path of an account.
    """
    if not (is_multisig_path(path, network) or is_single_path(path, network)):
        raise forbidden_path()


def forbidden_path() -> TrezorRefused:
    return data_error("Forbidden key path")


def is_multisig_path(path: Path, network: Network) -> bool:
    """m/48h/coin h/account h/2h/chain/index."""
    return (
        len(path) == 6
        and path[0] == HARDENED + 48
        and path[1] == _coin(network)
        and _is_account(path[2])
        and path[3] == HARDENED + _MULTISIG_P2WSH
        and is_address_suffix(path[4:])
    )


def is_address_suffix(suffix: Path) -> bool:
    """chain/index: receive or change, and an index that can be found again."""
    return len(suffix) == 2 and suffix[0] in {0, 1} and suffix[1] <= MAX_ADDRESS_INDEX


def is_single_path(path: Path, network: Network) -> bool:
    """m/84h/coin h/account h/chain/index."""
    return (
        len(path) == 5
        and path[0] == HARDENED + 84
        and path[1] == _coin(network)
        and _is_account(path[2])
        and is_address_suffix(path[3:])
    )


def _is_account(step: int) -> bool:
    return HARDENED <= step <= HARDENED + MAX_ACCOUNT


def _coin(network: Network) -> int:
    return HARDENED + network.coin_type


@dataclass(frozen=True)
class Quorum:
    """m of the given keys, derived and ordered: one script, and the identity that its siblings share."""

    threshold: int
    public_keys: tuple[bytes, ...]
    nodes: tuple[HDNode, ...]
    """The account keys, in the order in which the host named them."""
    own: int
    """Which of them is the device's own."""
    ordered: bool
    """Whether the host says that the script has its keys in lexicographic order."""
    identity: bytes

    @classmethod
    def from_message(cls, message: MultisigRedeemScript, own_key: bytes) -> Self:
        """:raises Refused: the device's own key for this path is not among them.

        :raises MultisigError: an impossible quorum, a repeated key, or an invalid key.
        """
        keys = tuple(_derive(path) for path in message.pubkeys)
        if own_key not in keys:
            raise data_error("Pubkey not found in multisig script")
        nodes, own = tuple(path.node for path in message.pubkeys), keys.index(own_key)
        ordered = _order(message) is KeyOrder.LEXICOGRAPHIC
        if ordered:
            keys = tuple(sorted(keys))
        multisig_script(message.m, keys)
        return cls(
            threshold=message.m,
            public_keys=keys,
            nodes=nodes,
            own=own,
            ordered=ordered,
            identity=_identity(message),
        )

    @property
    def witness_script(self) -> bytes:
        return multisig_script(self.threshold, self.public_keys)

    @property
    def script_pubkey(self) -> bytes:
        return p2wsh(self.witness_script)


def _order(message: MultisigRedeemScript) -> KeyOrder:
    try:
        return KeyOrder(message.pubkeys_order or 0)
    except ValueError:
        raise data_error("Unknown order of keys") from None


def extended_key(node: HDNode, kind: NetworkKind) -> ExtendedPublicKey:
    return ExtendedPublicKey(
        kind=kind,
        depth=node.depth,
        parent_fingerprint=Fingerprint(node.fingerprint.to_bytes(4, "big")),
        child_number=node.child_num,
        chain_code=node.chain_code,
        public_key=node.public_key,
    )


def _derive(path: HDNodePath) -> bytes:
    # Any kind will do: the key is not serialised.
    key = extended_key(path.node, NetworkKind.MAINNET)
    if len(path.address_n) == 2:
        return key.derive_public_key(*path.address_n)
    return key.derive(DerivationPath(path.address_n)).public_key


def _identity(message: MultisigRedeemScript) -> bytes:
    nodes = [path.node for path in message.pubkeys]
    order = _order(message)
    if order is KeyOrder.LEXICOGRAPHIC:
        nodes.sort(key=lambda node: node.public_key)
    numbers = [message.m, len(nodes), order]
    for node in nodes:
        numbers += [node.depth, node.fingerprint, node.child_num]
    return sha256(
        b"".join(number.to_bytes(4, "big") for number in numbers)
        + b"".join(node.chain_code + node.public_key for node in nodes)
    )


@dataclass(frozen=True)
class TrezorPlace:
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
class TrezorWallet:
    """A seed under a passphrase, on the network that a host means."""

    seed: Seed
    network: Network

    def public_key(self, path: Path) -> bytes:
        return self.seed.public_key(DerivationPath(path))

    def place(self, path: Path, multisig: MultisigRedeemScript | None) -> TrezorPlace:
        """What is at this path, with the quorum that the host describes.

        :raises Refused: a path of another form, or a quorum without the own key.
        """
        require_address_path(path, self.network, multisig=multisig is not None)
        key = self.public_key(path)
        return TrezorPlace(path, key, None if multisig is None else Quorum.from_message(multisig, key))

    def show(self, script_pubkey: bytes) -> str | None:
        """The address as the screen shows it; None for a script without one."""
        return encode_address(script_pubkey, self.network)

    def legacy_address(self, path: Path) -> str:
        """The P2PKH address, by which message signatures name their key."""
        address = self.show(p2pkh(hash160(self.public_key(path))))
        assert address is not None
        return address
