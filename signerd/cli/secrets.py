"""The secret store of the session, with its passphrase asked for before anything starts that cannot wait."""

import os
from pathlib import Path

from signerd.account.config import Config
from signerd.account.secrets import SECRETS_FILE, SecretStore, credential_passphrase
from signerd.app import secret_store
from signerd.cli.answers import Answers


def opened_store(config: Config, state: Path, answers: Answers) -> SecretStore:
    """As configured. Raises SecretsLocked where a passphrase is wrong, AnswerMissing where nobody gives one."""
    if config.secrets.store != "file" or _handed_over():
        return secret_store(config, state, lambda: None)
    fresh = not (state / SECRETS_FILE).exists()
    question = "Choose a passphrase for the secrets file" if fresh else "Passphrase of the secrets file"
    given = answers.secret(question, fresh=fresh)
    store = secret_store(config, state, lambda: given)
    store.load()
    return store


def _handed_over() -> bool:
    return credential_passphrase(os.environ.get("CREDENTIALS_DIRECTORY")) is not None
