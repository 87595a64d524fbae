"""What of a policy is ours: its own keys, and which derivations of a PSBT name them."""

from device_simulators.ledger.errors import incorrect_data, not_supported
from device_simulators.ledger.policy import Policy
from device_simulators.ledger.spend import Place
from device_simulators.ledger.wallet import Wallet
from multisig import CHANGE, HARDENED, RECEIVE, DerivationPath

MAX_DERIVATION_BYTES = 4 * 256
"""A fingerprint and at most 255 steps (BIP-32)."""
MAX_OWN_KEYS = 8
"""The app's limit (constants.h)."""

_STEP_BYTES = 4


class Ownership:
    """:raises Refused: no key of the policy is ours, or too many are."""

    def __init__(self, wallet: Wallet, policy: Policy) -> None:
        self._policy = policy
        paths = [path for key in policy.keys if (path := wallet.own_key(key)) is not None]
        if not paths:
            raise incorrect_data("no key of this policy is of this device")
        if len(paths) > MAX_OWN_KEYS:
            raise not_supported("too many keys of this policy are of this device")
        self.accounts: tuple[DerivationPath, ...] = tuple(paths)
        self._prefixes = [bytes(wallet.fingerprint) + _serialize(path) for path in paths]

    def place_of(self, derivation: bytes) -> Place | None:
        """Where below one of our keys this derivation of a PSBT leads; None if it is none of ours.

        :raises Refused: to a hardened index, which nobody can derive from a public key.
        """
        split = len(derivation) - 2 * _STEP_BYTES
        if derivation[: max(split, 0)] not in self._prefixes:
            return None
        chain, index = (
            int.from_bytes(derivation[at : at + _STEP_BYTES], "little") for at in (split, split + _STEP_BYTES)
        )
        if chain not in {RECEIVE, CHANGE}:
            return None
        if index >= HARDENED:
            raise incorrect_data("a hardened index below an extended public key")
        return Place(chain, index)

    def script_pubkey(self, place: Place) -> bytes:
        return self._policy.script_pubkey(place.chain, place.index)

    def script_code(self, place: Place) -> bytes:
        return self._policy.script_code(place.chain, place.index)


def _serialize(path: DerivationPath) -> bytes:
    return b"".join(step.to_bytes(_STEP_BYTES, "little") for step in path)
