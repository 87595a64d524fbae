"""Derivation paths on the wire, and those whose keys a host may have without asking the person."""

from device_simulators.ledger.errors import incorrect_data
from multisig import HARDENED, DerivationPath
from multisig.wire import Reader

MAX_STEPS = 10
MAX_ACCOUNT = 100
MAX_DEFAULT_INDEX = 50_000
"""The app's limits (constants.h)."""

_HARDENED_STEPS = {44: 3, 45: 3, 48: 4, 49: 3, 84: 3, 86: 3}
"""Purpose and depth of the account, by BIP; of BIP-45 the form that wallets use, not the one in its text."""
_SCRIPT_TYPES = {1, 2}
"""BIP-48: nested and native segwit."""
_ELECTRUM = (4_541_509 + HARDENED, 1_112_098_098 + HARDENED)
"""From this place Electrum derives the keys that it encrypts its files with."""


def read_path(reader: Reader) -> DerivationPath:
    """:raises Refused: more steps than the app takes."""
    count = reader.uint(1)
    if count > MAX_STEPS:
        raise incorrect_data(f"a path of {count} steps")
    return DerivationPath(tuple(int.from_bytes(reader.take(4)) for _ in range(count)))


def is_usual(path: DerivationPath, coin_type: int) -> bool:
    """Whether it is an account of a BIP, or below one, on this network."""
    steps = path.indexes
    if steps == _ELECTRUM:
        return True
    depth = _HARDENED_STEPS.get(steps[0] - HARDENED) if steps else None
    if depth is None or len(steps) < depth or not _is_hardened_down_to(steps, depth):
        return False
    purpose, coin, account = (step - HARDENED for step in steps[:3])
    if coin != coin_type or account > MAX_ACCOUNT:
        return False
    return purpose != 48 or steps[3] - HARDENED in _SCRIPT_TYPES


def _is_hardened_down_to(steps: tuple[int, ...], depth: int) -> bool:
    """The account and all above it are hardened, and nothing below it is."""
    return all((step >= HARDENED) == (level < depth) for level, step in enumerate(steps))
