"""The store of the session's secret: ``custody.common.session_store`` with signerd's names and errors."""

from custody.common import session_store
from custody.common.session_store import SECRETS_FILE, Errors, Passphrase, SecretStore, credential
from signerd.errors import KeyringTimedOut, NoSecretStore, SecretsLocked

__all__ = [
    "SECRETS_FILE",
    "Passphrase",
    "SecretStore",
    "SignerdFileStore",
    "SignerdKeyringStore",
    "credential_passphrase",
]

CREDENTIAL = "signerd-passphrase"
ERRORS = Errors(unusable=NoSecretStore, locked=SecretsLocked, late=KeyringTimedOut)


class SignerdKeyringStore(session_store.KeyringStore):
    service = "signerd"
    errors = ERRORS


class SignerdFileStore(session_store.FileStore):
    errors = ERRORS


def credential_passphrase(folder: str | None) -> str | None:
    return credential(folder, CREDENTIAL)
