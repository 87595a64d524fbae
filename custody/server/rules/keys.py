"""Keys: what a registration must offer and prove, and what revoking a key changes."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from custody.schemas.common import ApiNetwork
from custody.schemas.keys import KeyChallengeRequest, ProfileKey, VaultAccount, offered_digest
from custody.server.errors import Invalid
from multisig import (
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    InvalidMessage,
    MultisigError,
    Network,
    WrongNetwork,
    multisig_account_path,
    profile_account_path,
    recover_message_key,
)

T = TypeVar("T")

# A challenge is signed by the key at <base>/0/0.
PROOF_CHAIN, PROOF_INDEX = 0, 0
# All test networks share one key encoding and one coin type, so any of them will do.
_NETWORKS: dict[ApiNetwork, Network] = {"mainnet": Network.MAINNET, "testnet": Network.TESTNET4}


@dataclass(frozen=True)
class OfferedAccount:
    account: int
    path: DerivationPath
    xpub: ExtendedPublicKey


@dataclass(frozen=True)
class OfferedKey:
    """``accounts`` are in order of their number and begin with account 0, which is the key's own xpub."""

    network: ApiNetwork
    fingerprint: Fingerprint
    accounts: tuple[OfferedAccount, ...]
    profile: tuple[DerivationPath, ExtendedPublicKey] | None

    @property
    def xpub(self) -> ExtendedPublicKey:
        return self.accounts[0].xpub

    @property
    def base_path(self) -> DerivationPath:
        return self.accounts[0].path

    @property
    def proof_path(self) -> DerivationPath:
        return self.base_path / PROOF_CHAIN / PROOF_INDEX

    @property
    def digest(self) -> str:
        """The SHA-256 of every (path, xpub) offered, which the challenge carries."""
        pairs = [(str(offered.path), str(offered.xpub)) for offered in self.accounts]
        if self.profile is not None:
            pairs.append((str(self.profile[0]), str(self.profile[1])))
        return offered_digest(pairs)


def check_offer(request: KeyChallengeRequest) -> OfferedKey:
    """Parses and checks the offered keys. Raises Invalid, which names the field at fault."""
    network = _NETWORKS[request.network]
    _check_path("/derivation_base_path", request.derivation_base_path, multisig_account_path(network))
    first = VaultAccount(account=0, xpub=request.xpub)
    accounts = [_account("/xpub", network, first)]
    for index, given in enumerate(request.vault_accounts):
        accounts.append(_account(f"/vault_accounts/{index}/xpub", network, given))
    profile = None if request.profile is None else _profile(network, request.profile)
    fingerprint = _read("/master_fingerprint", lambda: Fingerprint.from_hex(request.master_fingerprint))
    if not any(bytes(fingerprint)):
        raise Invalid.at("/master_fingerprint", "A fingerprint of zeros names no device.")
    return OfferedKey(request.network, fingerprint, _distinct(accounts), profile)


def check_proof(offered: OfferedKey, challenge: str, signature: str) -> None:
    """Checks that the device signed the challenge with the key at ``<base>/0/0``. Raises Invalid.

    It recovers the public key and compares that, not an address: makers write different header bytes
    (BIP-137).
    """
    try:
        signer = recover_message_key(challenge, b64decode(signature, validate=True))
    except (Base64Error, InvalidMessage) as error:
        raise Invalid.at("/proof/signature", f"The proof is not a signed message: {error}") from error
    if signer != offered.xpub.derive_public_key(PROOF_CHAIN, PROOF_INDEX):
        raise Invalid.at(
            "/proof/signature", "The proof was not signed by the key that is offered.", "bad-proof"
        )


def _account(pointer: str, network: Network, given: VaultAccount) -> OfferedAccount:
    path = multisig_account_path(network, given.account)
    return OfferedAccount(given.account, path, _xpub(pointer, network, given.xpub, path))


def _profile(network: Network, given: ProfileKey) -> tuple[DerivationPath, ExtendedPublicKey]:
    path = profile_account_path(network)
    _check_path("/profile/derivation_base_path", given.derivation_base_path, path)
    return path, _xpub("/profile/xpub", network, given.xpub, path)


def _xpub(pointer: str, network: Network, text: str, path: DerivationPath) -> ExtendedPublicKey:
    xpub = _read(pointer, lambda: ExtendedPublicKey.parse(text, network))
    if xpub.depth != len(path) or xpub.child_number != path.indexes[-1]:
        raise Invalid.at(pointer, f"This key is not the one at {path}: its depth or last level differs.")
    return xpub


def _check_path(pointer: str, text: str, wanted: DerivationPath) -> None:
    path = _read(pointer, lambda: DerivationPath.parse(text))
    if path != wanted:
        raise Invalid.at(pointer, f"The path is {path}; on this network it has to be {wanted}.")


def _distinct(accounts: list[OfferedAccount]) -> tuple[OfferedAccount, ...]:
    """By account number. Account 0 may be given twice with the same key; two accounts may not share one."""
    by_number: dict[int, OfferedAccount] = {}
    for offered in accounts:
        known = by_number.setdefault(offered.account, offered)
        if known.xpub != offered.xpub:
            raise Invalid.at(
                "/vault_accounts", f"Account {offered.account} is offered twice, with different keys."
            )
    if len({offered.xpub.public_key for offered in by_number.values()}) != len(by_number):
        raise Invalid.at("/vault_accounts", "Two accounts have the same key.")
    return tuple(by_number[number] for number in sorted(by_number))


def _read(pointer: str, parse: Callable[[], T]) -> T:
    try:
        return parse()
    except WrongNetwork as error:
        raise Invalid.at(pointer, str(error), "wrong-network") from error
    except MultisigError as error:
        raise Invalid.at(pointer, f"{error} {error.hint}") from error


def may_move_on(reason: str | None) -> bool:
    """Whether the key may still sign: a superseded one can approve what stays in the workspace, for a vault's
    signers are fixed; a lost one can approve nothing (P47).
    """
    return reason == "superseded"
