"""Keys, descriptors and addresses of the registered account or of a pinned vault."""

import re
from argparse import Namespace
from collections.abc import Sequence
from typing import Any, Final

from multisig import (
    DerivationPath,
    ExtendedPublicKey,
    InvalidPath,
    KeyOrigin,
    Network,
    OriginKey,
    Policy,
    Profile,
    Vault,
    encode_address,
    multisig_script,
    p2wsh,
    profile_account_path,
)
from multisig.descriptor import MAX_CHARACTERS, strip_checksum
from multisig.keys import HARDENED
from multisig.vault import CHANGE, RECEIVE, account_of, multisig_account_path
from signerd import shapes
from signerd.client import DaemonClient
from signerd.errors import DaemonFailed
from signerd.hwi.codes import HwiError, unavailable
from signerd.hwi.listing import Chosen, key_of, present

VAULT, PROFILE = "vault", "profile"
NOT_PINNED: Final = (
    "the descriptor is not of a vault pinned here: compare the vault with the other signers and pin it "
    "first, with `signerd pin`"
)


def xpub(daemon: DaemonClient, chosen: Chosen, args: Namespace) -> dict[str, Any]:
    path = DerivationPath.parse(args.path)
    purpose, account, below = _standard(path, Network(chosen.accounts.network))
    key = ExtendedPublicKey.parse(_account_key(daemon, chosen, purpose, account).xpub).derive(below)
    return {"xpub": str(key), **(_details(key) if args.expert else {})}


def master_xpub(daemon: DaemonClient, chosen: Chosen, args: Namespace) -> dict[str, Any]:
    require_native(args.addr_type)
    return {"xpub": _account_key(daemon, chosen, PROFILE, args.account).xpub}


def descriptors(daemon: DaemonClient, chosen: Chosen, args: Namespace) -> dict[str, list[str]]:
    """Of the pinned vault that ``--vault`` names, else of the registered account: signerd does not sign for
    any other.
    """
    chosen.require_registered()
    network = Network(chosen.accounts.network)
    policy: Policy = _vault(daemon, network, args.vault) if args.vault else _profile(chosen, args.account)
    return {"receive": [policy.chain_descriptor(RECEIVE)], "internal": [policy.chain_descriptor(CHANGE)]}


def keypool(daemon: DaemonClient, chosen: Chosen, args: Namespace) -> list[dict[str, Any]]:
    """The descriptors as Core's ``importdescriptors`` takes them: of both chains, unless one is named."""
    chains = [(CHANGE, True)] if args.internal else [(RECEIVE, False), (CHANGE, True)]
    if args.path is not None:
        if args.vault:
            raise HwiError("--path is of your own account, and --vault names a vault")
        args.account, chain = _chain_of(args.path, Network(chosen.accounts.network))
        chains = [(chain, args.internal)]
    require_native(args.addr_type)
    found = descriptors(daemon, chosen, args)
    return [
        {
            "desc": found["internal" if chain == CHANGE else "receive"][0],
            "range": [args.start, args.end],
            "timestamp": "now",
            "internal": is_internal,
            "keypool": args.keypool,
            "active": args.keypool,
            "watchonly": True,
        }
        for chain, is_internal in chains
    ]


def _chain_of(pattern: str, network: Network) -> tuple[int, int]:
    """The BIP-84 account and the chain of ``m/84h/…/0/*``. Raises HwiError."""
    if not pattern.startswith("m/"):
        raise HwiError("Path must start with m/")
    if not pattern.endswith("/*"):
        raise HwiError("Path must end with /*")
    path = DerivationPath.parse(pattern.removesuffix("/*"))
    purpose, account, below = _standard(path, network)
    if purpose != PROFILE or len(below) != 1 or below.indexes[0] not in {RECEIVE, CHANGE}:
        raise unavailable(f"{path} is no chain of a BIP-84 account")
    return account, below.indexes[0]


def _vault(daemon: DaemonClient, network: Network, named: str) -> Vault:
    """By its full name, id or verification code. Raises HwiError."""
    vaults = [one for one in daemon.vaults() if named in {one.name, one.vault_id, one.verification_code}]
    pinned = [one for one in vaults if one.pinned]
    if len(pinned) != 1:
        why = "several pinned vaults have" if pinned else "no vault that is pinned here has"
        hint = "`signerd vaults` shows each one's verification code, which --vault accepts too"
        raise HwiError(f"{why} the name '{named}': {hint}")
    return _whole(pinned[0], network)


def require_native(address_type: str) -> None:
    """Raises HwiError."""
    if address_type != "wit":
        raise unavailable(f"signerd has native segwit accounts only, and --addr-type says {address_type}")


def _standard(path: DerivationPath, network: Network) -> tuple[str, int, DerivationPath]:
    """The purpose and account that a path passes through, and the rest of the path. Raises HwiError."""
    for purpose, account_path in ((VAULT, multisig_account_path), (PROFILE, profile_account_path)):
        account = account_of(path)
        top = account_path(network, account)
        below = DerivationPath(path.indexes[len(top) :])
        if path.starts_with(top) and not any(index >= HARDENED for index in below):
            return purpose, account, below
    raise unavailable(
        f"signerd gives the keys at {multisig_account_path(network)} and {profile_account_path(network)}, "
        f"of other accounts, and those below them; {path} is not among these"
    )


def _account_key(daemon: DaemonClient, chosen: Chosen, purpose: str, account: int) -> "shapes.KeyView":
    """Asks the device only for a key that is not registered."""
    known = key_of(chosen.accounts, purpose, account) if chosen.registered else None
    if known is not None:
        return known
    key = key_of(daemon.device_accounts(present(chosen).id, account), purpose, account)
    if key is None:
        raise InvalidPath(f"The device gave no key of account {account}.")
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


