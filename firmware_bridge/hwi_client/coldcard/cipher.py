"""A Coldcard's encrypted link with libsecp256k1 and OpenSSL in the place of ecdsa and pyaes, which are Python alone.

ckcc asks for that: "should be replaced in subclasses if you have other EC libraries". pyaes takes three quarters of the time
in which a large transaction is signed, and a handshake's first multiplication fills a table for 15 ms.
"""

from hashlib import sha256
from typing import Any

from coincurve import PrivateKey, PublicKey
from coincurve.ecdsa import cdata_to_der, deserialize_compact, signature_normalize
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from hwilib.devices.ckcc.client import ColdcardDevice
from hwilib.devices.ckcc.utils import decode_xpub

_UNCOMPRESSED = b"\x04"


class Ckcc(ColdcardDevice):  # type: ignore[misc]  # HWI is untyped
    """ckcc's client; what its methods promise stands there."""

    def ec_setup(self) -> bytes:
        self.my_key = PrivateKey()
        return self.my_key.public_key.format(compressed=False)[1:]

    def ec_mult(self, his_pubkey: bytes) -> bytes:
        """:raises ValueError: the device's point is not on the curve."""
        point = PublicKey(_UNCOMPRESSED + his_pubkey).multiply(self.my_key.secret)
        del self.my_key
        return sha256(point.format(compressed=False)[1:]).digest()

    def aes_setup(self, session_key: bytes) -> None:
        """One stream each way, both from counter 0."""
        start = CTR(bytes(16))
        self.encrypt_request = Cipher(AES256(session_key), start).encryptor().update
        self.decrypt_response = Cipher(AES256(session_key), start).decryptor().update

    def mitm_verify(self, sig: bytes, expected_xpub: Any) -> bool:
        """Whether the key of `expected_xpub` has signed the session's key: nobody sits in between (S21)."""
        public_key, _chain_code = decode_xpub(expected_xpub)
        try:
            # ckcc takes either of the two S; libsecp256k1 wants the lower.
            _, lower = signature_normalize(deserialize_compact(sig[1:]))
            return PublicKey(public_key).verify(cdata_to_der(lower), self.session_key, hasher=None)
        except ValueError:
            return False
