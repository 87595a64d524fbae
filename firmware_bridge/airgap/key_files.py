"""A cosigner's public key from the file that a device wrote: Coldcard's two JSON exports, BSMS, or key-origin text."""

import json
from pathlib import Path
from typing import Any, Final

from firmware_bridge.airgap import bsms, card
from firmware_bridge.airgap.outcomes import Unreadable
from firmware_bridge.errors import WrongDevice
from multisig import (
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    InvalidKey,
    InvalidPath,
    KeyOrigin,
    Network,
    OriginKey,
    WrongNetwork,
    base58,
    multisig_account_path,
)
from multisig.vault import account_of

# The largest export of a Coldcard has about 5 kB.
MAX_FILE: Final = 64 * 1024
# SLIP-132: the prefixes Zpub and Vpub say "P2WSH of several keys", which the place in the file says as well, so that the
# plain form loses nothing.
_P2WSH_VERSIONS: Final = {
    bytes.fromhex("02aa7ed3"): bytes.fromhex("0488b21e"),
    bytes.fromhex("02575483"): bytes.fromhex("043587cf"),
}


def read_key(file: Path, network: Network, *, signer: Fingerprint | None = None) -> OriginKey:
    """The key for a vault, native segwit (BIP-48), checked for network, path and depth (S14, S15, S17).

    :raises NoCard, CardProtected, CardFault, Unreadable: the file cannot be read, or is no text.
    :raises MultisigError: as `parse_key`.
    :raises WrongDevice: as `parse_key`.
    """
    content = card.read(file, MAX_FILE)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("This file holds no text.") from None
    return parse_key(text, network, signer=signer)


def parse_key(text: str, network: Network, *, signer: Fingerprint | None = None) -> OriginKey:
    """The same from the text of such a file.

    :raises InvalidKey, InvalidPath, WrongNetwork: the key, or its place, is not what a vault takes.
    :raises WrongDevice: it is another device's than `signer`.
    :raises Unreadable: the text is of no known kind.
    """
    if len(text) > MAX_FILE:
        raise Unreadable(f"This file has more than the {MAX_FILE} bytes that are read.")
    key = _parse(text.replace("\r\n", "\n"), network)
    _require_account(key, network)
    if signer is not None and key.fingerprint != signer:
        raise WrongDevice(f"This key is from the device {key.fingerprint}, and {signer} was expected.")
    return key


def _parse(text: str, network: Network) -> OriginKey:
    start = text.lstrip()[:1]
    if start == "{":
        return _from_json(_load(text), network)
    if text.lstrip().startswith(bsms.VERSION):
        return bsms.key_of_record(text.lstrip(), network)
    if start == "[":
        return OriginKey.parse(text, network)
    raise Unreadable("This is no key export that is known here.")


def _load(text: str) -> dict[str, Any]:
    try:
        # What begins with a brace is an object, or nothing.
        loaded: dict[str, Any] = json.loads(text, object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        raise Unreadable("This JSON file is damaged.") from None
    return loaded


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands there twice, and readers differ in which one they take")
    return found


def _from_json(found: dict[str, Any], network: Network) -> OriginKey:
    match found:
        # Coldcard: Settings > Multisig > Export XPUB (`ccxp-*.json`).
        case {"xfp": str() as master, "p2wsh": str() as xpub, "p2wsh_deriv": str() as path}:
            return _key(master, path, xpub, network)
        # Coldcard: Advanced > Export Wallet > Generic JSON; `xfp` inside is the account key's own.
        case {"xfp": str() as master, "bip48_2": {"xpub": str() as xpub, "deriv": str() as path, **rest}}:
            key = _key(master, path, xpub, network)
            _require_own_fingerprint(key, rest.get("xfp"))
            return key
        case {"xfp": str()}:
            raise InvalidKey(
                "This export has no key for a vault in native segwit.",
                hint="On a Coldcard choose Settings, Multisig Wallets, Export XPUB.",
            )
        case _:
            raise Unreadable("This is no key export that is known here.")


def _key(master: str, path: str, xpub: str, network: Network) -> OriginKey:
    origin = KeyOrigin(Fingerprint.from_hex(master), DerivationPath.parse(path))
    return OriginKey(origin, ExtendedPublicKey.parse(_plain(xpub), network))


def _plain(xpub: str) -> str:
    try:
        data = base58.decode_check(xpub)
    except base58.Base58Error:
        # Whoever parses it has the words for what is wrong.
        return xpub
    version = _P2WSH_VERSIONS.get(data[:4])
    return xpub if version is None else base58.encode_check(version + data[4:])


def _require_own_fingerprint(key: OriginKey, stated: object) -> None:
    if stated is not None and str(stated).lower() != key.xpub.fingerprint.hex:
        raise InvalidKey("This export contradicts itself: a fingerprint is not its key's.")


def _require_account(key: OriginKey, network: Network) -> None:
    path = key.origin.path
    expected = multisig_account_path(network, account_of(path))
    if path != expected:
        if path.indexes[:1] + path.indexes[2:] == expected.indexes[:1] + expected.indexes[2:]:
            raise WrongNetwork(f"The path {path} is for another network than {network}.")
        raise InvalidPath(f"The key is at {path}; a vault in native segwit wants one at {expected}.")
    if not any(bytes(key.fingerprint)):
        raise InvalidKey("The fingerprint 00000000 names no device.")
    key.require_agreement()