_SINGLE = re.compile(r"wpkh\(([^(),]+)\)")
_QUORUM = re.compile(r"wsh\((sortedmulti|multi)\(([1-9][0-9]?),([^()]+)\)\)", re.ASCII)
_KEY = re.compile(r"\[([0-9a-fA-F]{8}(?:/[0-9]+['hH]?)*)\]([0-9A-Za-z]+)((?:/[0-9]+)*)", re.ASCII)
_PUBLIC_KEY = re.compile(r"0[23][0-9a-f]{64}", re.ASCII)


# One key of one address: its origin with the full path to it, and the public key.
KeyAt = tuple[KeyOrigin, bytes]


def address(daemon: DaemonClient, chosen: Chosen, args: Namespace) -> dict[str, str]:
    path = None if args.path is None else DerivationPath.parse(args.path)
    chosen.require_registered()
    if path is None:
        return _of_descriptor(daemon, chosen, args.desc)
    require_native(args.addr_type)
    return _of_path(daemon, chosen, path)


def _of_path(
    daemon: DaemonClient, chosen: Chosen, path: DerivationPath, given: bytes | None = None
) -> dict[str, str]:
    """``given``: the public key that a descriptor has at this path."""
    profile = _profile(chosen, 0)
    account = profile.key.origin.path
    if len(path) != len(account) + 2 or not path.starts_with(account):
        raise unavailable(f"signerd shows addresses of the registered account {account}; {path} is not in it")
    chain, index = path.indexes[-2:]
    if given not in {None, *profile.derivations(chain, index)}:
        raise HwiError("Key in descriptor does not match device")
    shown = daemon.show_profile_address(chain=chain, index=index)
    return confirmed(shown, profile.address(chain, index))


def _of_descriptor(daemon: DaemonClient, chosen: Chosen, text: str) -> dict[str, str]:
    network = Network(chosen.accounts.network)
    body = strip_checksum(text[: MAX_CHARACTERS + 1], strict=False)
    if len(body) > MAX_CHARACTERS:
        raise HwiError("the descriptor is too long")
    if (single := _SINGLE.fullmatch(body)) is not None:
        origin, public_key = _key(single[1], network)
        if str(origin.fingerprint) != chosen.fingerprint:
            raise HwiError("Descriptor fingerprint does not match device")
        return _of_path(daemon, chosen, origin.path, public_key)
    if (quorum := _QUORUM.fullmatch(body)) is not None:
        keys = [_key(expression, network) for expression in quorum[3].split(",")]
        return _quorum(daemon, network, int(quorum[2]), keys, is_sorted=quorum[1] == "sortedmulti")
    raise unavailable(
        "signerd shows addresses of the form wpkh([…]…) and wsh(sortedmulti(…)), at one chain and index, "
        "without *"
    )


def _key(expression: str, network: Network) -> KeyAt:
    """Raises MultisigError, HwiError."""
    match = _KEY.fullmatch(expression)
    if match is None:
        raise HwiError("a key of the descriptor is not of the form [fingerprint/path]key")
    origin, below = KeyOrigin.parse(match[1]), DerivationPath.parse(match[3].removeprefix("/"))
    if _PUBLIC_KEY.fullmatch(match[2]) is None:
        public_key = ExtendedPublicKey.parse(match[2], network).derive(below).public_key
    elif not below.indexes:
        public_key = bytes.fromhex(match[2])
    else:
        raise HwiError("nothing can be derived below a plain public key")
    whole = KeyOrigin(origin.fingerprint, origin.path / below)
    if len(whole.path) < 2:
        raise HwiError("a key of the descriptor has no chain and index")
    return whole, public_key


def _quorum(
    daemon: DaemonClient, network: Network, threshold: int, keys: Sequence[KeyAt], *, is_sorted: bool
) -> dict[str, str]:
    """Matched by the whole script, at the place of the first key."""
    public_keys = [public_key for _origin, public_key in keys]
    script = multisig_script(threshold, sorted(public_keys) if is_sorted else public_keys)
    expected, (chain, index) = encode_address(p2wsh(script), network), keys[0][0].path.indexes[-2:]
    for vault in daemon.vaults():
        if vault.pinned and _whole(vault, network).address(chain, index) == expected:
            return confirmed(daemon.show_vault_address(vault.vault_id, chain=chain, index=index), expected)
    raise unavailable(NOT_PINNED)


def _whole(vault: "shapes.VaultView", network: Network) -> Vault:
    assert vault.descriptor is not None, "a pinned vault is whole"
    return Vault.from_descriptor(vault.descriptor, network)


def _profile(chosen: Chosen, account: int) -> Profile:
    """Raises HwiError."""
    key = key_of(chosen.accounts, PROFILE, account)
    if key is None:
        raise unavailable(
            f"account {account} is not registered, so signerd would not sign for what it receives; "
            "getxpub gives its key"
        )
    origin = f"{chosen.fingerprint}{key.path.removeprefix('m')}"
    return Profile(Network(chosen.accounts.network), OriginKey.parse(f"[{origin}]{key.xpub}"))


def confirmed(shown: "shapes.AddressShown", expected: str | None) -> dict[str, str]:
    """Raises DaemonFailed where another address was shown than was asked for; Core compares it too."""
    if shown.address != expected:
        raise DaemonFailed(f"the daemon showed {shown.address}, which is not the address that was asked for")
    return {"address": shown.address}
