"""One cryptographic step with the secrets file, in a process of its own: ``derive``, ``seal`` or ``open``;
JSON on stdin, base64 on stdout. The cipher and the key derivation take seven megabytes, and Argon2id 64 more
while it works: a daemon that needs them for a tenth of a second every few minutes does not keep them in
memory.
"""

import base64
import json
import sys
from collections.abc import Mapping

# Exit status: the key is wrong, or the file was changed.
NOT_OPENED = 3


def derive(passphrase: bytes, salt: bytes, memory_kib: int, passes: int, lanes: int) -> bytes:
    """32 bytes by Argon2id (RFC 9106)."""
    from argon2.low_level import Type, hash_secret_raw

    return hash_secret_raw(
        passphrase,
        salt,
        time_cost=passes,
        memory_cost=memory_kib,
        parallelism=lanes,
        hash_len=32,
        type=Type.ID,
    )


def seal(key: bytes, nonce: bytes, secret: bytes, about: bytes) -> bytes:
    """AES-256-GCM; ``about`` is the associated data."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key).encrypt(nonce, secret, about)


def unseal(key: bytes, nonce: bytes, sealed: bytes, about: bytes) -> bytes | None:
    """The plain text; None where the key is wrong, or any part was changed."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(nonce, sealed, about)
    except (InvalidTag, ValueError):
        return None


def step(verb: str, given: Mapping[str, bytes]) -> bytes | None:
    match verb:
        case "derive":
            return derive(given["passphrase"], given["salt"], *map(int, given["cost"].split()))
        case "seal":
            return seal(given["key"], given["nonce"], given["secret"], given["about"])
        case _:
            return unseal(given["key"], given["nonce"], given["secret"], given["about"])


def main(verb: str) -> int:
    given = {name: base64.b64decode(text) for name, text in json.load(sys.stdin).items()}
    done = step(verb, given)
    if done is None:
        return NOT_OPENED
    sys.stdout.write(base64.b64encode(done).decode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
