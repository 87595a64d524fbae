"""The session that the commands share: in the desktop's keyring, or in an encrypted file of a private folder.
The secret part is stored as ``signerd`` stores its own (``custody.common.session_store``); the platform's
address and the account are in a file beside it, readable by its owner alone. The platform takes a refresh
token that two programs use for a stolen one: a command that renews the session holds the folder's lock, and
first reads what another one has stored.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from custody.cli.common import Stop
from custody.common import session_store
from custody.common.private_files import NO_LINK, PRIVATE_FILE, folder_fault, take, write_private
from custody.common.terminal import Exit

SETTINGS: Final = "session.json"
LOCK: Final = "lock"
# signerd's own default: a person may have to unlock the keyring.
KEYRING_SECONDS: Final = 30.0
# Far longer than a renewal takes: it is one request, with a time limit of its own.
LOCK_SECONDS: Final = 300.0
LOCK_PAUSE_SECONDS: Final = 0.05
# From the last command that used it.
KEPT_SECONDS: Final = 600.0


def _stops(code: str, advice: str) -> session_store.ErrorMaker:
    return lambda sentence, *, hint=None: Stop(sentence, hint or advice, Exit.SIGNED_OUT, code=code)


_UNUSABLE = _stops("no-secret-store", "Unlock the keyring, or sign in with --secrets file.")
_LOCKED = _stops("secrets-locked", "Give the passphrase that you chose at custody login, or sign in again.")
_ERRORS: Final = session_store.Errors(unusable=_UNUSABLE, locked=_LOCKED, late=_UNUSABLE)


@dataclass(frozen=True)
class ClientSettings:
    """``store``: ``keyring`` or ``file``. ``ca_file``: a private authority's certificate, or None.
    ``session_id``: the session's id in the platform's list of sessions; it is no secret.
    """

    platform: str
    email: str
    store: str = "keyring"
    ca_file: str | None = None
    session_id: str = ""


def read_settings(folder: Path) -> ClientSettings | None:
    """The settings of the last sign-in, or None. Raises Stop."""
    path = folder / SETTINGS
    try:
        return ClientSettings(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        raise Stop(f"{path} cannot be read", "Delete it and run custody login.", Exit.STATE) from None


def write_settings(folder: Path, settings: ClientSettings) -> None:
    with _usable(folder):
        write_private(folder / SETTINGS, json.dumps(asdict(settings), indent=1).encode())


@dataclass
class _KeepingStore(session_store.FileStore):
    """Keeps the derived key in memory for the next commands. What fails is as if none were kept."""

    kept: Path = Path()

    def load(self) -> str | None:
        with suppress(OSError):
            if 0 <= time.time() - self.kept.stat().st_mtime < KEPT_SECONDS:
                content = self.kept.read_bytes()
                self._salt, self._key = content[:-32], content[-32:]
        secret = super().load()
        with suppress(OSError):
            if self._key is not None:
                write_private(self.kept, self._salt + self._key)
        return secret

    def clear(self) -> None:
        self.kept.unlink(missing_ok=True)
        super().clear()


def store_of(folder: Path, kind: str, ask: session_store.Passphrase) -> session_store.SecretStore:
    if kind == "keyring":
        return session_store.KeyringStore("custody", _ERRORS, str(folder.resolve()), KEYRING_SECONDS)
    private = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    given = _ERRORS, folder / session_store.SECRETS_FILE, ask
    # XDG's own folder is this user's, and ends with the desktop's session. A program types a line each time.
    if sys.stdin.isatty() and private.is_absolute() and private.is_dir() and folder_fault(private) is None:
        name = f"custody-{sha256(bytes(folder.resolve())).hexdigest()}"
        return _KeepingStore(*given, kept=private / name)
    return session_store.FileStore(*given)


def forget(folder: Path) -> None:
    with _usable(folder):
        (folder / SETTINGS).unlink(missing_ok=True)


def as_secret(url: str, session: Any) -> str:
    """``session``: a ``custody.client.Session``."""
    return json.dumps({"url": url, **asdict(session)})


def from_secret(text: str | None, url: str) -> Any:
    """A ``custody.client.Session``; None where none is stored for this platform: a token is sent only to the
    address that issued it.
    """
    from custody.client import Session

    try:
        stored = json.loads(text or "")
        if stored.pop("url") != url:
            return None
        return Session(**stored)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Holds the folder's lock: no other command renews the session meanwhile. Raises Stop."""
    with _usable(folder):
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | NO_LINK, PRIVATE_FILE)
    try:
        _take(lock, folder)
        yield
    finally:
        os.close(lock)


def _take(lock: int, folder: Path) -> None:
    ends = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            take(lock)
        except OSError:
            if time.monotonic() > ends:
                hint = "Wait for it, or end it."
                raise Stop(f"another custody command holds {folder / LOCK}", hint, Exit.STATE) from None
            time.sleep(LOCK_PAUSE_SECONDS)
        else:
            return


@contextmanager
def _usable(folder: Path) -> Iterator[None]:
    """Raises Stop where other users can write to the folder, or it cannot be used."""
    try:
        fault = folder_fault(folder)
        if fault is None:
            yield
            return
    except OSError as error:
        raise Stop(
            f"{folder} cannot be used: {error.strerror}", "Name another with --session.", Exit.STATE
        ) from None
    raise Stop(fault, "Name a folder of your own with --session.", Exit.STATE)
