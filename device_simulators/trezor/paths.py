"""Which key paths and coins the device works with, as the firmware's strict safety checks have it.

Paths are tuples of child numbers, as they come on the wire.
"""

from device_simulators.trezor.work import Refused, data_error
from multisig import HARDENED, Network

Path = tuple[int, ...]

MAX_ACCOUNT = 100
MAX_ADDRESS_INDEX = 1_000_000
MAX_DEPTH = 8
"""Limits of the firmware's path schemas: beyond them a key would be hard to find again (S9)."""

_COINS = {"Bitcoin": Network.MAINNET, "Testnet": Network.TESTNET4}
_DEFAULT_COIN = "Bitcoin"
_MULTISIG_P2WSH = 2


def network_of(coin_name: str | None) -> Network:
    """The network that a host means: the device itself is set to none. On every test network it writes addresses as tb1.

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
    """For an address, a coin or a signature: the full BIP-48 P2WSH path for a multisig, the full BIP-84 path for a single key.

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


def forbidden_path() -> Refused:
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
