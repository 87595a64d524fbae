"""Key records of BIP-129 (BSMS 1.0), unencrypted: a signer's key as it comes back to the coordinator."""

import base64
import binascii
from typing import Final

from multisig import InvalidKey, InvalidMessage, Network, OriginKey, recover_message_key

VERSION: Final = "BSMS 1.0"
# The token of a round that is not encrypted.
_NO_TOKEN: Final = "00"  # noqa: S105 - it says that there is none
_RECORD_LINES: Final = 5


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
