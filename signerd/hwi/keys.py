"""getxpub, getmasterxpub, getdescriptors: the standard accounts, and what lies below them."""

from argparse import Namespace
from typing import Any

from multisig import DerivationPath, ExtendedPublicKey, InvalidPath, MultisigError, Network, checksum
from multisig.keys import HARDENED
from multisig.vault import account_of, multisig_account_path, profile_account_path
from signerd.asking import segment
from signerd.endpoint import PERSON_SECONDS
from signerd.hwi.codes import Code, HwiError
from signerd.hwi.connection import DaemonConnection
from signerd.hwi.listing import Chosen, present
from signerd.hwi.values import Accounts, Key, read

# As the interface bounds it (``shapes.addresses``), whose shapes are not loaded for a number.
MAX_ACCOUNT = 100
VAULT, PROFILE = "vault", "profile"


def xpub(daemon: DaemonConnection, chosen: Chosen, args: Namespace) -> dict[str, Any]:
    path = parsed(args.path)
    purpose, account, below = _standard(path, Network(chosen.accounts.network))
    key = ExtendedPublicKey.parse(_account_key(daemon, chosen, purpose, account).xpub).derive(below)
    answer: dict[str, Any] = {"xpub": str(key)}
    return {**answer, **_details(key)} if args.expert else answer


def master_xpub(daemon: DaemonConnection, chosen: Chosen, args: Namespace) -> dict[str, Any]:
    require_native(args.addr_type)
    _require_account(args.account)
    return {"xpub": _account_key(daemon, chosen, PROFILE, args.account).xpub}


def descriptors(chosen: Chosen, args: Namespace) -> dict[str, list[str]]:
    """Of the registered account alone: what another one received, signerd would not sign for."""
    chosen.require_registered()
    key = chosen.accounts.find(PROFILE, args.account)
    if key is None:
        raise HwiError(
            f"account {args.account} is not registered, so signerd would not sign for what it receives; "
            "getxpub tells its key",
            Code.UNAVAILABLE_ACTION,
        )
    return {"receive": [_descriptor(chosen, key, 0)], "internal": [_descriptor(chosen, key, 1)]}


def require_native(address_type: str) -> None:
    """Raises HwiError."""
    if address_type != "wit":
        raise HwiError(
            f"signerd keeps native segwit accounts only, and --addr-type says {address_type}",
            Code.UNAVAILABLE_ACTION,
        )


def parsed(text: str) -> DerivationPath:
    """Raises HwiError."""
    try:
        return DerivationPath.parse(text)
    except MultisigError as error:
        raise HwiError(str(error), Code.BAD_ARGUMENT) from None


def _descriptor(chosen: Chosen, key: Key, chain: int) -> str:
    origin = f"{chosen.fingerprint}{key.path.removeprefix('m')}"
    text = f"wpkh([{origin}]{key.xpub}/{chain}/*)"
    return f"{text}#{checksum(text)}"


def _standard(path: DerivationPath, network: Network) -> tuple[str, int, DerivationPath]:
    """The account that a path leads through, and the rest of it. Raises HwiError."""
    for purpose, account_path in ((VAULT, multisig_account_path), (PROFILE, profile_account_path)):
        account = account_of(path)
        top = account_path(network, account)
        below = DerivationPath(path.indexes[len(top) :])
        if path.starts_with(top) and not any(index >= HARDENED for index in below):
            _require_account(account)
            return purpose, account, below
    raise HwiError(
        f"signerd tells the keys of {multisig_account_path(network)} and {profile_account_path(network)}, "
        f"of accounts up to {MAX_ACCOUNT}, and those below them; {path} is none of these",
        Code.UNAVAILABLE_ACTION,
    )


def _require_account(account: int) -> None:
    if not 0 <= account <= MAX_ACCOUNT:
        raise HwiError(f"an account is a number from 0 to {MAX_ACCOUNT}", Code.BAD_ARGUMENT)


def _account_key(daemon: DaemonConnection, chosen: Chosen, purpose: str, account: int) -> Key:
    """Registered keys are known without the device."""
    known = chosen.accounts.find(purpose, account) if chosen.registered else None
    if known is not None:
        return known
    device = segment(present(chosen).id)
    told = daemon.post(f"/devices/{device}/accounts", {"account": account}, seconds=PERSON_SECONDS)
    key = read(Accounts.read, told).find(purpose, account)
    if key is None:
        raise InvalidPath(f"The device told no key of account {account}.")
    return key


def _details(key: ExtendedPublicKey) -> dict[str, Any]:
    return {
        "testnet": key.kind.coin_type == 1,
        "private": False,
        "depth": key.depth,
        "parent_fingerprint": str(key.parent_fingerprint),
        "child_num": key.child_number,
        "chaincode": key.chain_code.hex(),
        "pubkey": key.public_key.hex(),
    }
