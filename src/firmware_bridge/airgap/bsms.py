"""Records of BIP-129 (BSMS 1.0), unencrypted: the vault as a coordinator hands it out, and a signer's key as it comes back."""

import base64
import binascii
from typing import Final

from multisig import RECEIVE, InvalidKey, InvalidMessage, Network, OriginKey, Vault, recover_message_key

VERSION: Final = "BSMS 1.0"
# BIP-129: receiving and change addresses, as `/**` stands for them.
_PATHS: Final = "/0/*,/1/*"
# The token of a round that is not encrypted.
_NO_TOKEN: Final = "00"  # noqa: S105 - it says that there is none
_RECORD_LINES: Final = 5


def descriptor_record(vault: Vault) -> str:
    """The four lines of the second round: version, template, paths, first address. Lines end in LF, the last one in nothing."""
    keys = ",".join(f"{_with_apostrophes(key)}/**" for key in vault.cosigners)
    template = f"wsh(sortedmulti({vault.threshold},{keys}))"
    return "\n".join((VERSION, template, _PATHS, vault.address(RECEIVE, 0)))


def _with_apostrophes(key: OriginKey) -> str:
    # Both marks are allowed; the vectors of the BIP have this one, and so has what old firmware reads.
    origin = str(key.origin).replace("h", "'")
    return f"[{origin}]{key.xpub}"


def key_of_record(text: str, network: Network) -> OriginKey:
    """The key in a record of the first round, whose owner has signed it.

    :raises InvalidKey: it is no such record, it is encrypted, or the signature is not by this key.
    :raises InvalidPath, WrongNetwork: what is wrong with the key itself.
    """
    lines = text.strip("\n").split("\n")
    if len(lines) != _RECORD_LINES or lines[0] != VERSION:
        raise InvalidKey("This is no key record of BSMS 1.0.")
    if lines[1] != _NO_TOKEN:
        raise InvalidKey("This key record belongs to an encrypted round, which is not read here.")
    key = OriginKey.parse(lines[2], network)
    if _signer(lines) != key.xpub.public_key:
        raise InvalidKey("The signature in this key record is not by its key.")
    return key


def _signer(lines: list[str]) -> bytes | None:
    try:
        return recover_message_key("\n".join(lines[:-1]), base64.b64decode(lines[-1], validate=True))
    except (binascii.Error, ValueError, InvalidMessage):
        return None
