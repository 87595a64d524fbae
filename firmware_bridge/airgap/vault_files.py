"""Setting up a vault without a cable: cosigners' keys from the files that devices write (Coldcard's two JSON
exports, BSMS 1.0 key records of BIP-129, key-origin text) or show as QR codes, and the vault as files that
devices read.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from enum import StrEnum, unique
from typing import Any, Final

from firmware_bridge.airgap import card
from firmware_bridge.airgap.codes import file_of
from firmware_bridge.airgap.transfer import BadTransfer
from firmware_bridge.enrolment import fitting_name
from firmware_bridge.errors import WrongDevice
from firmware_bridge.makers.coldcard import vault_file
from firmware_bridge.model import Family
from multisig import (
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    InvalidKey,
    InvalidMessage,
    KeyOrigin,
    Network,
    OriginKey,
    Vault,
    bsms_record,
    multisig_account_path,
    profile_account_path,
    recover_message_key,
)
from multisig.canonical_json import JsonError, parse_json
from multisig.keys import plain_form
from multisig.vault import account_of, require_account

VERSION: Final = "BSMS 1.0"
# The token of an unencrypted round.
_NO_TOKEN: Final = "00"  # noqa: S105 - it says that there is none
_RECORD_LINES: Final = 5


def key_of_record(text: str, network: Network) -> OriginKey:
    """The key in a signed record of the first round.

    :raises InvalidKey: not such a record, encrypted, or not signed by its key.
    :raises InvalidPath, WrongNetwork: what is wrong with the key itself.
    """
    lines = text.strip("\n").split("\n")
    if len(lines) != _RECORD_LINES or lines[0] != VERSION:
        raise InvalidKey("This is not a key record of BSMS 1.0.")
    if lines[1] != _NO_TOKEN:
        raise InvalidKey("This key record belongs to an encrypted round, which is not supported.")
    key = OriginKey.parse(lines[2], network)
    if _signer(lines) != key.xpub.public_key:
        raise InvalidKey("The signature in this key record is not by its key.")
    return key


def _signer(lines: list[str]) -> bytes | None:
    try:
        return recover_message_key("\n".join(lines[:-1]), base64.b64decode(lines[-1], validate=True))
    except (binascii.Error, ValueError, InvalidMessage):
        return None


_SIGNATURE_BYTES: Final = 65
_ARMOUR = re.compile(r"-----BEGIN (?:BITCOIN )?SIGNATURE-----")


def message_request(text: str, path: DerivationPath) -> str:
    """A message as a file to sign: text, path, and how the address is shown (Coldcard: Advanced, File
    Management, Sign Text File).
    """
    return f"{text}\n{path}\np2wpkh\n"


def signature_of(answer: str) -> bytes:
    """The 65 bytes of a message's signature: base64 alone, or the file that a device writes around it (RFC
    2440's armour, as Coldcard, Sparrow and Electrum have it).

    :raises BadTransfer: there is none. Whose it is, and of which text, is not looked at.
    """
    if len(answer) > MAX_FILE:
        raise BadTransfer(f"This has more than {MAX_FILE} bytes.")
    armoured = _ARMOUR.split(answer)[-1]
    for word in armoured.split():
        try:
            signature = base64.b64decode(word, validate=True)
        except (binascii.Error, ValueError):
            continue
        if len(signature) == _SIGNATURE_BYTES:
            return signature
    raise BadTransfer(
        "This holds no signature of a message: neither a device's file nor 88 characters of base64."
    )


# A Coldcard's largest export has about 5 kB.
MAX_FILE: Final = 64 * 1024
# One for each account of a device, and one for its profile; a person has a few.
MAX_EXPORTS: Final = 16


def parse_signer_keys(texts: Sequence[str], network: Network) -> tuple[OriginKey, ...]:
    """What a signer registers: the keys for vaults (BIP-48) from account 0 on, then the one of the person's
    own account (BIP-84), from one or several exports of one device.

    Coldcard's generic JSON has both; of key-origin text there may be a line for each key.

    :raises InvalidKey, InvalidPath, WrongNetwork: a key is missing, or not one that is registered.
    :raises WrongDevice: the exports are of several devices.
    :raises BadTransfer: a text is of no known kind, or too large.
    """
    if not 0 < len(texts) <= MAX_EXPORTS:
        raise BadTransfer(f"From 1 to {MAX_EXPORTS} files are read at once.")
    vaults: dict[int, OriginKey] = {}
    profile: OriginKey | None = None
    for key in (key for text in texts for key in keys_in(text, network)):
        if key.origin.path == profile_account_path(network):
            profile = _only(profile, key)
        else:
            account = account_of(key.origin.path)
            vaults[account] = _only(vaults.get(account), key)
    if profile is None:
        raise InvalidKey(
            f"The key of your own account, at {profile_account_path(network)}, is missing.",
            hint="Coldcard: Advanced, Export Wallet, Generic JSON. Else add a line [fingerprint/path]xpub.",
        )
    if sorted(vaults) != list(range(len(vaults))) or not vaults:
        raise InvalidKey(
            f"The keys for vaults must begin with account 0 and leave none out; there are {sorted(vaults)}."
        )
    keys = (*(vaults[account] for account in sorted(vaults)), profile)
    if len({key.fingerprint for key in keys}) > 1:
        raise WrongDevice("These exports are of several devices: their master fingerprints differ.")
    return keys


def keys_in(text: str, network: Network) -> tuple[OriginKey, ...]:
    """The keys of one export, checked for network, path and depth (S14, S15, S17).

    :raises InvalidKey, InvalidPath, WrongNetwork: one is not a key that a signer registers.
    :raises BadTransfer: the text is of no known kind, or too large.
    """
    if len(text) > MAX_FILE:
        raise BadTransfer(f"This file has more than {MAX_FILE} bytes.")
    keys = _all_keys(_opened(text), network)
    for key in keys:
        is_own = key.origin.path == profile_account_path(network)
        require_account(key, network, profile_account_path if is_own else multisig_account_path)
    return keys


def _opened(text: str) -> str:
    """The text; of a series of QR codes, a line each, what they carry."""
    carried = file_of(text.encode())
    try:
        return carried.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise BadTransfer("This series of QR codes holds no text.") from None


def _only(known: OriginKey | None, key: OriginKey) -> OriginKey:
    if known not in {None, key}:
        raise InvalidKey(f"There are two keys at {key.origin.path}.")
    return key


def _all_keys(text: str, network: Network) -> tuple[OriginKey, ...]:
    """Of Coldcard's generic JSON the profile's as well, and of key-origin text that of each line."""
    match text.lstrip()[:1]:
        case "[":
            lines = filter(None, map(str.strip, text.splitlines()))
            return tuple(_of_line(line, network) for line in lines)
        case "{":
            loaded = _load(text)
            key = _from_json(loaded, network)
            match loaded:
                case {"xfp": str() as master, "bip84": {"xpub": str() as xpub, "deriv": str() as path}}:
                    return key, _key(master, path, xpub, network)
            return (key,)
    if text.lstrip().startswith(VERSION):
        return (key_of_record(text.lstrip(), network),)
    raise BadTransfer("This is not a key export of a supported form.")


def _of_line(line: str, network: Network) -> OriginKey:
    origin, bracket, xpub = line.partition("]")
    path = DerivationPath.parse(origin.partition("/")[2])
    return OriginKey.parse(origin + bracket + _plain(xpub.strip(), path, network), network)


def _load(text: str) -> Any:
    try:
        return parse_json(text.encode())
    except JsonError:
        raise BadTransfer("This JSON file is damaged.") from None


def _from_json(document: dict[str, Any], network: Network) -> OriginKey:
    match document:
        # Coldcard: Settings > Multisig > Export XPUB (`ccxp-*.json`).
        case {"xfp": str() as master, "p2wsh": str() as xpub, "p2wsh_deriv": str() as path}:
            return _key(master, path, xpub, network)
        # Coldcard: Advanced > Export Wallet > Generic JSON; `xfp` inside is the account key's own.
        case {"xfp": str() as master, "bip48_2": {"xpub": str() as xpub, "deriv": str() as path, **rest}}:
            key = _key(master, path, xpub, network)
            stated = rest.get("xfp")
            if stated is not None and str(stated).lower() != key.xpub.fingerprint.hex:
                raise InvalidKey("This export contradicts itself: a fingerprint is not its key's.")
            return key
        case {"xfp": str()}:
            raise InvalidKey(
                "This export has no key for a vault in native segwit.",
                hint="On a Coldcard choose Settings, Multisig Wallets, Export XPUB.",
            )
        case _:
            raise BadTransfer("This is not a key export of a supported form.")


def _key(master: str, path: str, xpub: str, network: Network) -> OriginKey:
    origin = KeyOrigin(Fingerprint.from_hex(master), DerivationPath.parse(path))
    return OriginKey(origin, ExtendedPublicKey.parse(_plain(xpub, origin.path, network), network))


def _plain(xpub: str, path: DerivationPath, network: Network) -> str:
    """Coldcard, SeedSigner and Krux write the prefix of SLIP-132 that goes with the path."""
    forms = ("zpub", "vpub") if path == profile_account_path(network) else ("Zpub", "Vpub")
    return plain_form(xpub, *forms)


@unique
class EnrolmentForm(StrEnum):
    """The format of a vault's file."""

    COLDCARD = "coldcard"
    """Coldcard's simple text, which many other devices read too."""
    DESCRIPTOR = "descriptor"
    """An output descriptor with its checksum, receiving and change in one (BIP-380, BIP-389)."""
    BSMS = "bsms"
    """The descriptor record of BIP-129, with the first address to compare."""


