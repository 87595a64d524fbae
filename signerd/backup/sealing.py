"""Encryption in the age format (https://age-encryption.org/v1), by the Rust implementation.

Encryption under a passphrase authenticates the file; encryption to a public key does not: the person checks
the content before it is restored.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path

from custody.common.private_files import read_bounded
from signerd.backup.container import MAX_BYTES
from signerd.errors import BackupLocked, BackupNotMade, BackupUnreadable, InvalidRequest, system_errors

MAGIC = b"age-encryption.org/v1\n"
# A file under a passphrase has exactly one stanza, of this type (age-encryption.org/v1, "The scrypt recipient
# type").
_SCRYPT = b"-> scrypt "
_STANZA = re.compile(re.escape(MAGIC) + rb"-> scrypt [A-Za-z0-9+/]{22} ([0-9]{1,2})\n")
# age itself uses 18, a second's work on a fast machine. The library measures, and may choose less on a busy
# one.
ENOUGH_WORK, MORE_TRIES = 16, 4
# The library estimates the machine's speed in a millisecond, and refuses work that would then take more than
# 16 seconds: on a busy machine it is tried again. It has one exception type for every failure.
_TOO_MUCH_WORK = "Excessive work parameter"
BUSY_SECONDS = 20.0
# The header, and sixteen bytes for each of 64 KiB.
MAX_SEALED_BYTES = MAX_BYTES + MAX_BYTES // 4096 + 64 * 1024
MAX_KEY_FILE_BYTES = 64 * 1024
_SECRET_KEY = "AGE-SECRET-KEY-"  # noqa: S105 - what such a key begins with


def seal_with(content: bytes, passphrase: str) -> bytes:
    """Encrypt under a passphrase. The library measures the machine to choose the work factor: where a busy
    machine made it too low, it is tried again.
    """
    from pyrage import passphrase as by_passphrase

    sealed = bytes(by_passphrase.encrypt(content, passphrase))
    for _ in range(MORE_TRIES):
        if work_of(sealed) >= ENOUGH_WORK:
            break
        sealed = max(sealed, bytes(by_passphrase.encrypt(content, passphrase)), key=work_of)
    return sealed


def work_of(sealed: bytes) -> int:
    """The scrypt cost of a file under a passphrase, as a power of two; 0 for other files."""
    stanza = _STANZA.match(sealed)
    return 0 if stanza is None else int(stanza[1])


def seal_for(content: bytes, recipient: str) -> bytes:
    """``recipient``: a public key, ``age1…``. Raises BackupNotMade where it is malformed."""
    from pyrage import RecipientError, encrypt, x25519

    try:
        key = x25519.Recipient.from_str(recipient)
    except RecipientError as error:
        raise BackupNotMade(
            f"'{recipient}' is not a public key of age: {error}",
            hint="Make one with `age-keygen`; its public key begins with age1.",
        ) from None
    return bytes(encrypt(content, [key]))


def read_sealed(path: Path) -> bytes:
    """Raises BackupUnreadable: it cannot be read, or is not an age file."""
    with system_errors(BackupUnreadable, f"{path} cannot be read"):
        sealed = read_bounded(path, MAX_SEALED_BYTES)
    if not sealed.startswith(MAGIC):
        raise BackupUnreadable(f"{path} is not an encrypted backup")
    return sealed


def wants_passphrase(sealed: bytes) -> bool:
    return sealed[len(MAGIC) :].startswith(_SCRYPT)


def open_with(sealed: bytes, passphrase: str, clock: Callable[[], float] = time.monotonic) -> bytes:
    """Raises BackupLocked: a wrong passphrase, a truncated or changed file, or a machine that is too slow."""
    from pyrage import DecryptError
    from pyrage import passphrase as by_passphrase

    end = clock() + BUSY_SECONDS
    while True:
        try:
            return bytes(by_passphrase.decrypt(sealed, passphrase))
        except DecryptError as error:
            if not str(error).startswith(_TOO_MUCH_WORK):
                raise BackupLocked(
                    "the passphrase does not open it, or the file was cut or changed"
                ) from None
            if clock() >= end:
                raise BackupLocked(
                    f"the passphrase takes 2^{work_of(sealed)} steps to try: too much for this machine",
                    hint="Try again when it is less busy, or on the machine that made the backup.",
                ) from None


def open_by(sealed: bytes, key_file: Path) -> bytes:
    """Decrypt with the secret keys in a file of ``age-keygen``.

    Raises InvalidRequest: the file has none. BackupLocked: none of them opens it, or it was cut or changed.
    """
    from pyrage import DecryptError, IdentityError, decrypt, x25519

    try:
        keys = [x25519.Identity.from_str(line) for line in _secret_keys(key_file)]
    except IdentityError as error:
        raise InvalidRequest(f"{key_file} has a secret key that cannot be read: {error}", hint="") from None
    if not keys:
        raise InvalidRequest(f"{key_file} has no secret key of age", hint="`age-keygen` writes such a file.")
    try:
        return bytes(decrypt(sealed, keys))
    except DecryptError:
        raise BackupLocked(f"no key of {key_file} opens it, or the file was cut or changed") from None


def _secret_keys(path: Path) -> list[str]:
    with system_errors(InvalidRequest, f"{path} cannot be read", "Give another file."):
        text = read_bounded(path, MAX_KEY_FILE_BYTES).decode("ascii", "replace")
    return [line.strip() for line in text.splitlines() if line.strip().startswith(_SECRET_KEY)]
