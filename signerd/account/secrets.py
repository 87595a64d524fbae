"""The store of the session's secret: ``custody.common.session_store`` with signerd's names and errors."""

from custody.common import session_store
from custody.common.session_store import Errors, credential
from signerd.errors import KeyringTimedOut, NoSecretStore, SecretsLocked

CREDENTIAL = "signerd-passphrase"
ERRORS = Errors(unusable=NoSecretStore, locked=SecretsLocked, late=KeyringTimedOut)


class SignerdKeyringStore(session_store.KeyringStore):
    service = "signerd"
    errors = ERRORS


class SignerdFileStore(session_store.FileStore):
    errors = ERRORS


def credential_passphrase(folder: str | None) -> str | None:
    return credential(folder, CREDENTIAL)
