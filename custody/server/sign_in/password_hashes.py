"""Hashes of passwords (Argon2id)."""

import threading
from base64 import b64encode

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from argon2.low_level import ARGON2_VERSION

from custody.server.rules.credentials import normalised

# One hash takes 64 MiB (RFC 9106, second recommended option). The bound keeps a burst of sign-ins from
# exhausting memory.
MAX_PARALLEL_HASHES = 4


class Passwords:
    def __init__(self, hasher: PasswordHasher) -> None:
        self._hasher = hasher
        self._slots = threading.BoundedSemaphore(MAX_PARALLEL_HASHES)
        self._no_account = _dummy_hash(hasher)

    def hash(self, password: str) -> str:
        with self._slots:
            return self._hasher.hash(normalised(password))

    def matches(self, stored: str | None, password: str) -> bool:
        """Takes the same time whether or not there is a ``stored`` hash to compare with."""
        with self._slots:
            try:
                self._hasher.verify(stored or self._no_account, normalised(password))
            except VerifyMismatchError:
                return False
        return stored is not None

    def is_outdated(self, stored: str) -> bool:
        """True where the hash was made with other parameters than today's."""
        return self._hasher.check_needs_rehash(stored)


def _dummy_hash(hasher: PasswordHasher) -> str:
    """What an unknown account's password is compared with: the same work, and never a match (P39). Written
    and not computed, which would add a fifth of a second to each command that opens the platform.
    """
    sizes = hasher.salt_len, hasher.hash_len
    salt, digest = (b64encode(bytes(size)).decode().rstrip("=") for size in sizes)
    work = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2{hasher.type.name.lower()}$v={ARGON2_VERSION}${work}${salt}${digest}"
