"""A security key (WebAuthn Level 3) with one ES256 credential, whose answers can be made wrong."""

import json
from dataclasses import dataclass, field
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2.cbor import encode
from fido2.cose import ES256
from fido2.utils import websafe_encode

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


@dataclass
class Authenticator:
    """``origin``: of the asking page, as the browser knows it."""

    origin: str
    rp_id: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    credential_id: bytes = b"credential of a test"
    counter: int = 0
    flags: int = PRESENT | VERIFIED

    def create(self, options: str) -> str:
        """The answer to a request for a new credential."""
        public = encode(ES256.from_cryptography_key(self.key.public_key()))
        length = len(self.credential_id).to_bytes(2, "big")
        data = self._data(ATTESTED) + bytes(16) + length + self.credential_id + public
        attested = encode({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", options)
        return self._answer(clientDataJSON=client, attestationObject=attested)

    def get(self, options: str) -> str:
        """The answer to a request for a signature."""
        self.counter += 1
        client, data = self._client("webauthn.get", options), self._data(0)
        signature = self.key.sign(data + sha256(client).digest(), ec.ECDSA(SHA256()))
        return self._answer(clientDataJSON=client, authenticatorData=data, signature=signature)

    def _client(self, kind: str, options: str) -> bytes:
        challenge = json.loads(options)["challenge"]
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _data(self, more: int) -> bytes:
        about = bytes([self.flags | more]) + self.counter.to_bytes(4, "big")
        return sha256(self.rp_id.encode()).digest() + about

    def _answer(self, **response: bytes) -> str:
        name = websafe_encode(self.credential_id)
        answer = {"response": {part: websafe_encode(value) for part, value in response.items()}}
        named = {"id": name, "rawId": name, "type": "public-key", "clientExtensionResults": {}}
        return json.dumps(named | answer)
