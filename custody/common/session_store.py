"""Storage for a session's secret: never in plain text, and never in a keyring backend that only pretends to
store it.
Two stores with the same three methods. A call of the keyring runs in a child process, which is killed at its
deadline: a locked keyring may wait for a person.
``signerd`` and ``custody`` use them, each under its own name and with its own errors.
"""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from custody.common import children
from custody.common.private_files import write_private

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

Passphrase = Callable[[], str | None]

SECRETS_FILE = "secrets.json"
# RFC 9106, section 4, second recommended option: 64 MiB, three passes, four lanes.
ARGON2_MEMORY_KIB = 64 * 1024
ARGON2_PASSES = 3
ARGON2_LANES = 4
_HEADER = {"version": 1, "kdf": "argon2id", "memory_kib": ARGON2_MEMORY_KIB, "passes": ARGON2_PASSES}


class ErrorMaker(Protocol):
    """Makes an error of the program: a sentence, and a hint where the error's own does not fit."""

    def __call__(self, sentence: str, *, hint: str | None = None) -> Exception: ...


class Errors(NamedTuple):
    """The errors of a program: the store cannot be used; it cannot be opened; it did not answer in time."""

    unusable: ErrorMaker
    locked: ErrorMaker
    late: ErrorMaker


class SecretStore(Protocol):
    """Stores one short text. ``mode``: its name on the status page. Each call raises one of ``Errors``."""

    mode: str

    def load(self) -> str | None: ...

    def save(self, secret: str) -> None: ...

    def clear(self) -> None: ...


