"""The store of the session's secret: ``custody.common.session_store`` with signerd's names and errors."""

from functools import partial

from custody.common.session_store import Errors, FileStore, KeyringStore
from signerd.errors import KeyringTimedOut, NoSecretStore, SecretsLocked

CREDENTIAL = "signerd-passphrase"
ERRORS = Errors(unusable=NoSecretStore, locked=SecretsLocked, late=KeyringTimedOut)

keyring_store = partial(KeyringStore, "signerd", ERRORS)
file_store = partial(FileStore, ERRORS)
