"""The encrypted link: one key by Diffie-Hellman on secp256k1, then AES-256-CTR, one stream each way.

Both streams start at counter 0 when the hands are shaken and run on without a break: a message lost, or answered for
another host, makes everything after it unreadable to the other side. That is what a second connection does to a
first one. Source: hwilib `devices/ckcc/client.py`, `ec_mult` and `aes_setup`.
"""

from hashlib import sha256

from coincurve import PrivateKey, PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from device_simulators.coldcard.errors import CommandRefused

RAW_KEY_SIZE = 64  # x and y, without the leading 04


def raw_public_key(private: PrivateKey) -> bytes:
    """The 64 bytes x‖y that travel in the handshake."""
    return private.public_key.format(compressed=False)[1:]


def shared_key(private: PrivateKey, raw_peer: bytes) -> bytes:
    """SHA-256 of x‖y of the Diffie-Hellman point, 32 bytes. Raises CommandRefused for a point off the curve."""
    try:
        peer = PublicKey(b"\x04" + raw_peer)
    except ValueError as error:
        raise CommandRefused("bad pubkey") from error
    return sha256(peer.multiply(private.secret).format(compressed=False)[1:]).digest()


class Session:
    """One side's view of the link. `key` is what the device signs to show that nobody sits in between."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        start = CTR(bytes(16))
        self._incoming = Cipher(AES256(key), start).decryptor()
        self._outgoing = Cipher(AES256(key), start).encryptor()

    def __repr__(self) -> str:
        return "Session(key=<redacted>)"

    def decrypt(self, data: bytes) -> bytes:
        """Read the next bytes that the host sent."""
        return self._incoming.update(data)

    def encrypt(self, data: bytes) -> bytes:
        """Make the next bytes for the host."""
        return self._outgoing.update(data)
