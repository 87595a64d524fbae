"""The accounts that a device keeps for this platform."""

from multisig.errors import InvalidPath
from multisig.keys import HARDENED, DerivationPath
from multisig.network import Network

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
