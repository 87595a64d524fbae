"""The device's keys on its network, the policies it knows as its own, and the paths whose keys a host gets
without the person being asked.
"""

import hmac
from functools import lru_cache

from device_simulators.ledger.policy import KnownPolicy
from device_simulators.ledger.work import incorrect_data
from device_simulators.seed import Seed
from multisig import (
    HARDENED,
    DerivationPath,
    Network,
    OriginKey,
    Profile,
    encode_address,
)
from multisig.vault import account_of
from multisig.wire import Reader

MAX_STEPS = 10
MAX_ACCOUNT = 100
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


_LABEL = b"LEDGER-Wallet policy"
"""The label (SLIP-21) of the key that registered policies are proven with."""
_XPUBS_KEPT = 64


class LedgerWallet:
    """A seed in the app of one network. It stores no registration: an HMAC-SHA256 of
    the policy's id proves it.
    """

    def __init__(self, seed: Seed, network: Network) -> None:
        self.seed = seed
        self.network = network
        self._hmac_key = seed.symmetric_key(_LABEL)
        self.xpub = lru_cache(_XPUBS_KEPT)(lambda path: seed.xpub(path, network))

    @property
    def ticker(self) -> str:
        """COIN_COINID_SHORT of the app's two builds."""
        return "BTC" if self.network is Network.MAINNET else "TEST"

    def policy_hmac(self, policy_id: bytes) -> bytes:
        """What registering a policy gives: the same for the same seed and policy, for ever."""
        return hmac.digest(self._hmac_key, policy_id, "sha256")

    def is_registered(self, policy_id: bytes, policy_hmac: bytes) -> bool:
        return hmac.compare_digest(self.policy_hmac(policy_id), policy_hmac)

    def own_key(self, key: OriginKey) -> DerivationPath | None:
        """Where in the seed this key is; None for another key, whatever its origin claims."""
        path = key.origin.path
        mine = key.fingerprint == self.seed.fingerprint and self.xpub(path) == key.xpub
        return path if mine else None

    def is_default(self, policy: KnownPolicy) -> bool:
        """Whether it needs no registration: a person's own account (BIP-84) without a name."""
        return (
            isinstance(policy.of, Profile)
            and not policy.name
            and self.own_key(policy.of.key) is not None
            and account_of(policy.of.key.origin.path) <= MAX_ACCOUNT
        )

    def show(self, script_pubkey: bytes) -> str | None:
        """The address as the screen shows it, `tb1…` on every test network; None for a script without one."""
        shown = Network.MAINNET if self.network is Network.MAINNET else Network.TESTNET4
        return encode_address(script_pubkey, shown)
