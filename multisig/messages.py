"""Bitcoin Signed Messages: the hash that devices sign, and the key that signed (BIP-137)."""

from coincurve import PublicKey

from multisig.errors import InvalidMessage
from multisig.hashes import sha256d
from multisig.wire import with_length

_MAGIC = b"Bitcoin Signed Message:\n"
_SIGNATURE_BYTES = 65
# BIP-137: four headers each for uncompressed P2PKH, compressed P2PKH, P2SH-P2WPKH, P2WPKH.
_FIRST_HEADER, _LAST_HEADER = 27, 42


def message_hash(text: str) -> bytes:
    """The 32-byte digest of `text` (UTF-8) as a signed message. Raises InvalidMessage for half a surrogate pair."""
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidMessage("The message is not text that can be written in UTF-8.") from error
    return sha256d(with_length(_MAGIC) + with_length(encoded))


def recover_message_key(text: str, signature65: bytes) -> bytes:
    """The compressed public key that made the 65-byte signature (header, R, S) of `text`.

    Makers disagree about the header for a native segwit address, so that only its recovery number is read. Whoever
    calls compares the key: any well-formed signature recovers to some key. Raises InvalidMessage.
    """
    if len(signature65) != _SIGNATURE_BYTES:
        raise InvalidMessage("The signature of a message has 65 bytes.")
    header, body = signature65[0], signature65[1:]
    if not _FIRST_HEADER <= header <= _LAST_HEADER:
        raise InvalidMessage("The signature's first byte is not one that a device writes.")
    recoverable = body + ((header - _FIRST_HEADER) & 3).to_bytes(1)
    try:
        key = PublicKey.from_signature_and_message(recoverable, message_hash(text), hasher=None)
    except ValueError as error:
        raise InvalidMessage("No key can have made this signature.") from error
    return key.format(compressed=True)
