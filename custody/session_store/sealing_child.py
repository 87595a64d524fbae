"""One step with the secrets file, in a process of its own: ``derive``, ``seal`` or ``open``; JSON in by
stdin, base64 out by stdout.

The cipher and the key derivation are libraries of seven megabytes, and Argon2id takes 64 more while it works:
a daemon that needs them for a tenth of a second every few minutes does not keep them. The caller knows what
the exit statuses mean.
"""

import base64
import json
import sys
from collections.abc import Mapping

# The key does not fit, or the file was changed.
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
    """AES-256-GCM; ``about`` is bound to it and not part of it."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key).encrypt(nonce, secret, about)


def unseal(key: bytes, nonce: bytes, sealed: bytes, about: bytes) -> bytes | None:
    """What was sealed; None where this key does not open it, or any part was changed."""
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
