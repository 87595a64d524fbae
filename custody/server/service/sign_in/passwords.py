"""Argon2id, with the same work for an account that does not exist."""

import threading

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from custody.server.domain.credentials import normalised

# One hash takes 64 MiB (RFC 9106, second recommended option): a burst of sign-ins must not take the memory.
MAX_PARALLEL_HASHES = 4


class Passwords:
    def __init__(self, hasher: PasswordHasher) -> None:
        self._hasher = hasher
        self._slots = threading.BoundedSemaphore(MAX_PARALLEL_HASHES)
        # What an unknown account's password is compared with: the same work, never a match (P39).
        self._nobody = hasher.hash("nobody has this password")

    def hash(self, password: str) -> str:
        with self._slots:
            return self._hasher.hash(normalised(password))

    def matches(self, stored: str | None, password: str) -> bool:
        """Takes the same time whether or not there is a ``stored`` hash to compare with."""
        with self._slots:
            try:
                self._hasher.verify(stored or self._nobody, normalised(password))
            except VerifyMismatchError:
                return False
        return stored is not None

    def is_outdated(self, stored: str) -> bool:
        """True where the hash was made with other parameters than today's."""
        return self._hasher.check_needs_rehash(stored)