_ENDINGS: Final = {
    EnrolmentForm.COLDCARD: ".txt",
    # A descriptor has no name: a Coldcard takes the file's name up to the first dot, of at most 20
    # characters.
    EnrolmentForm.DESCRIPTOR: ".descriptor.txt",
    EnrolmentForm.BSMS: ".bsms",
}


def enrolment_text(vault: Vault, name: str, form: EnrolmentForm = EnrolmentForm.COLDCARD) -> str:
    """The text of the file. For QR codes: `bbqr.split(text.encode(), Content.TEXT)`. The name is shortened
    for a Coldcard if necessary.

    :raises Unsupported: the vault is more than a Coldcard takes.
    """
    match form:
        case EnrolmentForm.COLDCARD:
            return vault_file(vault, fitting_name(Family.COLDCARD, name, vault))
        case EnrolmentForm.DESCRIPTOR:
            return f"{vault.descriptor}\n"
        case EnrolmentForm.BSMS:
            return bsms_record(vault)


def enrolment_file(vault: Vault, name: str, form: EnrolmentForm) -> tuple[str, str]:
    """The file's name and its text. A Coldcard takes the file's name, made from `name`, for the vault's.

    :raises Unsupported: as `enrolment_text`.
    """
    label = card.safe_label(fitting_name(Family.COLDCARD, name, vault))
    return label + _ENDINGS[form], enrolment_text(vault, name, form)
