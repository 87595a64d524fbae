"""The store of the session's secret: ``custody.common.session_store`` with signerd's names and errors."""

from custody.common.session_store import stores
from custody.common.session_store.stores import SECRETS_FILE, Errors, Passphrase, SecretStore, credential
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


class SignerdKeyringStore(stores.KeyringStore):
    service = "signerd"
    errors = ERRORS


class SignerdFileStore(stores.FileStore):
    errors = ERRORS


def credential_passphrase(folder: str | None) -> str | None:
    return credential(folder, CREDENTIAL)