@dataclass
class KeyringStore:
    """The desktop's keyring, under ``service`` (the program) and ``account`` (its folder, so that two folders
    of one person have separate sessions).
    """

    service: str
    errors: Errors
    account: str
    seconds: float
    mode: str = "keyring"

    def load(self) -> str | None:
        answer = self._ask("get")
        return None if answer == "" else answer

    def save(self, secret: str) -> None:
        self._ask("set", secret)

    def clear(self) -> None:
        self._ask("delete")

    def _ask(self, verb: str, secret: str = "") -> str:
        """Raises ``unusable`` where the keyring, or the child, fails."""
        try:
            done = subprocess.run(  # noqa: S603 - our own interpreter and module
                children.command(__name__, verb, self.service, self.account),
                pass_fds=children.passed(),
                input=secret,
                capture_output=True,
                text=True,
                timeout=self.seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise self.errors.late(f"the keyring did not answer in {self.seconds:.0f} seconds") from None
        except OSError as error:
            hint = "Close programs until the machine has room again, then try again."
            raise self.errors.unusable(f"no program can be started: {error.strerror}", hint=hint) from error
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise self.errors.unusable(f"the desktop's keyring cannot be used: {reason}")
        return done.stdout


@dataclass
class FileStore:
    """A file in the program's folder, encrypted by AES-256-GCM with a key that Argon2id derives from a
    passphrase. The key is derived once and stays in memory; the passphrase does not.
    """

    errors: Errors
    path: Path
    passphrase: Passphrase = field(repr=False)
    mode: str = "encrypted file"
    _key: bytes | None = field(default=None, repr=False)
    _salt: bytes = field(default=b"", repr=False)

    def load(self) -> str | None:
        stored = self._read()
        if stored is None:
            return None
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            salt, nonce, sealed = (base64.b64decode(stored[name]) for name in ("salt", "nonce", "secret"))
            return AESGCM(self._key_for(salt)).decrypt(nonce, sealed, _aad(stored["salt"])).decode()
        except (InvalidTag, ValueError):
            self._key = None
            raise self.errors.locked(
                f"the passphrase does not open {self.path}, or the file was changed"
            ) from None

    def save(self, secret: str) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        stored = self._read()
        salt = os.urandom(16) if stored is None else base64.b64decode(stored["salt"])
        if stored is not None and not self._has_key_for(salt):
            self.load()  # A mistyped passphrase must not lock out the right one.
        key, nonce, text = self._key_for(salt), os.urandom(12), _text(salt)
        sealed = AESGCM(key).encrypt(nonce, secret.encode(), _aad(text))
        content = {**_HEADER, "salt": text, "nonce": _text(nonce), "secret": _text(sealed)}
        with self._written():
            write_private(self.path, json.dumps(content, indent=1).encode())

    def clear(self) -> None:
        with self._written():
            self.path.unlink(missing_ok=True)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Raises ``unusable`` where the disk is full or read-only."""
        try:
            yield
        except OSError as error:
            hint = "Make room on the disk, or let the program write there: it is tried again."
            raise self.errors.unusable(
                f"{self.path} cannot be written: {error.strerror}", hint=hint
            ) from error

    def _read(self) -> dict[str, Any] | None:
        try:
            stored: dict[str, Any] = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self.errors.locked(f"{self.path} cannot be read: {error}") from error
        if not isinstance(stored, dict) or {k: stored.get(k) for k in _HEADER} != _HEADER:
            raise self.errors.locked(f"{self.path} was not written by this version")
        if not all(isinstance(stored.get(name), str) for name in ("salt", "nonce", "secret")):
            raise self.errors.locked(f"{self.path} is incomplete")
        return stored

    def _has_key_for(self, salt: bytes) -> bool:
        """Whether this object has derived the key and used it on the file."""
        return self._key is not None and self._salt == salt

    def _key_for(self, salt: bytes) -> bytes:
        if not self._has_key_for(salt):
            given = self.passphrase()
            if not given:
                raise self.errors.locked("the secrets file needs its passphrase")
            from argon2.exceptions import HashingError
            from argon2.low_level import Type, hash_secret_raw

            try:
                self._key = hash_secret_raw(
                    given.encode(), salt, ARGON2_PASSES, ARGON2_MEMORY_KIB, ARGON2_LANES, 32, Type.ID
                )
            except HashingError as error:
                raise self.errors.locked(f"{self.path} cannot be opened: {error}") from error
            self._salt = salt
        assert self._key is not None
        return self._key


def credential(name: str) -> str | None:
    """A credential that systemd provides (``LoadCredential=NAME``), or None."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        return None
    try:
        return (Path(folder) / name).read_text().rstrip("\r\n")
    except FileNotFoundError:
        return None


def _aad(salt: str) -> bytes:
    return json.dumps({**_HEADER, "salt": salt}, sort_keys=True).encode()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


# --- the child that asks the keyring ------------------------------------------------------------------------

# None of the null or failing backends, and none that stores plain text.
REAL_KEYRINGS = (
    "keyring.backends.SecretService",
    "keyring.backends.libsecret",
    "keyring.backends.kwallet",
    "keyring.backends.macOS",
)


def real_keyring() -> "KeyringBackend | None":
    """The best keyring of this desktop that is on the list."""
    import keyring

    usable = [
        backend
        for backend in keyring.backend.get_all_keyring()
        if type(backend).__module__.startswith(REAL_KEYRINGS) and backend.priority > 0
    ]
    return max(usable, key=lambda backend: backend.priority, default=None)


def main(verb: str, service: str, account: str) -> int:
    """In the child: one call to the desktop's keyring, ``get|set|delete SERVICE ACCOUNT``. The secret is read
    from stdin or written to stdout.
    """
    from keyring.errors import KeyringError

    backend = real_keyring()
    if backend is None:
        sys.stderr.write("this desktop has no keyring\n")
        return 3
    try:
        if verb == "get":
            sys.stdout.write(backend.get_password(service, account) or "")
        elif verb == "set":
            backend.set_password(service, account, sys.stdin.read())
        elif backend.get_password(service, account) is not None:
            backend.delete_password(service, account)
    except KeyringError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 4
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:4]))
